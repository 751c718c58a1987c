/** Runs a Trainer in a worker thread and answers the proxy in engine.ts: one call after the other. */
import { parentPort, workerData } from "node:worker_threads";
import { useDevice } from "../graph/session.ts";
import type { EngineOptions } from "./engine.ts";
import { Trainer } from "./trainer.ts";

export interface Call {
  id: number;
  method: keyof Trainer;
  parameters: unknown[];
}

export type Answer =
  | { id: number; result: unknown }
  | { id: number; error: { name: string; code?: string; message: string; stack?: string } };

const port = parentPort!;
const options = workerData as EngineOptions;
if (options.device) useDevice(options.device);
let queue: Promise<unknown> = Promise.resolve();
let trainer: Trainer | undefined;

port.on("message", ({ id, method, parameters }: Call) => {
  queue = queue.then(async () => {
    try {
      trainer ??= new Trainer(options);
      const work = trainer[method] as (...parameters: unknown[]) => Promise<unknown>;
      const answer: Answer = { id, result: await work.apply(trainer, parameters) };
      port.postMessage(answer);
      if (method === "close") port.close();
    } catch (cause) {
      const { name, code, message, stack } = cause as Error & { code?: string };
      const answer: Answer = { id, error: { name, code, message, stack } };
      port.postMessage(answer);
    }
  });
});
