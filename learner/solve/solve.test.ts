import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { SolveSettings } from "../../proto/solve.ts";
import { SEARCH_DEFAULTS } from "../../proto/solve.ts";
import { rolloutOf, specOf } from "../collect.fixture.ts";
import type { RunSummary } from "../metrics/summary.ts";
import type { WaitOptions } from "../server/waiting.ts";
import { newResult, scratchFolder } from "../store/store.fixture.ts";
import { openStore } from "../store/store.ts";
import { PURPOSE } from "./settings.ts";
import { type Solving, solveTask, type Writing } from "./solve.ts";

const home = scratchFolder();
let stores = 0;
const newPath = () => join(home, `${stores++}.sqlite`);

const RESPONSE = { response: Int32Array.of(1), logProbs: Float32Array.of(-1), finished: true };
const settingsOf = (change: Partial<SolveSettings>): SolveSettings => ({
  ...{
    search: "greedy",
    ...SEARCH_DEFAULTS,
    budget: { executions: 20 },
    slots: 1,
    policy: { iteration: 0 },
    ...change,
  },
});

interface World {
  path: string;
  settings?: Partial<SolveSettings>;
  summary?: { solve?: RunSummary["solve"] };
  /** Stops the search when so many results have been taken by this process. */
  stopAfter?: number;
  /** Numbers of samples whose every attempt is lost. */
  lost?: number[];
  endpoint?: Writing;
  /** Results arrive while the best program is written. */
  resultsMeanwhile?: boolean;
  onAnswer?: () => void;
  /** Time that each choice of a prompt takes. */
  drawMilliseconds?: number;
  /** Actors that connect one after the other, before any result. */
  connecting?: number;
  model?: object;
}

/** A search over a real store and rollout. Every third program fails; a later valid one is better. */
async function searched(world: World) {
  const {
    path,
    settings = {},
    summary = {},
    stopAfter = Number.POSITIVE_INFINITY,
    lost = [],
    endpoint,
    onAnswer,
    drawMilliseconds = 0,
  } = world;
  const store = openStore(path, { leaseSeconds: 60, leaseGraceSeconds: 5, maxAttempts: 1 });
  await store.beginLineage(() => false);
  const spec = specOf({});
  Object.assign(spec.model, world.model);
  const asked: string[] = [];
  const generating: string[] = [];
  let together = 0;
  const engine = {
    generate: async (
      prompts: Int32Array[],
      { weights = "policy" }: { weights?: string },
      told?: (index: number, response: typeof RESPONSE & { ended: boolean }) => void,
    ) => {
      generating.push(weights);
      together = Math.max(together, generating.length);
      if (world.model) await sleep(2);
      generating.pop();
      for (const i of prompts.keys()) {
        asked.push(Buffer.from(prompts[i]!).toString());
        onAnswer?.();
        told?.(i, { ...RESPONSE, ended: true });
      }
      return prompts.map(() => RESPONSE);
    },
  };
  const rollout = rolloutOf(spec, store, engine);
  const slowly: Solving["rollout"] = {
    search: (task, version, choose) =>
      rollout.search(task, version, (number, prompts) => {
        for (const end = performance.now() + drawMilliseconds; performance.now() < end; );
        return choose(number, prompts);
      }),
  };
  const stopping = new AbortController();
  const notices: string[] = [];
  let results = 0;
  let { connecting = 0 } = world;
  const run: Solving = {
    ...{ spec, store, waiting: {}, rollout: slowly },
    tasks: {
      all: [{ name: "diamonds", grader: { metric: "MAE", direction: "Lower" } }],
    } as unknown as Solving["tasks"],
    progress: { state: { iteration: 0 } },
    phases: { stop: stopping.signal },
    status: { update: () => {} },
    grades: {
      gradeFinished: () => {
        for (const { id, sequence } of store.ungraded())
          store.setGrade(
            id,
            sequence % 3 === 1
              ? { valid: false, reward: -10, reason: "failed" }
              : { valid: true, score: 100 - sequence, reward: 1, reason: "valid" },
          );
      },
    },
    files: {
      summary,
      updateSummary: async (change) => void Object.assign(summary, change),
      showBest: async () => {
        while (world.resultsMeanwhile) {
          const [lease] = store.leases.takeAll(["actor-0"]);
          if (lease === undefined) break;
          store.leases.accept("actor-0", lease, newResult());
        }
      },
      notice: (text) => notices.push(text),
    },
    server: {
      waitForChange: async ({ other }: WaitOptions) => {
        if (connecting-- > 0) return;
        const lease = store.leases.takeAll(["actor-0"])[0];
        if (lease === undefined) return void (await other);
        const number = Number(lease.execution.slice(1));
        if (lost.includes(number)) store.leases.fail("actor-0", lease, "a node was lost");
        else store.leases.accept("actor-0", lease, newResult());
        if (++results >= stopAfter) stopping.abort(new Error("stopped"));
      },
    },
  };
  const message = await solveTask(run, settingsOf(settings), endpoint).catch((error: Error) => error.message);
  const samples = store
    .samplesFor(PURPOSE)
    .map(({ id, kind, previous, state }) => [id, kind, previous, state].filter(Boolean).join(" "));
  store.close();
  return { message, samples, summary, notices, asked, together };
}

test("a search asks for as many solutions as its budget says, and each one's prompt shows its parent", async () => {
  const { samples, message, summary, notices } = await searched({
    path: newPath(),
    settings: { drafts: 2, debugProbability: 1, budget: { executions: 7 } },
  });
  assert.deepEqual(samples, [
    "s000001 scratch finished",
    "s000002 scratch finished",
    "s000003 debug s000001 finished",
    "s000004 improve s000003 finished",
    "s000005 debug s000004 finished",
    "s000006 improve s000005 finished",
    "s000007 improve s000006 finished",
  ]);
  assert.equal(message, "7 solutions (7 executions), the best is MAE 94: s000006, improve of s000005");
  const { sessions, ...figures } = summary.solve!;
  assert.deepEqual(figures, {
    metric: "MAE",
    direction: "Lower",
    asked: 7,
    valid: 4,
    failed: 3,
    best: { id: "s000006", score: 94 },
  });
  assert.equal(sessions.length, 1);
  assert.equal(notices.length, 4);
});

test("what the infrastructure loses is asked for again, and counts nowhere", async () => {
  const { samples, summary } = await searched({
    path: newPath(),
    settings: { budget: { executions: 6 } },
    lost: [2, 5],
  });
  assert.equal(samples.length, 8);
  assert.equal(samples.filter((sample) => sample.endsWith("lost")).length, 2);
  assert.equal(summary.solve!.asked, 6);
});

test("a search that stops at any result goes on to the same tree: nothing is lost, and nothing repeated", async () => {
  const whole = await searched({ path: newPath() });
  assert.equal(whole.samples.length, 20);
  for (const stops of [[1], [4, 9], [2, 2, 2, 7]]) {
    const path = newPath();
    const summary: World["summary"] = {};
    for (const stopAfter of stops) assert.equal((await searched({ path, summary, stopAfter })).message, "stopped");
    const last = await searched({ path, summary });
    assert.deepEqual(last.samples, whole.samples, `stopped after ${stops}`);
    assert.deepEqual([last.message, last.summary.solve!.best], [whole.message, whole.summary.solve!.best]);
    assert.equal(last.summary.solve!.sessions.length, stops.length + 1);
  }
});

test("results that arrive while the best program is written belong to the search", async () => {
  const settings = { slots: 4, budget: { executions: 9 } };
  const { message, summary } = await searched({ path: newPath(), settings, resultsMeanwhile: true });
  assert.match(message, /^9 solutions/);
  const { asked, valid, failed } = summary.solve!;
  assert.deepEqual([asked, valid, failed], [9, 6, 3]);
});

test("a larger budget continues a search that has ended", async () => {
  const path = newPath();
  const whole = await searched({ path: newPath() });
  await searched({ path, settings: { budget: { executions: 8 } } });
  assert.deepEqual((await searched({ path })).samples, whole.samples);
});

test("several slots are filled, and the budget is met exactly", async () => {
  const { samples } = await searched({
    path: newPath(),
    settings: { slots: 8, search: "tree", budget: { executions: 50 } },
  });
  assert.equal(samples.length, 50);
  assert.ok(samples.every((sample) => sample.endsWith("finished")));
});

test("the budget is met exactly where actors connect while prompts are chosen", async () => {
  const settings = { slots: 8, budget: { executions: 12 } };
  const { samples } = await searched({ path: newPath(), settings, drawMilliseconds: 6, connecting: 3 });
  assert.equal(samples.length, 12);
});

test("with a static policy as instrumenter the engine runs the policy or the copy, never both", async () => {
  const settings = { slots: 8, budget: { executions: 30 } };
  const { samples, together } = await searched({
    path: newPath(),
    settings,
    model: { instrumenter: "StaticPolicy", instrumenterMaxPromptTokens: 1e6, instrumenterMaxResponseTokens: 1e6 },
  });
  assert.equal(samples.length, 30);
  assert.equal(together, 1);
});

test("a budget of time that earlier processes have spent ends the search before it asks for anything", async () => {
  const spent = { metric: "MAE", direction: "Lower" as const, asked: 0, valid: 0, failed: 0 };
  const summary = {
    solve: {
      ...spent,
      sessions: [
        [0, 40_000],
        [90_000, 111_000],
      ] as [number, number][],
    },
  };
  const { samples, message } = await searched({ path: newPath(), settings: { budget: { seconds: 61 } }, summary });
  assert.deepEqual([samples, message], [[], "0 solutions (61 s), none is valid"]);
});

test("at the end of its time a search stops the programs that run, and keeps the results", async () => {
  const path = newPath();
  const { samples, summary } = await searched({ path, settings: { budget: { seconds: 0.4 }, slots: 4 } });
  const finished = samples.filter((sample) => sample.endsWith("finished")).length;
  assert.ok(finished > 0, "some programs end in time");
  assert.ok(
    samples.every((sample) => /finished$|discarded$/.test(sample)),
    "none is left queued",
  );
  assert.equal(summary.solve!.asked, finished);
  const [begin, end] = summary.solve!.sessions[0]!;
  assert.ok(end - begin >= 400 && end - begin < 5000, `${end - begin} ms`);
});

test("a budget of tokens ends the search when the endpoint has counted them", async () => {
  let answers = 0;
  const usage = () => ({
    answers,
    faults: 0,
    promptTokens: 60 * answers,
    answerTokens: 40 * answers,
    cost: answers / 100,
  });
  const endpoint = { usage, stop: () => {} };
  const settings = { budget: { tokens: 250 } };
  const { samples, message, summary } = await searched({
    path: newPath(),
    settings,
    endpoint,
    onAnswer: () => answers++,
  });
  assert.equal(samples.length, 3, "100 tokens each: the third exceeds the budget, and a fourth is not asked for");
  assert.match(message, /^3 solutions \(250 tokens\), the best is MAE 97/);
  assert.deepEqual(summary.solve!.usage, { answers: 3, faults: 0, promptTokens: 180, answerTokens: 120, cost: 0.03 });
});
