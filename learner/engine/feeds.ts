/** Inputs and outputs of a micro-batch's graphs. */
import type { Sequence } from "./engine.ts";
import { type Tensor, tensor } from "./graph/tensor.ts";
import { type DecoderRow, targetFeeds } from "./model/decoder.ts";

export const scalar = (value: number): Tensor => tensor(Float32Array.of(value), []);

export const logProbFeeds = (rows: readonly DecoderRow[], temperature: number): Record<string, Tensor> => ({
  ...targetFeeds(rows),
  inverseTemperature: scalar(1 / temperature),
});

/** The numbers of some samples' response tokens, float32 [response]. */
export const join = (parts: readonly ArrayLike<number>[]): Tensor =>
  tensor(Float32Array.from(parts.flatMap((part) => Array.from(part))));

/** A number for each sample, the same at all of its response tokens. */
export const joinEach = (samples: readonly Sequence[], rowOf: (index: number) => number): Tensor =>
  join(samples.map(({ response }, i) => new Float32Array(response.length).fill(rowOf(i))));

/** Cuts per-token numbers into one array for each sequence. */
export function split(tokens: Float32Array, sequences: readonly Sequence[]): Float32Array[] {
  let at = 0;
  return sequences.map(({ response }) => {
    at += response.length;
    return tokens.subarray(at - response.length, at);
  });
}
