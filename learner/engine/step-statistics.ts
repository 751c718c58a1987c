/** Statistics of an optimiser step for its result. */
import type { PolicySample, PolicyStep } from "./engine.ts";

/** Adds a sample's numbers to the totals of a step's result. */
export function addStatistics(
  totals: Record<"kl" | "ratio" | "ratioMax" | "clipped" | "entropy" | "tokens", number>,
  { proximalLogProbs, advantages }: PolicySample,
  logProbs: Float32Array,
  entropies: Float32Array,
  { clipRatio, clipRatioHigh = clipRatio, dualClip }: PolicyStep,
): void {
  for (let t = 0; t < logProbs.length; t++) {
    const ratio = Math.exp(logProbs[t] - proximalLogProbs[t]);
    totals.kl += proximalLogProbs[t] - logProbs[t];
    totals.ratio += ratio;
    totals.ratioMax = Math.max(totals.ratioMax, ratio);
    const a = advantages[t];
    const dual = dualClip > 0 && ratio > dualClip;
    if ((a > 0 && ratio > 1 + clipRatioHigh) || (a < 0 && (ratio < 1 - clipRatio || dual))) totals.clipped++;
    totals.entropy += entropies[t];
    totals.tokens++;
  }
}

/** Returns the variance, 0 without numbers. */
export function variance(numbers: readonly number[]): number {
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  return numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0) / (numbers.length || 1);
}
