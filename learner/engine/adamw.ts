/** AdamW (decoupled weight decay) on flat buffers, and the clip of the global gradient norm. */
import type { Adam } from "./engine.ts";

export interface Moments {
  first: Float32Array;
  second: Float32Array;
}

/** Zeros, in shared memory, so that threads can take a step together. */
export function newMoments(size: number): Moments {
  const zeros = () => new Float32Array(new SharedArrayBuffer(4 * size));
  return { first: zeros(), second: zeros() };
}

/** In float64; not finite when any number is not. */
export function sumOfSquares(numbers: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) sum += numbers[i] * numbers[i];
  return sum;
}

/** `total` becomes the sum of itself and the others, of at least one. @returns sumOfSquares of it, for which it would be read once more */
export function addAll(total: Float32Array, others: readonly Float32Array[]): number {
  for (const other of others.slice(0, -1)) for (let i = 0; i < total.length; i++) total[i] += other[i];
  const last = others.at(-1)!;
  let squares = 0;
  for (let i = 0; i < total.length; i++) {
    const sum = Math.fround(total[i] + last[i]);
    total[i] = sum;
    squares += sum * sum;
  }
  return squares;
}

/** What a gradient of this norm is multiplied by so that its norm is at most `limit` (torch's clip_grad_norm_); 0: off. */
export function clipScale(norm: number, limit: number): number {
  return limit > 0 ? Math.min(1, limit / (norm + 1e-6)) : 1;
}

/** What a step does to every number, beside the gradient's own; all float64. @param step its number, from 1 */
export function adamwScalars(step: number, o: Adam & { learningRate: number; scale: number }) {
  const { beta1, beta2, epsilon, scale, learningRate } = o;
  const rootCorrection = Math.sqrt(1 - beta2 ** step);
  return {
    /** the gradient is multiplied by it */
    scale,
    beta1,
    gradientShare: 1 - beta1,
    beta2,
    squareShare: 1 - beta2,
    /** learning rate over the first moment's bias correction, times the root of the second's: the root of v need not be divided by it */
    stepSize: (learningRate * rootCorrection) / (1 - beta1 ** step),
    /** times that root, too */
    epsilon: epsilon * rootCorrection,
    /** what weights are multiplied by */
    decay: 1 - learningRate * o.weightDecay,
  };
}

export type AdamWScalars = ReturnType<typeof adamwScalars>;

/**
 * One step in place over all numbers of a model, or over the same part of each array, as torch.optim.AdamW: the weights shrink by
 * learningRate * weightDecay, then move by the bias-corrected first moment over the root of the second.
 */
export function adamwStep(
  { weights, gradient, first, second }: Record<"weights" | "gradient" | keyof Moments, Float32Array>,
  a: AdamWScalars,
): void {
  const { scale, beta1, gradientShare, beta2, squareShare, stepSize, epsilon, decay } = a;
  for (let i = 0; i < weights.length; i++) {
    const g = gradient[i] * scale;
    const m = beta1 * first[i] + gradientShare * g;
    const v = beta2 * second[i] + squareShare * g * g;
    first[i] = m;
    second[i] = v;
    weights[i] = weights[i] * decay - (stepSize * m) / (Math.sqrt(v) + epsilon);
  }
}
