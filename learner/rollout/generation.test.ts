import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { HeldEngine, rolloutOf, specOf } from "../collect.fixture.ts";
import type { GenerateOptions } from "../engine/engine.ts";
import type { Listener } from "../engine/index.ts";
import { permutation } from "../engine/index.ts";
import { StoreError } from "../store/errors.ts";
import type { Store } from "../store/store.ts";
import type { NewSample } from "../store/types.ts";
import type { Generation } from "./generation.ts";

const PAIRS = { baseline: "GRPO", groupSize: 2 } as const;

/** A store that keeps its samples in the order of their arrival. */
function memory(addSamples: (samples: readonly NewSample[]) => void = () => {}) {
  const stored: NewSample[] = [];
  const store = {
    lineage: 1,
    nextSequence: () => 1,
    addSamples: (samples: readonly NewSample[]) => {
      addSamples(samples);
      stored.push(...samples);
    },
    previousSolutions: () =>
      [1, 2, 3].map((i) => ({
        ...{ id: `p${i}`, task: "diamonds", plan: "A plan.", program: `print(${i})\n`, score: 1, durationSeconds: 1 },
        terminalOutput: "",
      })),
  } as unknown as Store;
  return { store, stored, ids: () => stored.map(({ id }) => Number(id.slice(1))) };
}

async function turns(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await nextTurn();
}

const leftOf = ({ underway }: Generation) => Object.fromEntries([...underway].map(([id, { left }]) => [id, left]));

test("a sample is stored when its own response has ended, although its group and its call go on", async () => {
  const engine = new HeldEngine();
  const { store, ids } = memory();
  const generation = rolloutOf(specOf(PAIRS), store, engine).generation(0);
  generation.begin(2);
  await turns();
  assert.deepEqual(leftOf(generation), { s000001: 2, s000003: 2 });
  engine.rows[3]!();
  await generation.changed();
  assert.deepEqual(ids(), [4]);
  assert.deepEqual(leftOf(generation), { s000001: 2, s000003: 1 });
  for (const end of [0, 1]) engine.rows[end]!();
  while (ids().length < 3) await generation.changed();
  assert.deepEqual(ids(), [4, 1, 2]);
  assert.deepEqual(leftOf(generation), { s000003: 1 });
  assert.ok(generation.isUnderWay);
  engine.rows[2]!();
  await generation.end();
  assert.ok(!generation.isUnderWay);
  assert.deepEqual([generation.launched.samples, generation.launched.tokens], [4, 4]);
});

test("rows that end together are stored together, but no row waits long for others", async (t) => {
  const engine = new HeldEngine();
  const commits: number[] = [];
  const { store } = memory((samples) => commits.push(samples.length));
  const generation = rolloutOf(specOf({}), store, engine).generation(0);
  generation.begin(20);
  await turns();
  let milliseconds = 0;
  t.mock.method(performance, "now", () => (milliseconds += 0.5)); // three looks a row
  for (const end of engine.rows) end();
  await generation.end();
  assert.ok(commits[0]! > 1 && commits[0]! < 20, `${commits}`);
  assert.equal(
    commits.reduce((sum, count) => sum + count, 0),
    20,
  );
});

/** Responds to a prompt as its seed says. Rows end in an order of `order`'s, each in a turn of its own. */
const seededEngine = (order: number) => ({
  async generate(prompts: Int32Array[], options: GenerateOptions, told?: Listener) {
    const responses = prompts.map(({ length }, i) => {
      const response = Int32Array.of(options.seeds[i]! % 1000, length);
      return { response, logProbs: Float32Array.of(-1, options.seeds[i]! % 7), finished: options.seeds[i]! % 2 === 0 };
    });
    let next = order;
    const random = () => {
      next = (next * 16807) % 2147483647;
      return next / 2147483647;
    };
    for (const i of permutation(prompts.length, random)) {
      await turns(3);
      told?.(i, { ...responses[i]!, ended: true });
    }
    return responses;
  },
});

test("a sample is the same in any order of ends and with any number of prompts that begin together", async () => {
  const samplesOf = async (order: number, together: number[]) => {
    const { store, stored } = memory();
    const generation = rolloutOf(specOf(PAIRS), store, seededEngine(order)).generation(3);
    for (const prompts of together) {
      generation.begin(prompts);
      await turns(order % 5);
    }
    await generation.end();
    return stored;
  };
  const byNumber = (samples: NewSample[]) => samples.toSorted((a, b) => a.sequence! - b.sequence!);
  const first = await samplesOf(1, [6]);
  const second = await samplesOf(77, [1, 3, 2]);
  assert.notDeepEqual(
    first.map(({ id }) => id),
    second.map(({ id }) => id),
    "they end in another order",
  );
  assert.deepEqual(byNumber(first), byNumber(second));
  assert.ok(new Set(first.map(({ previous }) => previous)).size > 1, "different prompts are drawn");
});

test("generation begins whole groups, for as many rows as the engine has slots and a few more", async () => {
  const engine = new HeldEngine();
  const { store } = memory();
  const spec = specOf({ baseline: "GRPO", groupSize: 5 });
  const generation = rolloutOf(spec, store, engine).generation(0);
  assert.equal(generation.room, 15, "75 rows: the first group that is beyond 64 + 8");
  generation.begin(generation.room);
  assert.equal(generation.room, 0);
  await turns();
  for (const end of engine.rows.slice(0, 3)) end();
  await turns();
  assert.equal(generation.room, 0, "72 rows are under way");
  engine.rows[3]!();
  await turns();
  assert.equal(generation.room, 1);
  for (const end of engine.rows.slice(4)) end();
  await generation.end();
});

test("StaticPolicy instruments a turn's programs together once all have ended; then the next turn may begin", async () => {
  const asked: string[] = [];
  const engine = new HeldEngine();
  const spec = specOf({});
  Object.assign(spec.model, { instrumenter: "StaticPolicy", generationBatchSize: 4 });
  Object.assign(spec.model, { instrumenterMaxPromptTokens: 1e6 });
  const { store, stored } = memory();
  const both = {
    generate: (prompts: Int32Array[], options: GenerateOptions, told?: Listener) => {
      asked.push(`${options.weights ?? "policy"} ${prompts.length}`);
      return engine.generate(prompts, options, told);
    },
  };
  const generation = rolloutOf(spec, store, both).generation(0);
  assert.equal(generation.room, 4);
  generation.begin(3);
  await turns();
  for (const end of engine.rows.splice(0, 2)) end();
  await turns();
  assert.deepEqual([generation.room, stored.length, asked], [0, 0, ["policy 3"]]);
  engine.rows.splice(0, 1)[0]!();
  await turns();
  assert.equal(stored.length, 0, "they are being instrumented");
  assert.equal(asked[1], "reference 3");
  for (const end of engine.rows) end();
  await turns();
  assert.deepEqual([generation.room, stored.length, generation.isUnderWay], [4, 3, false]);
  assert.equal(generation.launched.instrumenterFaults.length, 3, "the answer is another program");
  await generation.end();
});

test("an error of the engine or the store is thrown to every waiting caller, and no more rows begin", async () => {
  const engine = new HeldEngine();
  const generation = rolloutOf(specOf({}), memory().store, engine).generation(0);
  generation.begin(2);
  await turns();
  const waiting = assert.rejects(generation.changed(), /a worker has ended/);
  engine.fail(new Error("a worker has ended"));
  await waiting;
  assert.equal(generation.room, 0);
  assert.ok(generation.isUnderWay, "a caller waits and gets the error");
  await assert.rejects(generation.changed(), /a worker has ended/);
  await assert.rejects(generation.end(), /a worker has ended/);

  const full = new HeldEngine();
  const { store } = memory(() => {
    throw new StoreError("diskFull", "the disk is full");
  });
  const unheard = rolloutOf(specOf({}), store, full).generation(0);
  unheard.begin(1);
  await turns();
  full.rows[0]!();
  await turns();
  await assert.rejects(unheard.end(), { code: "diskFull" });
});

test("an interrupted evaluation launches its missing indices with their own random numbers", async () => {
  const seedsOf = (samples: NewSample[]) => samples.map(({ executionSeed }) => executionSeed).sort();
  const whole = memory();
  const wanted = (existing: NewSample[]) => ({ count: 6, existing });
  await rolloutOf(specOf({}), whole.store, seededEngine(5)).launchScratch(
    "diamonds",
    wanted([]),
    0,
    "evaluation-before",
  );
  // Six generations started; the first and the third had not ended when the learner was killed.
  const left = whole.stored.filter(({ sequence }) => sequence !== 1 && sequence !== 3);
  const rest = memory();
  await rolloutOf(specOf({}), rest.store, seededEngine(6)).launchScratch(
    "diamonds",
    wanted(left),
    0,
    "evaluation-before",
  );
  assert.equal(rest.stored.length, 2);
  assert.deepEqual(seedsOf([...left, ...rest.stored]), seedsOf(whole.stored));
  const [again] = rest.stored.filter(({ sequence }) => sequence === 1);
  const [first] = whole.stored.filter(({ sequence }) => sequence === 1);
  assert.deepEqual(again!.responseTokens, first!.responseTokens);
});
