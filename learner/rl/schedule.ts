import type { Algorithm } from "../../crds/trainingrun.ts";

/**
 * Learning rates of an iteration, as a function of its number, so that a resumed or replayed run needs no state for them. The shapes equal
 * transformers' get_linear_schedule_with_warmup and get_cosine_with_min_lr_schedule_with_warmup, except that the first iteration's rate is
 * not 0.
 */

/**
 * @param iteration from 1
 * @param iterations of the run (`stopping.iterations`): the end of the decay unless `decayIterations` is given
 */
export function learningRates(
  iteration: number,
  iterations: number,
  o: Pick<Algorithm, "learningRate" | "criticLearningRate" | "learningRateSchedule" | "criticWarmupIterations">,
): { policy: number; critic: number } {
  const { learningRateSchedule: schedule, criticWarmupIterations } = o;
  const end = schedule.decayIterations ?? iterations;
  // The policy's schedule begins with the policy's first update.
  const policy = scheduleFactor(iteration - criticWarmupIterations, end - criticWarmupIterations, schedule);
  const critic = scheduleFactor(iteration, end, schedule);
  return { policy: o.learningRate * policy, critic: o.criticLearningRate * critic };
}

/**
 * Returns the factor of the learning rate in the k-th of n updates (k from 1), with w updates of warm-up and the minimum ratio m:
 *
 * | | |
 * | --- | --- |
 * | k <= w | k / (w + 1) |
 * | Constant | 1 |
 * | Linear | m + (1 - m) (1 - p), p = (k - 1 - w) / (n - w), at most 1 |
 * | Cosine | m + (1 - m) (1 + cos(pi p)) / 2 |
 */
export function scheduleFactor(
  k: number,
  n: number,
  { type, warmupIterations: w, minimumRatio: m }: Algorithm["learningRateSchedule"],
): number {
  if (k <= w) return Math.max(k, 0) / (w + 1);
  const p = Math.min(1, (k - 1 - w) / (n - w));
  switch (type) {
    case "Constant":
      return 1;
    case "Linear":
      return m + (1 - m) * (1 - p);
    case "Cosine":
      return m + ((1 - m) * (1 + Math.cos(Math.PI * p))) / 2;
  }
}
