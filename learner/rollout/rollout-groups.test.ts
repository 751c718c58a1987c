import assert from "node:assert/strict";
import { test } from "node:test";
import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import type { Engine, GenerateOptions } from "../engine/engine.ts";
import type { Listener } from "../engine/index.ts";
import { newResult, newSample } from "../store/store.fixture.ts";
import type { NewSample, Sample } from "../store/types.ts";
import { Rollout } from "./rollout.ts";

const PREVIOUS = {
  id: "s000001",
  task: "diamonds",
  plan: "A plan.",
  program: "print(1)\n",
  score: 1,
  durationSeconds: 1,
};

const PROMPTS = {
  ...{ style: "Short", improveProbability: 0.7, previousSolutions: 64, outputTailBytes: 1024 },
  ...{ debugProbability: 0, maxDepth: 3 },
};

type Asked = { prompts: Int32Array[]; options: GenerateOptions; told: Listener | undefined };

/** A rollout over a policy without useful answers, with its stored samples and its calls of `generate`. */
function rolloutOf(
  algorithm: object,
  generationBatchSize: number,
  {
    weights = { diamonds: 1 } as Record<string, number>,
    programs = ["print(1)\n", "print(1)\n", "print(1)\n"],
    failed = [] as Sample[],
    answer = "nothing",
    prompts = {},
    lines = [] as { tasks: Record<string, { rewardDeviation: number }> }[],
  } = {},
) {
  const stored: NewSample[][] = [];
  const asked: Asked[] = [];
  const rollout = new Rollout({
    engine: {
      generate: async (prompts: Int32Array[], options: GenerateOptions, told?: Listener) => {
        asked.push({ prompts, options, told });
        const responses = prompts.map((_, i) => {
          return { response: Int32Array.of(1), logProbs: Float32Array.of(-1), finished: i % 2 === 0 };
        });
        for (const [i, response] of responses.entries()) told?.(i, { ...response, ended: true });
        return responses;
      },
    } as unknown as Engine,
    store: {
      lineage: 1,
      previousSolutions: (task: string) =>
        programs.map((program, i) => ({
          ...{ ...PREVIOUS, task, program, id: `${task === "diamonds" ? "s" : task}${i + 1}` },
          terminalOutput: `MAE ${i + 1}`,
        })),
      failedSolutions: (task: string, { maxDepth }: { maxDepth: number }) =>
        failed.filter((sample) => sample.task === task && (sample.depth ?? 0) < maxDepth),
    },
    addSamples: async (samples) => void stored.push([...samples]),
    tasks: Object.entries(weights).map(([name, weight]) => ({
      ...{ name, weight, description: `Predict ${name}.`, columns: [], files: [] },
      ...{ snippet: [], submissionFormat: [], packages: [] },
    })),
    spec: {
      seed: 3,
      algorithm,
      model: { generationBatchSize, temperature: 1, topP: 1, maxPromptTokens: 1e6, maxResponseTokens: 8 },
      prompts: { ...PROMPTS, ...prompts },
    } as unknown as TrainingRunSpec,
    encode: (messages, prefix = "") =>
      Int32Array.from(Buffer.from(messages.map(({ content }) => content).join() + prefix)),
    decode: (tokens) => [...tokens].map((token) => (token === 1 ? answer : String.fromCharCode(token))).join(""),
    nextNumber: 7,
    lines,
  });
  return { rollout, stored, asked };
}

/** Begins so many prompts at once, and waits until all are stored. */
async function launch(rollout: Rollout, prompts: number, iteration: number) {
  const generation = rollout.generation(iteration);
  generation.begin(prompts);
  await generation.end();
  return generation.launched;
}

test("the samples of a group share one prompt, have seeds of their own and are stored together", async () => {
  const { rollout, stored, asked } = rolloutOf({ baseline: "RLOO", groupSize: 3 }, 8);
  const launched = await launch(rollout, 5, 2);
  assert.equal(launched.samples, 15);
  const samples = stored.flat();
  assert.deepEqual(
    samples.map(({ group }) => group),
    [7, 10, 13, 16, 19].flatMap((first) => new Array(3).fill(`s${String(first).padStart(6, "0")}`)),
  );
  for (const first of [0, 3, 6, 9, 12]) {
    const [a, b, c] = samples.slice(first, first + 3);
    for (const other of [b, c]) {
      assert.deepEqual(other!.promptTokens, a!.promptTokens);
      assert.deepEqual([other!.kind, other!.previous], [a!.kind, a!.previous]);
    }
  }
  assert.ok(new Set(samples.map(({ previous }) => previous)).size > 1, "different groups draw different prompts");
  assert.equal(new Set(asked.flatMap(({ options }) => options.seeds)).size, 15);
  assert.equal(new Set(samples.map(({ executionSeed }) => executionSeed)).size, 15);
});

test("every sample draws a prompt of its own if the baseline has no groups", async () => {
  const { rollout, stored } = rolloutOf({ baseline: "Critic", groupSize: 3 }, 8);
  assert.equal((await launch(rollout, 5, 2)).samples, 5);
  const samples = stored.flat();
  assert.deepEqual(new Set(samples.map(({ group }) => group)), new Set([undefined]));
  assert.ok(new Set(samples.map(({ previous }) => previous)).size > 1);
});

const drawnBy = (samples: NewSample[], asked: { options: GenerateOptions }[]) => ({
  seeds: asked.flatMap(({ options }) => options.seeds),
  executions: samples.map(({ executionSeed }) => executionSeed),
});

test("an evaluation's samples depend on their index, not on earlier samples or interruptions", async () => {
  const whole = rolloutOf({}, 4);
  await whole.rollout.launchScratch("diamonds", { count: 6, existing: [] }, 0, "evaluation-before");
  const later = rolloutOf({}, 4);
  await launch(later.rollout, 3, 1);
  later.stored.length = later.asked.length = 0;
  await later.rollout.launchScratch("diamonds", { count: 2, existing: [] }, 12, "evaluation-after-12");
  const existing = later.stored.flat();
  await later.rollout.launchScratch("diamonds", { count: 6, existing }, 12, "evaluation-after-12");
  assert.deepEqual(drawnBy(later.stored.flat(), later.asked), drawnBy(whole.stored.flat(), whole.asked));
  assert.equal(new Set(drawnBy(whole.stored.flat(), whole.asked).seeds).size, 6);
  const [first, ...others] = later.stored.flat().map(({ id }) => id);
  assert.equal(first, "s000010", "ids are never used twice");
  assert.equal(new Set(others).size, 5);
  await later.rollout.launchScratch("diamonds", { count: 6, existing: later.stored.flat() }, 12, "evaluation-after-12");
  assert.equal(later.stored.flat().length, 6, "nothing is missing");
});

test("an evaluation improves in turn the valid samples whose solution fits into a prompt", async () => {
  const { rollout, stored, asked } = rolloutOf({}, 8);
  const solved = (id: string, program: string) => ({ id, plan: "A plan.", program }) as Sample;
  const samples = [solved("a", "x = 1\n"), solved("huge", "x".repeat(2e6)), solved("b", "x = 2\n")];
  const launched = await rollout.launchImprovements(
    "diamonds",
    { count: 4, existing: [] },
    samples,
    0,
    "evaluation-before",
  );
  assert.equal(launched.samples, 4);
  assert.deepEqual(
    stored.flat().map(({ kind, previous }) => [kind, previous]),
    [
      ["improve", "a"],
      ["improve", "b"],
      ["improve", "a"],
      ["improve", "b"],
    ],
  );
  const scratch = rolloutOf({}, 8);
  await scratch.rollout.launchScratch("diamonds", { count: 4, existing: [] }, 0, "evaluation-before");
  assert.notDeepEqual(asked[0]!.options.seeds, scratch.asked[0]!.options.seeds);
  const none = await rollout.launchImprovements("diamonds", { count: 4, existing: [] }, [], 0, "evaluation-before");
  assert.equal(none.samples, 0);
});

test("a response that did not end by itself is stored as truncated", async () => {
  const { rollout, stored } = rolloutOf({ baseline: "BatchMean" }, 8);
  await launch(rollout, 3, 2);
  assert.deepEqual(
    stored.flat().map(({ truncated }) => truncated),
    [false, true, false],
  );
});

test("improvements without a fitting solution fall back to scratch and are counted with the reason", async () => {
  const huge = "x".repeat(2e6);
  const cases: [programs: string[], result: "shown" | "noPrevious" | "tooLong"][] = [
    [["print(1)\n"], "shown"],
    [[], "noPrevious"],
    [[huge], "tooLong"],
  ];
  for (const [programs, result] of cases) {
    const { rollout, stored } = rolloutOf({ baseline: "RLOO", groupSize: 2 }, 8, { programs });
    const { improvePrompts } = await launch(rollout, 40, 2);
    const asked = improvePrompts[result];
    assert.deepEqual(improvePrompts, { shown: 0, noPrevious: 0, tooLong: 0, [result]: asked });
    assert.ok(asked > 20 && asked < 36, `${asked} of 40 prompts at a probability of 0.7`);
    const improved = stored.flat().filter(({ kind }) => kind === "improve").length;
    assert.equal(improved, result === "shown" ? 2 * asked : 0);
  }
});

test("prompts draw a task by its weight; a group, its prompt and its previous solution have one task", async () => {
  const weights = { wage: 3, movie: 1 };
  const { rollout, stored, asked } = rolloutOf({ baseline: "GRPO", groupSize: 2 }, 800, { weights });
  await launch(rollout, 400, 1);
  const samples = stored.flat().sort((a, b) => a.sequence! - b.sequence!);
  const share = samples.filter(({ task }) => task === "wage").length / samples.length;
  assert.ok(Math.abs(share - 0.75) < 0.05, `${share}`); // 2.3 standard deviations
  for (const [id, group] of Map.groupBy(samples, ({ group }) => group))
    assert.equal(new Set(group.map(({ task, previous }) => `${task} ${previous}`)).size, 1, id);
  const shown = asked[0]!.prompts.map((prompt) => Buffer.from(prompt).toString());
  for (const [i, { task, kind, previous }] of samples.entries())
    if (kind === "improve") assert.ok(previous!.startsWith(task), `${task} improves ${previous}`);
    else assert.match(shown[i]!, new RegExp(`Predict ${task}`));

  const again = rolloutOf({ baseline: "GRPO", groupSize: 2 }, 8, { weights }); // begun in parts, as after a restart
  for (let i = 0; i < 20; i++) await launch(again.rollout, 1, i);
  const tasks = (all: NewSample[]) => all.map(({ id, task }) => `${id} ${task}`);
  assert.deepEqual(tasks(again.stored.flat()), tasks(samples.slice(0, 40)));
});

/** A failed sample, as the store returns it. */
const failure = (id: string, detail: string, change: Partial<Sample> = {}): Sample => ({
  ...{ ...newSample(id), sequence: 1, attempts: 1, createdAt: 0, state: "finished" },
  result: {
    ...newResult({ outcome: "failed", exitStatus: 1, markers: [], detail, terminalOutput: `${detail}: of ${id}\n` }),
    ...{ actor: "a", attempt: 1, queueSeconds: 0 },
  },
  grade: { valid: false, reward: -10, reason: "failed" },
  ...change,
});
const FAILED = [
  failure("f3", "ValueError in line 2", { depth: 1 }),
  failure("f2", "SyntaxError in line 1"),
  failure("f1", "KeyError in line 9", { depth: 3 }),
];

test("a debug prompt shows a failed program and stores its depth; a program that too many led to is left alone", async () => {
  const prompts = { debugProbability: 0.5 };
  const { rollout, stored, asked } = rolloutOf({ baseline: "RLOO", groupSize: 2 }, 800, { failed: FAILED, prompts });
  const launched = await launch(rollout, 200, 2);
  const samples = stored.flat().sort((a, b) => a.sequence! - b.sequence!);
  const debug = samples.filter(({ kind }) => kind === "debug");
  assert.deepEqual(launched.debugPrompts, { shown: debug.length / 2, noFailure: 0, tooLong: 0 });
  assert.ok(debug.length > 160 && debug.length < 240, `${debug.length} of 400`); // 100 groups: 2.8 standard deviations
  const facts = new Set(debug.map(({ previous, depth, previousStep }) => `${previous} ${depth} ${previousStep}`));
  assert.deepEqual([...facts].sort(), ["f2 1 syntaxError", "f3 2 failed"]);
  const newer = debug.filter(({ previous }) => previous === "f3").length / debug.length;
  assert.ok(newer > 0.6 && newer < 0.9, `the newer of two has three of four draws, not ${newer}`);
  for (const [i, { kind, previous }] of samples.entries())
    if (kind === "debug") {
      const shown = Buffer.from(asked[0]!.prompts[i]!).toString();
      assert.match(shown, new RegExp(`Predict diamonds.[^]*Mend this[^]*print\\(1\\)[^]*of ${previous}$`));
    }
  for (const { kind, depth } of samples) if (kind !== "debug") assert.equal(depth, undefined);
});

test("without debug prompts every other choice is the same", async () => {
  const drawn = async (debugProbability: number) => {
    const { rollout, stored } = rolloutOf({}, 800, { failed: FAILED, prompts: { debugProbability } });
    await launch(rollout, 100, 2);
    return new Map(stored.flat().map(({ id, kind, previous }) => [id, `${kind} ${previous}`]));
  };
  const [off, on] = [await drawn(0), await drawn(0.3)];
  for (const [id, choice] of on) if (!choice.startsWith("debug")) assert.equal(choice, off.get(id));
  assert.equal([...off.values()].filter((choice) => choice.startsWith("debug")).length, 0);
});

test("while no program was valid, an improve prompt mends a failed one; without one it asks from scratch", async () => {
  const prompts = { debugProbability: 1e-9 };
  const { rollout, stored } = rolloutOf({}, 800, { programs: [], failed: FAILED, prompts });
  const launched = await launch(rollout, 200, 2);
  const debugs = stored.flat().filter(({ kind }) => kind === "debug").length;
  assert.ok(debugs > 110 && debugs < 170, `${debugs} of 200 prompts at a probability of 0.7`);
  assert.deepEqual(launched.improvePrompts, { shown: 0, noPrevious: debugs, tooLong: 0 });
  assert.equal(launched.debugPrompts.shown, debugs);
  const none = rolloutOf({}, 800, { programs: [], prompts: { debugProbability: 1 } });
  const { debugPrompts } = await launch(none.rollout, 20, 2);
  assert.deepEqual(debugPrompts, { shown: 0, noFailure: 20, tooLong: 0 });
  assert.deepEqual(new Set(none.stored.flat().map(({ kind }) => kind)), new Set(["scratch"]));
});

test("an answer continues the prefix: its tokens are the prompt's, and the program has both", async () => {
  const answerPrefix = "A plan.\n```python\nimport os\n";
  const { rollout, stored, asked } = rolloutOf({}, 8, { prompts: { answerPrefix }, answer: "print(os)\n```" });
  await launch(rollout, 4, 2);
  const shown = (tokens: Int32Array) => Buffer.from(tokens).toString();
  for (const [i, { promptTokens, responseTokens, solution, program, state }] of stored.flat().entries()) {
    assert.ok(shown(promptTokens).endsWith(answerPrefix));
    assert.deepEqual(promptTokens, asked[0]!.prompts[i]);
    assert.deepEqual(responseTokens, Int32Array.of(1));
    assert.equal(solution, `${answerPrefix}print(os)\n\`\`\``);
    assert.deepEqual([program, state], ["import os\nprint(os)\n", "queued"]);
  }
});

test("prompts draw tasks by how much their rewards differed, if taskSampling says so", async () => {
  const weights = { wage: 1, movie: 1 };
  const lines = [{ tasks: { wage: { rewardDeviation: 4 }, movie: { rewardDeviation: 0 } } }];
  const share = async (taskSampling: string) => {
    const prompts = { taskSampling, learnabilityIterations: 5, learnabilityFloor: 0.25 };
    const { rollout, stored } = rolloutOf({}, 800, { weights, prompts, lines });
    await launch(rollout, 400, 1);
    return stored.flat().filter(({ task }) => task === "wage").length / 400;
  };
  const [byWeight, byLearnability] = [await share("Weight"), await share("Learnability")];
  assert.ok(Math.abs(byWeight - 0.5) < 0.06, `${byWeight}`);
  assert.ok(Math.abs(byLearnability - 0.8) < 0.05, `${byLearnability}`);
});
