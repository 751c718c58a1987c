/** Shared by the two ways of `longrun serve`: how long a row may be, whether slots fit into memory, and signals. */
import {
  type Device,
  fitInference,
  type InferenceRequest,
  type MemoryPlan,
  type ModelConfig,
} from "../engine/index.ts";
import { InputError, memoryOf } from "./command.ts";

/** Default of --context, where the model has more: slots have room for it, whether it is used or not. */
export const CONTEXT = 4096;

export function contextOf(given: number | undefined, { maxPositions }: ModelConfig): number {
  const context = given ?? Math.min(CONTEXT, maxPositions);
  if (context <= maxPositions) return context;
  throw new InputError(`--context is ${context}; the model has ${maxPositions} positions, give at most so many`);
}

/** Returns the plan of a model and its slots on the device. @throws InputError that names the setting to lower */
export function planOf(
  model: InferenceRequest["models"][number],
  device: Device,
  slots: number,
  context: number,
): MemoryPlan {
  const shapes = [{ rows: slots, promptTokens: context - 1, responseTokens: 1 }];
  const settings = { slots: "--slots", lengths: ["--context"] };
  return fitInference({ models: [model], shapes, device }, memoryOf(device), settings);
}

/** @param onSignal gets the signal's exit status, and whether it is a further signal. The end of the parent process counts as SIGTERM */
export function onSignals(onSignal: (status: number, again: boolean) => void): void {
  let signals = 0;
  process.on("SIGINT", () => onSignal(130, signals++ > 0));
  process.on("SIGTERM", () => onSignal(0, signals++ > 0));
  if (!process.channel) return;
  process.once("disconnect", () => signals === 0 && onSignal(0, signals++ > 0));
  // The channel must not keep alive a command that refuses its input.
  process.channel.unref();
}
