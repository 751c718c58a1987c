import assert from "node:assert/strict";
import test from "node:test";
import { until } from "../../test/until.ts";
import { WorkerThread } from "./calls.ts";
import type { EngineError } from "./errors.ts";

class Target {
  add(a: number, b: number): number {
    return a + b;
  }
  fill(numbers: Float32Array, value: number): void {
    numbers.fill(value);
  }
  count(to: number, onCount: (i: number) => void): number {
    for (let i = 0; i < to; i++) onCount(i);
    return to;
  }
  refuse(): void {
    throw Object.assign(new Error("it is too large"), { code: "batch" });
  }
  die(): void {
    process.exit(3);
  }
  close(): void {}
}

const THREAD = `
const { serveCalls } = await import(${JSON.stringify(new URL("./calls.ts", import.meta.url).href)});
const { parentPort } = await import("node:worker_threads");
${Target.toString()}
serveCalls(parentPort, () => new Target());`;
const file = new URL(`data:text/javascript,${encodeURIComponent(THREAD)}`);

test("another thread runs the methods, shares memory with the caller and passes errors back", async () => {
  const failures: EngineError[] = [];
  const thread = new WorkerThread<Target>(file, undefined, "the thread", (failure) => failures.push(failure));
  const shared = new Float32Array(new SharedArrayBuffer(8));
  const filled = thread.calls.fill(shared, 2);
  assert.equal(await thread.calls.add(1, 2), 3);
  await filled;
  assert.deepEqual([...shared], [2, 2]);
  await assert.rejects(thread.calls.refuse(), { name: "EngineError", code: "batch", message: "it is too large" });
  assert.equal(thread.failure, undefined);
  await thread.calls.close();
  await until(() => thread.failure !== undefined, "the thread ends");
  await assert.rejects(thread.calls.add(1, 2), { code: "worker", message: "the thread has ended (0)" });
  assert.deepEqual(failures, [], "a thread that was asked to end is no failure");
});

test("a method's calls of a function arrive in order and before its result", async () => {
  const thread = new WorkerThread<Target>(file, undefined, "the thread");
  const told: number[] = [];
  const counted = await thread.calls.count(4, (i) => told.push(i));
  assert.deepEqual([counted, told], [4, [0, 1, 2, 3]]);
  await thread.calls.close();
});

test("a thread that ends by itself fails its pending calls and tells its owner", async () => {
  const { promise: failed, resolve } = Promise.withResolvers<EngineError>();
  const thread = new WorkerThread<Target>(file, undefined, "the thread", resolve);
  const calls = [thread.calls.die(), thread.calls.add(1, 2)];
  const message = "the thread has ended (3)";
  for (const call of calls) await assert.rejects(call, { code: "worker", message });
  assert.equal((await failed).message, message);
  assert.equal(thread.failure?.message, message);
});

test("an engine whose worker dies tells its owner why, although no call is pending", async () => {
  const program = `
    const { parentPort } = await import("node:worker_threads");
    const { WorkerThread } = await import(${JSON.stringify(new URL("./calls.ts", import.meta.url).href)});
    const inner = new WorkerThread(new URL(${JSON.stringify(file.href)}), undefined, "worker 1", (failure) => { throw failure; });
    inner.calls.die().catch(() => {});`;
  const outer = new URL(`data:text/javascript,${encodeURIComponent(program)}`);
  const { promise: failed, resolve } = Promise.withResolvers<EngineError>();
  new WorkerThread<Target>(outer, undefined, "the engine's thread", resolve);
  assert.equal((await failed).message, "the engine's thread failed: worker 1 has ended (3)");
});
