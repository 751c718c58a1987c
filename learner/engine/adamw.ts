/** AdamW (decoupled weight decay) on flat buffers, and the clip of the global gradient norm. */
import type { Adam } from "./engine.ts";

export interface Moments {
  first: Float32Array;
  second: Float32Array;
}

/** Returns zeros in shared memory, so that threads can take a step together. */
export function newMoments(size: number): Moments {
  const zeros = () => new Float32Array(new SharedArrayBuffer(4 * size));
  return { first: zeros(), second: zeros() };
}

/** Returns the sum of squares in float64; not finite if any number is not. */
export function sumOfSquares(numbers: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) sum += numbers[i] * numbers[i];
  return sum;
}

/** Adds the others, at least one, to `total`. @returns the sum of squares of the result, which saves another pass over it */
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

/** Returns the factor that limits a gradient of this norm to `limit` (torch's clip_grad_norm_); `limit` 0: off. */
export function clipScale(norm: number, limit: number): number {
  return limit > 0 ? Math.min(1, limit / (norm + 1e-6)) : 1;
}

/** Returns the scalars of a step that are the same for all numbers; float64. @param step number of the step, from 1 */
export function adamwScalars(step: number, o: Adam & { learningRate: number; scale: number }) {
  const { beta1, beta2, epsilon, scale, learningRate } = o;
  const rootCorrection = Math.sqrt(1 - beta2 ** step);
  return {
    /** Factor of the gradient. */
    scale,
    beta1,
    gradientShare: 1 - beta1,
    beta2,
    squareShare: 1 - beta2,
    /**
     * Learning rate divided by the first moment's bias correction, times the root of the second's, so that the root of v need not be
     * divided by it.
     */
    stepSize: (learningRate * rootCorrection) / (1 - beta1 ** step),
    /** The epsilon of the denominator, times that root. */
    epsilon: epsilon * rootCorrection,
    /** Factor of the weights. */
    decay: 1 - learningRate * o.weightDecay,
  };
}

export type AdamWScalars = ReturnType<typeof adamwScalars>;

/**
 * Takes one step in place over all numbers of a model, or over the same part of each array, like torch.optim.AdamW: the weights shrink by
 * learningRate * weightDecay, then move by the bias-corrected first moment divided by the root of the second.
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
