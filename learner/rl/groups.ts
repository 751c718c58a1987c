import type { Algorithm } from "../../crds/trainingrun.ts";
import { spread } from "./advantages.ts";

/**
 * Group baselines, which compare the samples of one prompt. Sources: GRPO, Shao et al. 2024; without the standard deviation Dr. GRPO, Liu
 * et al. 2025; RLOO, Ahmadian et al. 2024. The numbers equal verl's compute_grpo_outcome_advantage and compute_rloo_outcome_advantage,
 * except that a single sample in its group has advantage 0, where verl uses its score.
 */

/** Added to a group's standard deviation (as in verl). */
const STD_EPSILON = 1e-6;

/** A group with fewer samples has no baseline. */
export const SMALLEST_GROUP = 2;

/** Returns how many samples are dispatched together for one prompt: `groupSize` if the baseline is the group's, otherwise 1. */
export function samplesPerPrompt({ baseline, groupSize }: Pick<Algorithm, "baseline" | "groupSize">): number {
  return baseline === "GRPO" || baseline === "RLOO" ? groupSize : 1;
}

/** Returns the indices of each group's samples, ordered by each group's first sample. */
export function groupsOf(names: readonly string[]): number[][] {
  return [...Map.groupBy(names.keys(), (i) => names[i]).values()];
}

/**
 * GRPO: A_i = (R_i - mean) / (std + 1e-6) over the group, with Bessel's variance. Without `scaleByGroupStd` A_i = R_i - mean.
 *
 * @param returns one number per sample: its reward, less the KL penalty if that is part of the reward
 * @param groups indices of each group's samples
 */
export function grpoAdvantages(returns: readonly number[], groups: number[][], scaleByGroupStd: boolean): number[] {
  return perGroup(returns, groups, (own) => {
    const { mean, std } = spread(own);
    const scale = scaleByGroupStd ? 1 / (std + STD_EPSILON) : 1;
    return own.map((value) => (value - mean) * scale);
  });
}

/** RLOO: A_i = R_i - the mean of the group's other returns. Parameters as in `grpoAdvantages`. */
export function rlooAdvantages(returns: readonly number[], groups: number[][]): number[] {
  return perGroup(returns, groups, (own) => {
    const sum = own.reduce((total, value) => total + value, 0);
    return own.map((value) => value - (sum - value) / (own.length - 1));
  });
}

function perGroup(returns: readonly number[], groups: number[][], advantagesOf: (own: number[]) => number[]): number[] {
  const advantages = returns.map(() => 0);
  for (const members of groups) {
    if (members.length < SMALLEST_GROUP) continue;
    const own = advantagesOf(members.map((i) => returns[i]));
    for (const [j, i] of members.entries()) advantages[i] = own[j];
  }
  return advantages;
}

/** Returns the share of groups whose samples all have the same reward and so teach nothing. */
export function zeroSpreadShare(rewards: readonly number[], groups: number[][]): number {
  return groups.filter((members) => members.every((i) => rewards[i] === rewards[members[0]])).length / groups.length;
}
