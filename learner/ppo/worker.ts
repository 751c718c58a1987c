/** A Trainer in a worker thread; engine.ts calls it. */
import { parentPort, workerData } from "node:worker_threads";
import { flushDenormals } from "../graph/denormals.ts";
import { useDevice } from "../graph/session.ts";
import { serveCalls } from "./calls.ts";
import type { EngineOptions } from "./engine.ts";
import { Trainer } from "./trainer.ts";

flushDenormals();
const options = workerData as EngineOptions;
if (options.device) useDevice(options.device);
serveCalls(parentPort!, async () => {
  const trainer = new Trainer(options);
  await trainer.ready();
  return trainer;
});
