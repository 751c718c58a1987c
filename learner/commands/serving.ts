/** Shared by the two ways of `longrun serve`: how long a row may be, whether slots fit into memory, and signals. */
import { type Device, hostMemory, type ModelConfig, size } from "../engine/index.ts";
import { InputError, wholeNumber } from "./command.ts";

/** Default of --context, where the model has more: slots have room for it, whether it is used or not. */
export const CONTEXT = 4096;

export function contextOf(text: string | undefined, { maxPositions }: ModelConfig): number {
  const context = text === undefined ? Math.min(CONTEXT, maxPositions) : wholeNumber(text, "--context", 2);
  if (context <= maxPositions) return context;
  throw new InputError(`--context is ${context}; the model has ${maxPositions} positions, give at most so many`);
}

/** @throws InputError unless the KV cache fits into memory. Of a GPU the first token tells */
export function checkMemory(config: ModelConfig, device: Device, slots: number, context: number): void {
  const bytes = slots * context * 8 * config.layers * config.keyValueHeads * config.headSize;
  const { bytes: free, source } = hostMemory();
  if (device.kind === "cuda" || bytes <= free) return;
  const cache = `${slots} slots of ${context} tokens take ${size(bytes)}`;
  throw new InputError(`--slots and --context: ${cache}, but ${size(free)} is ${source}; lower one of them`);
}

/** @param onSignal gets the exit status of the signal, and whether it is not the first. The end of the parent process is one, too */
export function onSignals(onSignal: (status: number, again: boolean) => void): void {
  let signals = 0;
  process.on("SIGINT", () => onSignal(130, signals++ > 0));
  process.on("SIGTERM", () => onSignal(0, signals++ > 0));
  if (process.channel) process.once("disconnect", () => signals === 0 && onSignal(0, signals++ > 0));
}
