import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Dealing } from "./dealing.ts";
import type { GenerateOptions, Listener, Response } from "./model/generate.ts";

const RESPONSE: Response = { response: Int32Array.of(7), logProbs: Float32Array.of(-1), finished: true };
const OPTIONS = { temperature: 1, topP: 1, maxNewTokens: 1, eosIds: [0] };

/** Workers that record the seeds that they get, and end a row when the test says so. */
function workersOf(count: number) {
  const given: number[][] = [];
  const calls: {
    seeds: readonly number[];
    left: Set<number>;
    end: (seed: number) => void;
    fail: (cause: Error) => void;
  }[] = [];
  const workers = Array.from({ length: count }, (_, worker) => {
    given[worker] = [];
    return {
      generate: (_role: string, _prompts: Int32Array[], options: GenerateOptions, listener?: Listener) => {
        const { seeds, signal } = options;
        given[worker]!.push(...seeds);
        const { promise, resolve, reject } = Promise.withResolvers<Response[]>();
        const left = new Set(seeds.keys());
        const end = (seed: number) => {
          const i = seeds.indexOf(seed);
          left.delete(i);
          listener?.(i, { ...RESPONSE, response: Int32Array.of(seed), ended: true });
          if (left.size === 0) resolve(seeds.map((it) => ({ ...RESPONSE, response: Int32Array.of(it) })));
        };
        calls.push({ seeds, left, end, fail: reject });
        signal?.addEventListener("abort", () => reject(signal.reason));
        return promise;
      },
    };
  });
  const end = (seed: number) => calls.find(({ seeds }) => seeds.includes(seed))!.end(seed);
  return { workers, given, calls, end };
}

const prompts = (count: number, from = 0) => Array.from({ length: count }, (_, i) => Int32Array.of(from + i));
const seeds = (count: number, from = 0) => Array.from({ length: count }, (_, i) => from + i);

test("a worker whose rows end gets the waiting rows", async () => {
  const { workers, given, end } = workersOf(2);
  const dealing = new Dealing(workers, 4); // and one row ahead
  const all = dealing.generate("policy", prompts(20), { ...OPTIONS, seeds: seeds(20) });
  assert.deepEqual(given, [
    [0, 1, 2, 3, 4],
    [5, 6, 7, 8, 9],
  ]);
  for (let seed = 5; seed < 20; seed++) {
    assert.ok(given[1]!.includes(seed), `${seed} waits although worker 2 is free`);
    end(seed);
  }
  assert.deepEqual(given[0], [0, 1, 2, 3, 4]);
  for (const seed of given[0]!) end(seed);
  assert.deepEqual(
    (await all).map(({ response }) => response[0]),
    seeds(20),
  );
});

test("a later call goes to the worker with the fewest rows, and each call gets its own responses and indices", async () => {
  const { workers, given, end } = workersOf(2);
  const dealing = new Dealing(workers, 8);
  const first = dealing.generate("policy", prompts(6), { ...OPTIONS, seeds: seeds(6) });
  for (const seed of [0, 1, 2]) end(seed);
  const told: [number, number][] = [];
  const second = dealing.generate("policy", prompts(3, 10), { ...OPTIONS, seeds: seeds(3, 10) }, (i, { response }) =>
    told.push([i, response[0]!]),
  );
  assert.deepEqual(given, [
    [0, 1, 2, 10, 11, 12],
    [3, 4, 5],
  ]);
  for (const seed of [12, 10, 11, 3, 4, 5]) end(seed);
  assert.deepEqual(told, [
    [2, 12],
    [0, 10],
    [1, 11],
  ]);
  assert.equal((await first).length, 6);
  assert.deepEqual(
    (await second).map(({ response }) => response[0]),
    [10, 11, 12],
  );
});

test("a worker that fails ends the other rows of its call and the rows that wait; other calls continue", async () => {
  const { workers, given, calls, end } = workersOf(2);
  const dealing = new Dealing(workers, 2);
  const failing = dealing.generate("policy", prompts(20), { ...OPTIONS, seeds: seeds(20) });
  const waiting = dealing.generate("policy", prompts(2, 50), { ...OPTIONS, seeds: seeds(2, 50) });
  assert.deepEqual(given.flat().length, 6);
  calls[0]!.fail(new Error("the GPU is lost"));
  await assert.rejects(failing, /the GPU is lost/);
  await setImmediate();
  assert.ok(given.flat().every((seed) => seed < 6 || seed >= 50));
  assert.deepEqual(given.flatMap((of) => of.filter((seed) => seed >= 50)).sort(), [50, 51]);
  for (const seed of [50, 51]) end(seed);
  assert.equal((await waiting).length, 2);
});

test("a signal ends waiting and running rows, and a call without prompts gets an empty answer", async () => {
  const { workers, given } = workersOf(2);
  const dealing = new Dealing(workers, 2);
  const controller = new AbortController();
  const options = { ...OPTIONS, seeds: seeds(9), signal: controller.signal };
  const ended = dealing.generate("policy", prompts(9), options);
  controller.abort(new Error("enough"));
  await assert.rejects(ended, /enough/);
  await assert.rejects(dealing.generate("policy", prompts(9), options), /enough/);
  assert.deepEqual(
    given.map(({ length }) => length),
    [3, 3],
  );
  assert.deepEqual(await dealing.generate("policy", [], { ...OPTIONS, seeds: [] }), []);
});

test("a single worker gets all rows at once", async () => {
  const { workers, given } = workersOf(1);
  const controller = new AbortController();
  const options = { ...OPTIONS, seeds: seeds(9), signal: controller.signal };
  const ended = new Dealing(workers, 2).generate("policy", prompts(9), options);
  assert.equal(given[0]!.length, 9);
  controller.abort(new Error("enough"));
  await assert.rejects(ended, /enough/);
});
