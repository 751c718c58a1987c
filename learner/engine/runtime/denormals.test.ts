import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

const here = (file: string) => JSON.stringify(new URL(file, import.meta.url).href);
/** Half of 3e-38, 1e5 times: in this thread's JavaScript, and by ONNX Runtime with two threads. */
const WORKER = `
const { flushDenormals } = await import(${here("./denormals.ts")});
const { Graph } = await import(${here("../graph/graph.ts")});
const { mul } = await import(${here("../graph/primitives.ts")});
const { createSession } = await import(${here("./runtime.ts")});
const { tensor } = await import(${here("../graph/tensor.ts")});
const { parentPort, workerData } = await import("node:worker_threads");
const flushed = workerData ? flushDenormals() : undefined;
const g = new Graph("halves");
const x = g.input("x", "float32", [100_000]);
g.output("y", mul(x, x));
const session = await createSession(g, { threads: 2 });
const { y } = await session.run({ x: tensor(new Float32Array(100_000).fill(1e-20)) });
parentPort.postMessage({ flushed, zeros: y.data.filter((value) => value === 0).length, half: 1e-310 * Math.min(0.5, workerData + 0.5) });
`;

async function inWorker(flush: boolean): Promise<{ flushed?: boolean; zeros: number; half: number }> {
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(WORKER)}`), { workerData: flush });
  const [message] = await once(worker, "message");
  await worker.terminate();
  return message;
}

test("a thread that turns denormals off turns them off for its compute threads, and for no other thread", async (context) => {
  const asked = await inWorker(true); // makes the process's first session, which ONNX Runtime has a flag for
  if (!asked.flushed) return context.skip("only with glibc on x86-64");
  assert.deepEqual(asked, { flushed: true, zeros: 100_000, half: 0 });
  assert.deepEqual(await inWorker(false), { flushed: undefined, zeros: 0, half: 5e-311 });
  assert.deepEqual(await inWorker(true), asked);
  assert.notEqual(Float32Array.of(1e-40)[0]! * 0.5, 0);
});
