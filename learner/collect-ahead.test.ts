/** Tests collection while the engine generates. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Algorithm } from "../crds/trainingrun.ts";
import { HeldEngine, newStorePath, rolloutOf, specOf } from "./collect.fixture.ts";
import { collect } from "./collect.ts";
import type { Listener } from "./engine/index.ts";
import type { Run } from "./run.ts";
import { waitForChange } from "./server/waiting.ts";
import { newResult } from "./store/store.fixture.ts";
import { openStore } from "./store/store.ts";

const turns = async (count = 20) => {
  for (let i = 0; i < count; i++) await nextTurn();
};

/** A run whose responses and executions end when the test says so. */
async function heldRun(algorithm: Partial<Algorithm>, path = newStorePath(), generatorSlots = 0) {
  const store = openStore(path, { leaseSeconds: 60 });
  await store.beginLineage(() => true);
  const engine = new HeldEngine();
  const spec = specOf(algorithm);
  /** Stands for a run's generators: generates as the engine would, and reports the policy version of each row. */
  const writers = {
    ...{ slots: generatorSlots, version: 0 },
    generate(prompts: readonly Int32Array[], _: unknown, told?: (index: number, response: never) => void) {
      const listener: Listener = (index, part) => told?.(index, { ...part, policyVersion: writers.version } as never);
      return engine.generate([...prompts], _, listener);
    },
  };
  if (generatorSlots > 0) spec.model.generationBatchSize = 1;
  const rollout = rolloutOf(spec, store, engine, generatorSlots > 0 ? writers : undefined);
  const phases: string[] = [];
  const stopping = new AbortController();
  const launched: number[] = [];
  const run = {
    ...{ spec, store, rollout, waiting: { signal: stopping.signal } },
    phases: {
      enter: (name: string, _: number, __: number, idle = "") => {
        stopping.signal.throwIfAborted();
        const phase = `${name} ${idle}`.trim();
        if (phases.at(-1) !== phase) phases.push(phase);
      },
    },
    iterations: { countLaunched: ({ samples }: { samples: number }) => launched.push(samples) },
    grades: { gradeFinished: () => {} },
    server: { waitForChange: (options: object) => waitForChange(store, () => [], options) },
  } as unknown as Run;
  return {
    ...{ store, engine, writers, run, phases, launched, stop: (cause: Error) => stopping.abort(cause) },
    /** Ends the first `count` responses under way. */
    end: async (count: number) => {
      for (const end of engine.rows.splice(0, count)) end();
      await turns();
    },
    /** Leases and finishes the queued executions. */
    execute: async () => {
      const leases = store.leases.takeAll(new Array(99).fill("actor-0"));
      for (const lease of leases) store.leases.accept("actor-0", lease, newResult());
      await turns();
      return leases.map(({ execution }) => Number(execution.slice(1)));
    },
    lease: async () => {
      const leases = store.leases.takeAll(new Array(99).fill("actor-0"));
      await turns();
      return leases;
    },
  };
}

const ids = (samples: { id: string }[]) => samples.map(({ id }) => Number(id.slice(1)));

test("an execution can be leased once its own response has ended, and a batch is complete before other responses end", async () => {
  const { run, engine, phases, launched, end, execute } = await heldRun({});
  let done = false;
  const collecting = collect(run, 1).finally(() => {
    done = true;
  });
  await turns();
  assert.equal(engine.rows.length, 6, "m B rows are under way");
  await end(1);
  assert.deepEqual(await execute(), [1]);
  await end(3);
  assert.deepEqual(await execute(), [2, 3, 4]);
  assert.equal(engine.rows.length, 2, "the batch is complete: rows under way go on, and no others begin");
  assert.equal(done, false);
  await end(2);
  const { batch } = await collecting;
  assert.deepEqual(ids(batch), [1, 2, 3, 4]);
  assert.deepEqual(run.store.counts().queued, 2, "the surplus trains later");
  assert.deepEqual(phases, ["generate"]);
  assert.deepEqual(launched, [6]);
});

test("a batch has the samples that were dispatched first, in their order, whichever response ended first", async () => {
  const { run, engine, execute } = await heldRun({ collection: "WaitAll" });
  const collecting = collect(run, 1);
  await turns();
  for (const row of [2, 0, 3, 1]) {
    engine.rows[row]!();
    await turns();
    await execute();
  }
  assert.deepEqual(ids((await collecting).batch), [1, 2, 3, 4]);
});

test("generation goes ahead up to (maxStaleness + 1) B while programs run; then the phase says why it waits", async () => {
  const { run, engine, phases, end, lease } = await heldRun({ maxStaleness: 2 });
  const collecting = collect(run, 1);
  await turns();
  await end(6);
  assert.equal(engine.rows.length, 0, "executions wait for an actor");
  assert.equal(phases.at(-1), "execute idleActors");
  const first = await lease();
  assert.equal(engine.rows.length, 6, "as many as programs run");
  assert.equal(phases.at(-1), "generate");
  await end(6);
  const second = await lease();
  assert.equal(engine.rows.length, 0, "12 are in flight");
  assert.equal(phases.at(-1), "execute idleStaleness");
  for (const attempt of [...second.slice(0, 2), ...first.slice(4)])
    run.store.leases.accept("actor-0", attempt, newResult());
  assert.deepEqual(ids((await collecting).batch), [5, 6, 7, 8]);
  assert.deepEqual(phases, [
    "generate",
    "execute idleActors",
    "generate",
    "execute idleActors",
    "execute idleStaleness",
  ]);
});

test("generation goes ahead by no more solutions than programs run", async () => {
  const { run, engine, end, execute, lease } = await heldRun({ oversampling: 1 });
  const collecting = collect(run, 1);
  await turns();
  await end(3);
  await execute();
  await end(1);
  assert.equal(engine.rows.length, 0);
  const [attempt] = await lease();
  assert.equal(engine.rows.length, 1);
  run.store.leases.accept("actor-0", attempt!, newResult());
  await end(1);
  await collecting;
});

for (const [name, algorithm] of [
  ["WaitAll", { collection: "WaitAll" }],
  ["Discard", { collection: "Discard" }],
  ["Drop", { stalenessPolicy: "Drop" }],
] as const)
  test(`${name} does not generate ahead`, async () => {
    const { run, engine, phases, end, lease } = await heldRun(algorithm);
    const collecting = collect(run, 1);
    await turns();
    await end(6);
    const leases = await lease();
    assert.equal(leases.length, name === "WaitAll" ? 4 : 6);
    assert.equal(engine.rows.length, 0);
    assert.equal(phases.at(-1), "execute idlePrograms");
    for (const attempt of leases) run.store.leases.accept("actor-0", attempt, newResult());
    await collecting;
  });

test("Discard waits with a complete batch until all m B are launched, as in Algorithm 1", async () => {
  const { run, engine, end, execute, store } = await heldRun({ collection: "Discard" });
  const collecting = collect(run, 1);
  await turns();
  await end(4);
  await execute();
  assert.equal(engine.rows.length, 2);
  await end(2);
  const { batch, surplusIds } = await collecting;
  assert.deepEqual([ids(batch), surplusIds, store.counts().discarded], [[1, 2, 3, 4], [], 2]);
});

test("a batch begins as many samples as it uses, less the finished surplus, and at most m B if executions wait", async () => {
  const { run, engine, end, execute, lease, store } = await heldRun({});
  const used = (samples: { id: string }[], iteration: number) =>
    store.commitIteration({ iteration, sampleIds: samples.map(({ id }) => id), metrics: {} });
  const first = collect(run, 1);
  await turns();
  await end(6);
  const leases = await lease();
  await end(6);
  for (const attempt of leases) store.leases.accept("actor-0", attempt, newResult());
  await execute();
  used((await first).batch, 1);
  used((await collect(run, 2)).batch, 2); // 8 have ended: two batches
  const third = collect(run, 3);
  await turns();
  assert.equal(engine.rows.length, 4, "4 have ended: m B would be two more");
  await end(4);
  used((await third).batch, 3);
  const fourth = collect(run, 4);
  await turns();
  assert.equal(engine.rows.length, 2, "executions wait: no more than m B");
  await end(2);
  await execute();
  await fourth;
});

test("a group whose members are still generated is neither complete nor broken", async () => {
  const pairs = { baseline: "GRPO", groupSize: 2, oversampling: 1 } as const;
  const { run, engine, end, execute } = await heldRun({ ...pairs, maxStaleness: 0 });
  let done = false;
  const collecting = collect(run, 1).finally(() => {
    done = true;
  });
  await turns();
  assert.equal(engine.rows.length, 4);
  await end(1);
  assert.deepEqual(await execute(), [1]);
  assert.equal(engine.rows.length, 3, "no other group takes the place of the first");
  engine.rows.splice(1, 2).map((end) => end());
  await turns();
  assert.deepEqual(await execute(), [3, 4]);
  assert.equal(done, false, "one group is complete, the other lacks its second member");
  await end(1);
  assert.deepEqual(await execute(), [2]);
  const { batch, brokenIds } = await collecting;
  assert.deepEqual([ids(batch), brokenIds], [[1, 2, 3, 4], []]);
});

test("an error of the engine in the background ends collection, also while collection waits for programs", async () => {
  const { run, engine, end } = await heldRun({});
  const collecting = collect(run, 1);
  await turns();
  await end(2);
  const failed = assert.rejects(collecting, /a worker of the engine has ended/);
  engine.fail(new Error("a worker of the engine has ended"));
  await failed;
});

test("an error after the batch is complete ends collection", async () => {
  const { run, engine, end, execute } = await heldRun({});
  const collecting = collect(run, 1);
  await turns();
  await end(4);
  await execute();
  const failed = assert.rejects(collecting, /a worker of the engine has ended/);
  engine.fail(new Error("a worker of the engine has ended"));
  await failed;
});

test("a run that is stopped stores the responses under way, begins no others, and repeats none when it resumes", async () => {
  const path = newStorePath();
  const first = await heldRun({}, path);
  const collecting = collect(first.run, 1);
  await turns();
  await first.end(2);
  const stopped = assert.rejects(collecting, /SIGTERM/);
  first.stop(new Error("SIGTERM"));
  await turns();
  assert.equal(first.engine.rows.length, 4, "rows under way go on");
  await first.end(4);
  await stopped;
  assert.equal(first.store.counts().queued, 6);
  first.store.close();

  const second = await heldRun({}, path);
  const resumed = collect(second.run, 1);
  await turns();
  assert.equal(second.engine.rows.length, 0, "six are in flight");
  assert.deepEqual(await second.execute(), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(ids((await resumed).batch), [1, 2, 3, 4]);
  second.store.close();
});

test("a run that was killed uses no sample number twice, and a group keeps its stored members", async () => {
  const path = newStorePath();
  const groups = { baseline: "GRPO", groupSize: 3, batchSize: 6, oversampling: 1, maxStaleness: 0 } as const;
  const first = await heldRun(groups, path);
  collect(first.run, 1).catch(() => {});
  await turns();
  // 1, 3 of the first group, 5 of the second.
  for (const row of [0, 2, 4]) first.engine.rows[row]!();
  await turns();
  first.store.close();

  const second = await heldRun(groups, path);
  const resumed = collect(second.run, 1);
  await turns();
  assert.deepEqual(await second.execute(), [1, 3, 5]);
  await second.end(3);
  assert.deepEqual(await second.execute(), [6, 7, 8], "the second group is broken, and another takes its place");
  const { batch, brokenIds } = await resumed;
  assert.deepEqual([ids(batch), brokenIds], [[1, 3, 6, 7, 8], ["s000005"]]);
  second.store.close();
});

test("the time without a running program does not count while solutions are generated", async () => {
  const { run, end, execute, store } = await heldRun({ maxStaleness: 0, oversampling: 1 });
  const impatient = { ...run, waiting: { idleSeconds: 0.5 } } as Run;
  const collecting = collect(impatient, 1);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  await end(4);
  await execute();
  const { batch } = await collecting;
  assert.equal(batch.length, 4);
  store.commitIteration({ iteration: 1, sampleIds: batch.map(({ id }) => id), metrics: {} });
  const next = collect(impatient, 2);
  await turns();
  await end(4);
  await assert.rejects(next, { code: "stalled" });
});

test("generators continue while the learner trains, and each row has the version that wrote it", async () => {
  const { run, engine, writers, launched, end, execute, store } = await heldRun({ maxStaleness: 4 }, undefined, 3);
  const first = collect(run, 1);
  await turns();
  assert.equal(engine.rows.length, 7, "3 slots and a batch of 4");
  await end(4);
  await execute();
  const { batch } = await first;
  assert.deepEqual(ids(batch), [1, 2, 3, 4]);
  assert.equal(engine.rows.length, 7, "3 go on, and 4 replace the rows that ended");
  assert.deepEqual(launched, [4]);
  await end(1); // while the learner trains
  assert.equal(store.counts().queued, 1);
  store.commitIteration({ iteration: 1, sampleIds: batch.map(({ id }) => id), metrics: {} });

  writers.version = 1;
  const second = collect(run, 2);
  await turns();
  await end(6);
  await execute();
  const next = (await second).batch;
  assert.deepEqual(ids(next), [5, 6, 7, 8]);
  assert.deepEqual(
    next.map(({ iteration }) => iteration),
    [0, 1, 1, 1],
  );
  assert.deepEqual(launched, [4, 7], "rows that ended while the learner trained count as well");
});

test("generators open no more rows than maxStaleness allows, and the last iteration waits for all of them", async () => {
  const { run, engine, end, execute } = await heldRun({ maxStaleness: 0 }, undefined, 8);
  run.spec.stopping.iterations = 1;
  let done = false;
  const last = collect(run, 1).finally(() => {
    done = true;
  });
  await turns();
  assert.equal(engine.rows.length, 4, "(maxStaleness + 1) B");
  await end(3);
  await execute();
  assert.equal(done, false);
  await end(1);
  await execute();
  assert.deepEqual(ids((await last).batch), [1, 2, 3, 4]);
});

for (const stalenessPolicy of ["Wait", "Drop"] as const)
  test(`${stalenessPolicy}: samples that are further ahead of the weights than maxStaleness wait until the weights are as near`, async () => {
    const path = newStorePath();
    const algorithm = { stalenessPolicy, oversampling: 1, maxStaleness: 2 } as const;
    const lost = await heldRun(algorithm, path);
    collect(lost.run, 4).catch(() => {}); // of iteration 3
    await turns();
    await lost.end(4);
    await lost.execute();
    lost.store.close();

    const { run, engine, store, end, execute } = await heldRun(algorithm, path); // from the first weights
    const first = collect(run, 1);
    await turns();
    assert.equal(engine.rows.length, 4, "the four of iteration 3 are no part of this batch");
    await end(4);
    await execute();
    const { batch, staleIds, brokenIds } = await first;
    assert.deepEqual([ids(batch), staleIds, brokenIds], [[5, 6, 7, 8], [], []]);
    store.commitIteration({ iteration: 1, sampleIds: batch.map(({ id }) => id), metrics: {} });
    const second = collect(run, 2); // the weights of iteration 1 are two behind
    await turns();
    await end(99);
    await execute();
    assert.deepEqual(ids((await second).batch), [1, 2, 3, 4]);
    store.close();
  });
