/** One worker of the engine, in a thread of its own: it runs the graphs of models whose weights all workers share (workers.ts). */
import { parentPort, workerData } from "node:worker_threads";
import { serveCalls } from "./calls.ts";
import type { EngineOptions } from "./engine.ts";
import { EngineWorker } from "./engine-worker.ts";
import { flushDenormals } from "./runtime/denormals.ts";
import { useDevice } from "./runtime/runtime.ts";

flushDenormals();
const options = workerData as EngineOptions;
if (options.device) useDevice(options.device);
// generation with the same weights runs side by side
serveCalls(
  parentPort!,
  () => new EngineWorker(options),
  (method, [role]) => (method === "generate" ? String(role) : undefined),
);
