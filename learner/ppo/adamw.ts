/** AdamW (decoupled weight decay) on flat buffers, and the clip of the global gradient norm. */
import type { Adam } from "./engine.ts";

export interface Moments {
  first: Float32Array;
  second: Float32Array;
  /** optimiser steps taken */
  steps: number;
}

export function newMoments(size: number): Moments {
  return { first: new Float32Array(size), second: new Float32Array(size), steps: 0 };
}

/** Euclidean norm, summed in float64; not finite when any entry is not. */
export function globalNorm(gradient: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < gradient.length; i++) sum += gradient[i] * gradient[i];
  return Math.sqrt(sum);
}

/** What a gradient of this norm is multiplied by so that its norm is at most `limit` (torch's clip_grad_norm_); 0: off. */
export function clipScale(norm: number, limit: number): number {
  return limit > 0 ? Math.min(1, limit / (norm + 1e-6)) : 1;
}

/** What a step does to every number, beside the gradient's own; all float64. */
export interface AdamWScalars {
  /** the gradient is multiplied by it */
  scale: number;
  beta1: number;
  /** 1 - beta1 */
  gradientShare: number;
  beta2: number;
  /** 1 - beta2 */
  squareShare: number;
  /** learning rate over the first moment's bias correction */
  stepSize: number;
  /** root of the second moment's bias correction */
  rootCorrection: number;
  epsilon: number;
  /** what weights are multiplied by */
  decay: number;
}

/** @param step number of the step, from 1 */
export function adamwScalars(step: number, o: Adam & { learningRate: number; scale: number }): AdamWScalars {
  const { beta1, beta2, epsilon, scale, learningRate } = o;
  return {
    scale,
    beta1,
    gradientShare: 1 - beta1,
    beta2,
    squareShare: 1 - beta2,
    stepSize: learningRate / (1 - beta1 ** step),
    rootCorrection: Math.sqrt(1 - beta2 ** step),
    epsilon,
    decay: 1 - learningRate * o.weightDecay,
  };
}

/**
 * One step in place, as torch.optim.AdamW: the weights shrink by learningRate * weightDecay, then move by the
 * bias-corrected first moment over the root of the second. `scale` multiplies the gradient first.
 */
export function adamwStep(
  weights: Float32Array,
  gradient: Float32Array,
  moments: Moments,
  o: Adam & { learningRate: number; scale: number },
): void {
  const { first, second } = moments;
  const a = adamwScalars(++moments.steps, o);
  const { scale, beta1, gradientShare, beta2, squareShare, stepSize, rootCorrection, epsilon, decay } = a;
  for (let i = 0; i < weights.length; i++) {
    const g = gradient[i] * scale;
    const m = beta1 * first[i] + gradientShare * g;
    const v = beta2 * second[i] + squareShare * g * g;
    first[i] = m;
    second[i] = v;
    weights[i] = weights[i] * decay - (stepSize * m) / (Math.sqrt(v) / rootCorrection + epsilon);
  }
}
