import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import type { Evaluation } from "../metrics/summary.ts";
import { newResult, newSample, scratchFolder } from "../store/store.fixture.ts";
import { openStore, type Store } from "../store/store.ts";
import type { Sample } from "../store/types.ts";
import type { Task } from "../tasks/task.ts";
import { Tasks } from "../tasks/tasks.ts";
import { type Evaluating, evaluatePolicy, isEvaluationDue } from "./evaluate.ts";
import { evaluatePolicies } from "./policies.ts";

const scratch = scratchFolder();

interface Added {
  iteration: number;
  purpose: string;
  previous?: string;
}

interface Setting {
  evaluation?: object;
  /** Names; default diamonds alone. */
  tasks?: string[];
  privateShare?: number;
  /** Returns the score of the i-th executed program, counted from 0; undefined: not valid. */
  scores?: (index: number) => number | undefined;
  /** Ends the wait for results after so many. */
  interruptAfter?: number;
  /** The summary that an earlier start of the run wrote. */
  summary?: { evaluation: Evaluation };
}

interface Wanted {
  count: number;
  existing: { executionSeed: number }[];
}

/** A run over a real store, whose programs end one at a time. A second call on the same folder is a restart. */
async function runOf(directory: string, o: Setting = {}) {
  const { scores = (index) => (index % 4 === 3 ? undefined : 10 - index) } = o;
  const store = openStore(join(directory, "store.sqlite"));
  await store.beginLineage(() => true);
  const launched: { task: string; kind: string; index: number; previous?: string }[] = [];
  let ended = 0;
  const add = (task: string, kind: Sample["kind"], index: number, { iteration, purpose, previous }: Added) => {
    launched.push({ task, kind, index, previous });
    const { completed, queued, running, lost, discarded } = store.totals();
    const id = `s${completed + queued + running + lost + discarded}`;
    const fields = { task, kind, previous, purpose, iteration, lineage: store.lineage, executionSeed: index };
    store.addSamples([newSample(id, fields)]);
  };
  /** A sample's index is its execution seed here. */
  const lacking = ({ count, existing }: Wanted) =>
    Array.from({ length: count }, (_, i) => i).filter((i) =>
      existing.every(({ executionSeed }) => executionSeed !== i),
    );
  const summary: { evaluation: Evaluation } = o.summary ?? { evaluation: {} };
  const told: string[] = [];
  /** Programs that are done, of how many, as they are shown. */
  const progress: { total: number; shown: number[] } = { total: 0, shown: [] };
  const run = {
    directory,
    store,
    progress: { state: { iteration: 0 } },
    recorded: undefined,
    waiting: {},
    spec: {
      seed: 5,
      evaluation: { samples: 4, protocol: "Paper", improve: true, ...o.evaluation },
      prompts: { improveProbability: 0.5 },
      model: { temperature: 0.7 },
    },
    tasks: new Tasks(
      (o.tasks ?? ["diamonds"]).map((name) => {
        const task = {
          name,
          grader: { metric: "MAE", direction: "Lower", targetColumns: ["y"] },
          spec: { rewardSplit: "Full", privateShare: o.privateShare ?? 0 },
          ...(o.privateShare && {
            ...{ rows: 8, privateRows: 4 },
            privateScore: (submission: Buffer) => ({ score: Number(submission.toString()) + 100, reason: "valid" }),
            partScores: () => ({ reason: { code: "noRows", message: "there is no row" } }),
          }),
        };
        return task as unknown as Task;
      }),
    ),
    phases: {
      enter: (_: string, total: number, done = 0) => {
        progress.total = total;
        progress.shown.push(done);
      },
      show: (done: number) => void progress.shown.push(done),
    },
    files: {
      summary,
      announceEvaluation: () => {},
      notice: (text: string) => void told.push(text),
      updateSummary: async (change: { evaluation: Evaluation }) => void Object.assign(summary, change),
    },
    grades: {
      gradeFinished: () => {
        for (const sample of store.ungraded()) {
          const text = store.submission(sample.id)?.toString() ?? "";
          const score = text === "" ? undefined : Number(text);
          const grade = {
            ...{ valid: score !== undefined, reward: -(score ?? 10), reason: "made up" },
            ...(score !== undefined && { score }),
          };
          // An older longrun stored no private scores.
          const isStored = score !== undefined && o.privateShare && sample.kind === "improve";
          store.setGrade(sample.id, grade, isStored ? { score: score + 200, reason: "valid" } : undefined);
        }
      },
    },
    rollout: {
      launchScratch: async (task: string, wanted: Wanted, iteration: number, purpose: string) => {
        for (const index of lacking(wanted)) add(task, "scratch", index, { iteration, purpose });
      },
      launchImprovements: async (task: string, wanted: Wanted, valid: Sample[], iteration: number, purpose: string) => {
        if (valid.length === 0) return;
        for (const index of lacking(wanted))
          add(task, "improve", index, { iteration, purpose, previous: valid[index % valid.length]!.id });
      },
    },
    server: {
      waitForFinished: async () => {
        if (ended === o.interruptAfter) throw new Error("interrupted");
        const lease = store.leases.takeAll(["actor-0"])[0]!;
        const score = scores(Number(lease.execution.slice(1)));
        finish(store, lease, score);
        ended++;
      },
    },
  };
  return { run: run as unknown as Evaluating, launched, summary, told, progress, close: () => store.close() };
}

function finish(store: Store, lease: { execution: string; number: number; fence: string }, score: number | undefined) {
  const submission = score === undefined ? undefined : Buffer.from(String(score));
  const result = newResult({ ...(submission && { submissionBytes: submission.length, submissionSha256: "made up" }) });
  store.leases.accept("actor-0", lease, result, submission && deflateSync(submission));
}

const folder = () => mkdtempSync(join(scratch, "run-"));

test("an evaluation has N solutions from scratch and N improvements of valid ones, and writes its results", async () => {
  const directory = folder();
  const { run, launched, summary, close } = await runOf(directory);
  await evaluatePolicy(run, "before");
  assert.deepEqual(
    launched.map(({ kind, previous }) => [kind, previous]),
    [
      ...new Array(4).fill(["scratch", undefined]),
      ...[
        ["improve", "s0"],
        ["improve", "s1"],
        ["improve", "s2"],
        ["improve", "s0"],
      ],
    ],
  );
  const { before, settings } = summary.evaluation;
  assert.deepEqual([settings?.protocol, settings?.samples, settings?.seed, settings?.metric], ["Paper", 4, 5, "MAE"]);
  assert.deepEqual([before?.samples, before?.validFraction, before?.bestScore], [8, 0.75, 4]);
  assert.deepEqual([before?.kinds?.scratch.bestScore, before?.kinds?.improve.bestScore], [8, 4]);
  assert.match(readFileSync(join(directory, "evaluation.md"), "utf8"), /Protocol paper: 4 programs from scratch and 4/);
  const score = JSON.parse(readFileSync(join(directory, "programs/before-improve/score.json"), "utf8"));
  assert.deepEqual([score.id, score.score], ["s6", 4]);
  assert.equal(readFileSync(join(directory, "programs/before-scratch/submission.csv"), "utf8"), "8");
  await evaluatePolicy(run, "before");
  assert.equal(launched.length, 8, "no program is evaluated twice");
  close();
});

const protocols: [name: string, evaluation: object, kinds: string[]][] = [
  ["equal", { protocol: "Equal" }, ["scratch", "scratch", "improve", "improve"]],
  ["from scratch alone", { improve: false }, ["scratch", "scratch", "scratch", "scratch"]],
];
for (const [name, evaluation, kinds] of protocols)
  test(`an evaluation follows the protocol ${name}`, async () => {
    const { run, launched, close } = await runOf(folder(), { evaluation });
    await evaluatePolicy(run, "before");
    assert.deepEqual(
      launched.map(({ kind }) => kind),
      kinds,
    );
    close();
  });

test("an evaluation without a valid program has no improvements and no best program", async () => {
  const directory = folder();
  const { run, launched, summary, close } = await runOf(directory, { scores: () => undefined });
  await evaluatePolicy(run, "before");
  assert.equal(launched.length, 4);
  assert.deepEqual([summary.evaluation.before?.validFraction, summary.evaluation.before?.bestScore], [0, null]);
  assert.equal(existsSync(join(directory, "programs")), false);
  close();
});

for (const interruptAfter of [0, 2, 4, 6])
  test(`an evaluation that was interrupted after ${interruptAfter} results goes on from there`, async () => {
    const directory = folder();
    const first = await runOf(directory, { interruptAfter });
    await assert.rejects(evaluatePolicy(first.run, "before"), /interrupted/);
    first.close();
    const second = await runOf(directory);
    await evaluatePolicy(second.run, "before");
    const all = [...first.launched, ...second.launched].map(({ kind, index }) => `${kind} ${index}`);
    assert.deepEqual(
      all,
      ["scratch", "improve"].flatMap((kind) => [0, 1, 2, 3].map((index) => `${kind} ${index}`)),
    );
    const { before } = second.summary.evaluation;
    assert.deepEqual([before?.samples, before?.bestScore], [8, 4]);
    second.close();
  });

test("the evaluation after training measures the change since the evaluation before", async () => {
  const { run, launched, summary, close } = await runOf(folder(), { evaluation: { improve: false } });
  const change = () => summary.evaluation.change;
  await evaluatePolicy(run, "before");
  assert.equal(change(), undefined);
  run.progress.state = { ...run.progress.state, iteration: 3 };
  await evaluatePolicy(run, "after");
  assert.equal(summary.evaluation.after?.iteration, 3);
  // s4, s5, s6 score 6, 5, 4 where s0, s1, s2 score 10, 9, 8.
  assert.equal(change()?.meanScore, -4);
  await evaluatePolicy(run, "after");
  assert.equal(launched.length, 8);
  run.progress.state = { ...run.progress.state, iteration: 5 };
  await evaluatePolicy(run, "after");
  assert.equal(launched.length, 12);
  close();
});

test("everyIterations is off by default and skips the first and the last policy", () => {
  const due = (everyIterations: number | undefined) =>
    [0, 1, 2, 3, 4, 5, 6].filter((iteration) =>
      isEvaluationDue({ spec: { evaluation: { everyIterations } }, progress: { state: { iteration } } } as never),
    );
  assert.deepEqual(due(undefined), []);
  assert.deepEqual(due(1), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(due(3), [3, 6]);
});

test("each policy is evaluated once between iterations, and again after a restart with other weights", async () => {
  const directory = folder();
  const evaluation = { samples: 2, improve: false };
  const first = await runOf(directory, { evaluation });
  for (const iteration of [2, 4, 4]) {
    first.run.progress.state = { ...first.run.progress.state, iteration };
    await evaluatePolicy(first.run, "during");
  }
  assert.equal(first.launched.length, 4);
  const found = (summary: typeof first.summary) => summary.evaluation.during?.map((it) => [it.iteration, it.meanScore]);
  // s0, s1 score 10, 9; s2 scores 8 and s3 is not valid.
  assert.deepEqual(found(first.summary), [
    [2, 9.5],
    [4, 8],
  ]);
  assert.deepEqual(first.told, [
    "evaluation after iteration 2: 100 % of 2 programs valid, mean MAE 9.500, best 9.000",
    "evaluation after iteration 4: 50 % of 2 programs valid, mean MAE 8.000, best 8.000",
  ]);
  const page = () => readFileSync(join(directory, "evaluation.md"), "utf8");
  assert.match(page(), /after 4 iterations \| +2 \| +50 % \[.*\| +8\.000 \[/);
  assert.doesNotMatch(page(), /No program was valid|Best programs/);
  assert.equal(existsSync(join(directory, "programs")), false);
  first.close();

  // The second start goes on from no checkpoint: its weights after two iterations are others, with the same name.
  const second = await runOf(directory, { evaluation, summary: first.summary });
  second.run.progress.state = { ...second.run.progress.state, iteration: 2 };
  await evaluatePolicy(second.run, "during");
  assert.equal(second.launched.length, 2);
  assert.deepEqual(found(second.summary), [[2, 5.5]], "4 is of weights that the restart has left");
  second.close();
});

test("a private part: the public score chooses the best program, and the private one is reported", async () => {
  const directory = folder();
  const { run, summary, close } = await runOf(directory, { privateShare: 0.5 });
  await evaluatePolicy(run, "before");
  const { before, settings } = summary.evaluation;
  assert.deepEqual([before?.bestScore, before?.publicBestScore], [204, 4], "4 is the best, stored with 204");
  assert.deepEqual(
    [before?.kinds?.scratch.bestScore, before?.kinds?.scratch.publicBestScore],
    [108, 8],
    "the store has none, so that the submission is graded",
  );
  assert.deepEqual([settings?.rewardSplit, settings?.privateShare], ["Full", 0.5]);
  const score = JSON.parse(readFileSync(join(directory, "programs/before-improve/score.json"), "utf8"));
  assert.deepEqual([score.score, score.privateScore, score.gap, score.privateRows], [4, 104, -100, 4]);
  assert.equal(score.medianGap, -200);
  assert.match(readFileSync(join(directory, "evaluation.md"), "utf8"), /best private MAE .*\n.*its public MAE /);
  close();
});

test("longrun evaluate evaluates the model's own weights, then the checkpoint's, and repeats no known result", async () => {
  const directory = folder();
  const { run, launched, summary, close } = await runOf(directory, { evaluation: { improve: false } });
  const checkpoint = join(directory, "1-000007");
  const policies = { before: { iteration: 0 }, after: { iteration: 7, checkpoint } };
  const torn = () => Promise.reject(new Error("torn"));
  await assert.rejects(evaluatePolicies(run, policies, torn), /torn/);
  assert.equal(summary.evaluation.before?.iteration, 0);
  assert.deepEqual([launched.length, summary.evaluation.after], [4, undefined]);
  const loaded: string[] = [];
  await evaluatePolicies(run, policies, async (folder) => void loaded.push(`${folder}, ${launched.length} programs`));
  assert.deepEqual(loaded, [`${checkpoint}, 4 programs`]);
  assert.deepEqual([launched.length, summary.evaluation.after?.iteration], [8, 7]);
  close();
});

test("each of several tasks has its own results, and a task that came later is evaluated alone", async () => {
  const directory = folder();
  const first = await runOf(directory, { evaluation: { improve: false }, scores: (index) => 10 - index });
  await evaluatePolicy(first.run, "before");
  first.close();
  const tasks = ["diamonds", "wage"];
  const { run, launched, summary, progress, close } = await runOf(directory, { tasks, scores: (index) => 50 - index });
  Object.assign(summary, first.summary);
  await evaluatePolicy(run, "before");
  assert.deepEqual([progress.total, ...new Set(progress.shown)], [8, 0, 1, 2, 3, 4, 5, 6, 7, 8], "wage's alone");
  assert.deepEqual([...new Set(launched.map(({ task }) => task))], ["wage"]);
  const { diamonds, wage } = summary.evaluation.tasks!;
  assert.deepEqual([diamonds?.before?.bestScore, diamonds?.before?.samples], [7, 4]);
  assert.deepEqual([wage?.before?.bestScore, wage?.before?.samples, wage?.settings?.task], [39, 8, "wage"]);
  const own = new Set(run.store.samplesFor("evaluation-before").flatMap(({ task, id }) => (task === "wage" ? id : [])));
  for (const { kind, previous } of launched) if (kind === "improve") assert.ok(own.has(previous!), previous);
  assert.equal(readFileSync(join(directory, "programs/wage/before-scratch/submission.csv"), "utf8"), "43");
  assert.match(
    readFileSync(join(directory, "evaluation.md"), "utf8"),
    /on diamonds[\s\S]*on wage[\s\S]*programs\/wage\/before-/,
  );
  close();
});

test("a task that was removed during its evaluation and comes back is evaluated with the new policy alone", async () => {
  const directory = folder();
  const evaluation = { improve: false };
  const tasks = ["diamonds", "wage"];
  const first = await runOf(directory, { tasks, evaluation, scores: (index) => 10 - index, interruptAfter: 6 });
  await assert.rejects(evaluatePolicy(first.run, "before"), /interrupted/);
  first.run.grades.gradeFinished();
  assert.equal(first.run.store.discardOtherTasks(["diamonds"]), 2, "wage has two graded programs, and two that wait");
  first.close();
  const second = await runOf(directory, { tasks, evaluation, scores: () => 1 });
  second.run.progress.state = { ...second.run.progress.state, iteration: 3 };
  await evaluatePolicy(second.run, "before");
  const { wage } = second.summary.evaluation.tasks!;
  assert.deepEqual(
    [wage?.before?.iteration, wage?.before?.samples, wage?.before?.meanScore, second.progress.shown.at(-1)],
    [3, 4, 1, second.progress.total],
  );
  second.close();
});
