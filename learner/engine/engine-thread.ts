/** The engine's own thread: a Trainer, which engine.ts calls from the main thread and which calls the workers. */
import { parentPort, workerData } from "node:worker_threads";
import { serveCalls } from "./calls.ts";
import type { EngineOptions, GenerateOptions } from "./engine.ts";
import { flushDenormals } from "./runtime/denormals.ts";
import { Trainer } from "./trainer.ts";

flushDenormals();
const make = async () => {
  // the engine needs all of its workers: this thread ends with the error, which reaches the caller
  const trainer = new Trainer(workerData as EngineOptions, (failure) => {
    throw failure;
  });
  await trainer.ready();
  return trainer;
};
serveCalls(
  parentPort!,
  make,
  // generation with the same weights runs side by side
  (method, [, options]) => (method === "generate" ? ((options as GenerateOptions).weights ?? "policy") : undefined),
  // a checkpoint is written while others generate
  (method) => method === "save",
);
