import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ApiError } from "../errors.ts";
import { KubeMetrics } from "../metrics.ts";
import { type Worker, WorkQueue, type WorkQueueOptions } from "./work-queue.ts";

/** Returns a queue whose workers finish when the test says so, with a clock that the test moves. */
function start(t: { after: (f: () => void) => void }, options: WorkQueueOptions & { concurrency?: number } = {}) {
  mock.timers.enable({ apis: ["setTimeout"] });
  let nowMs = 0;
  const queue = new WorkQueue({ now: () => nowMs, ...options });
  const stop = new AbortController();
  const started: string[] = [];
  const open = new Map<string, PromiseWithResolvers<Awaited<ReturnType<Worker>>>>();
  const done = queue.run(
    (key) => {
      assert.ok(!open.has(key), `${key} is with two workers`);
      started.push(key);
      open.set(key, Promise.withResolvers());
      return open.get(key)!.promise.finally(() => open.delete(key));
    },
    { concurrency: options.concurrency ?? 2, signal: stop.signal },
  );
  t.after(() => {
    stop.abort();
    mock.timers.reset();
  });
  const settle = async () => {
    for (let i = 0; i < 5; i++) await turn();
  };
  return {
    queue,
    started,
    done,
    stop,
    async finish(key: string, result?: Awaited<ReturnType<Worker>>) {
      open.get(key)!.resolve(result);
      await settle();
    },
    async fail(key: string, error: Error) {
      open.get(key)!.reject(error);
      await settle();
    },
    async pass(seconds: number) {
      nowMs += seconds * 1000;
      mock.timers.tick(seconds * 1000);
      await settle();
    },
  };
}

test("A key waits once, in order, and at most `concurrency` keys run", async (t) => {
  const { queue, started, finish } = start(t);
  for (const key of ["a", "b", "c", "d", "c", "d"]) queue.add(key);
  assert.deepEqual(started, ["a", "b"]);
  assert.equal(queue.depth, 2);
  await finish("b");
  await finish("c");
  assert.deepEqual(started, ["a", "b", "c", "d"]);
  await finish("d");
  await finish("a");
  assert.deepEqual(started, ["a", "b", "c", "d"]);
});

test("A key that is added while a worker has it waits for that worker, even if others are free", async (t) => {
  const { queue, started, finish } = start(t, { concurrency: 3 });
  queue.add("a");
  queue.add("a");
  assert.deepEqual(started, ["a"]);
  await finish("a");
  assert.deepEqual(started, ["a", "a"]);
});

test("A key that was added while it ran comes back once, after the keys that waited", async (t) => {
  const { queue, started, finish } = start(t, { concurrency: 1 });
  queue.add("a");
  queue.add("b");
  queue.add("a");
  queue.add("a");
  await finish("a");
  await finish("b");
  await finish("a");
  assert.deepEqual(started, ["a", "b", "a"]);
});

test("addAfter keeps the earliest time, and an event takes precedence", async (t) => {
  const { queue, started, finish, pass } = start(t);
  queue.addAfter("a", 30);
  queue.addAfter("a", 10);
  queue.addAfter("a", 20);
  await pass(9.9);
  assert.deepEqual(started, []);
  await pass(0.1);
  assert.deepEqual(started, ["a"]);
  await finish("a", { requeueAfterSeconds: 5 });
  queue.add("a");
  assert.deepEqual(started, ["a", "a"]);
  await finish("a");
  await pass(5);
  assert.deepEqual(started, ["a", "a", "a"], "the time that the first run planned stays");
  await finish("a");
  await pass(100);
  assert.equal(started.length, 3);
});

test("A failed key comes back after 0.05 s, doubling to 60 s; a success resets the delay", async (t) => {
  const waits: number[] = [];
  const { queue, started, finish, fail, pass } = start(t, {
    onError: (_key, error, seconds) => {
      assert.equal((error as Error).message, "boom");
      waits.push(seconds);
    },
  });
  queue.add("a");
  for (let i = 0; i < 13; i++) {
    await fail("a", new Error("boom"));
    await pass(waits.at(-1)! - 0.001);
    assert.equal(started.length, i + 1);
    await pass(0.002);
    assert.equal(started.length, i + 2);
  }
  waits.forEach((seconds, i) => {
    const least = Math.min(60, 0.05 * 2 ** i);
    assert.ok(seconds >= least && seconds <= least * 1.2, `wait ${i} is ${seconds} s`);
  });
  await finish("a");
  queue.add("a");
  await fail("a", new Error("boom"));
  assert.ok(waits.at(-1)! <= 0.06);
});

test("A key waits for Retry-After of the API server", async (t) => {
  const { queue, started, fail, pass } = start(t);
  queue.add("a");
  await fail("a", new ApiError("busy", { status: 429, reason: "TooManyRequests", retryAfterSeconds: 7 }));
  await pass(6.9);
  assert.equal(started.length, 1);
  await pass(0.2);
  assert.equal(started.length, 2);
});

test("All failed keys together come back at the rate of the bucket", async (t) => {
  const { queue, started, pass } = start(t, { retriesPerSecond: 10, retryBurst: 5, concurrency: 1000 });
  for (let i = 0; i < 45; i++) queue.addRateLimited(`run-${i}`);
  await pass(0.06);
  assert.equal(started.length, 5);
  await pass(1.94);
  assert.equal(started.length, 25);
  await pass(2.1);
  assert.equal(started.length, 45);
});

test("After a stop no key begins, the running ones end, and no timer is left", async (t) => {
  const { queue, started, finish, pass, stop, done } = start(t, { concurrency: 1 });
  queue.add("a");
  queue.add("b");
  queue.addAfter("c", 1);
  stop.abort();
  let stopped = false;
  done.then(() => (stopped = true));
  await pass(2);
  assert.equal(stopped, false);
  await finish("a");
  assert.equal(stopped, true);
  queue.add("d");
  await pass(2);
  assert.deepEqual(started, ["a"]);
});

test("The metrics have the well-known names and the right numbers", async (t) => {
  const metrics = new KubeMetrics();
  const { queue, finish, fail, pass } = start(t, { metrics: metrics.queue("trainingrun"), concurrency: 1 });
  for (const key of ["a", "b", "c", "a"]) queue.add(key);
  await pass(3);
  const text = await metrics.registry.metrics();
  for (const line of [
    'workqueue_adds_total{name="trainingrun"} 4',
    'workqueue_depth{name="trainingrun"} 3',
    'workqueue_unfinished_work_seconds{name="trainingrun"} 3',
    'workqueue_longest_running_processor_seconds{name="trainingrun"} 3',
    'controller_runtime_active_workers{controller="trainingrun"} 1',
  ])
    assert.ok(text.includes(`${line}\n`), `${line} is not in\n${text}`);
  await finish("a");
  await fail("b", new Error("boom"));
  await finish("c", { requeueAfterSeconds: 60 });
  await finish("a");
  const later = await metrics.registry.metrics();
  for (const line of [
    'controller_runtime_reconcile_total{controller="trainingrun",result="success"} 2',
    'controller_runtime_reconcile_total{controller="trainingrun",result="error"} 1',
    'controller_runtime_reconcile_total{controller="trainingrun",result="requeue_after"} 1',
    'controller_runtime_reconcile_errors_total{controller="trainingrun"} 1',
    'controller_runtime_reconcile_time_seconds_count{controller="trainingrun"} 4',
    'workqueue_queue_duration_seconds_count{name="trainingrun"} 4',
    'workqueue_work_duration_seconds_sum{name="trainingrun"} 3',
    'workqueue_retries_total{name="trainingrun"} 1',
    'workqueue_depth{name="trainingrun"} 0',
  ])
    assert.ok(later.includes(`${line}\n`), `${line} is not in\n${later}`);
});
