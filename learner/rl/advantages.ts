/**
 * Computes advantages from rewards. One list entry is one sample; the arrays are [response length], aligned with the response
 * tokens (the value V_t is read before token t). Sources: PPO and GAE as in verl (verl/trainer/ppo/core_algos.py).
 */
import type { LogProbs } from "../engine/index.ts";

/** Per-token advantages and returns of one sample. */
export interface Advantages {
  advantages: Float32Array;
  /** R_t = A_t + V_t before whitening, the critic's target. */
  returns: Float32Array;
}

/** Token rewards: r_t = -beta (logp - logp_ref)_t (k1), plus the scalar reward on the last token. */
export function tokenRewards(
  reward: number,
  { logProbs, referenceLogProbs }: Pick<LogProbs, "logProbs" | "referenceLogProbs">,
  klCoefficient: number,
): Float64Array {
  const rewards = new Float64Array(logProbs.length);
  for (let t = 0; t < rewards.length; t++) rewards[t] = -klCoefficient * (logProbs[t] - referenceLogProbs[t]);
  rewards[rewards.length - 1] += reward;
  return rewards;
}

/**
 * Generalised advantage estimation (Schulman et al. 2016): delta_t = r_t + gamma V_{t+1} - V_t and
 * A_t = delta_t + gamma lambda A_{t+1}; the value after the last token is 0.
 */
export function generalizedAdvantages(
  rewards: Float64Array,
  values: Float32Array,
  gamma: number,
  lambda: number,
): Advantages {
  const advantages = new Float32Array(rewards.length);
  const returns = new Float32Array(rewards.length);
  let nextValue = 0;
  let nextAdvantage = 0;
  for (let t = rewards.length - 1; t >= 0; t--) {
    nextAdvantage = rewards[t] + gamma * nextValue - values[t] + gamma * lambda * nextAdvantage;
    nextValue = values[t];
    advantages[t] = nextAdvantage;
    returns[t] = nextAdvantage + nextValue;
  }
  return { advantages, returns };
}

/** `baseline: BatchMean`: the return of each token less the mean scalar reward of the batch. */
export function batchMeanAdvantages(rewards: Float64Array, meanReward: number, gamma: number): Advantages {
  const { returns } = generalizedAdvantages(rewards, new Float32Array(rewards.length), gamma, 1);
  return { advantages: returns.map((value) => value - meanReward), returns };
}

/** Subtracts `mean` and multiplies by `scale`, in place. */
export function whitenBy(batch: Float32Array[], { mean, scale }: TokenStatistics): void {
  for (const advantages of batch) {
    for (let t = 0; t < advantages.length; t++) advantages[t] = (advantages[t] - mean) * scale;
  }
}

interface TokenStatistics {
  mean: number;
  /** 1 / sqrt(var + 1e-8), Bessel's variance. */
  scale: number;
}

/** Returns mean and scale over all tokens of the batch. A batch with fewer than two tokens stays as it is: mean 0, scale 1. */
export function tokenStatistics(batch: Float32Array[]): TokenStatistics {
  let sum = 0;
  let tokens = 0;
  for (const advantages of batch) {
    for (const value of advantages) sum += value;
    tokens += advantages.length;
  }
  if (tokens < 2) return { mean: 0, scale: 1 };
  const mean = sum / tokens;
  let squares = 0;
  for (const advantages of batch) for (const value of advantages) squares += (value - mean) ** 2;
  const variance = (squares / tokens) * (tokens / (tokens - 1));
  return { mean, scale: 1 / Math.sqrt(variance + 1e-8) };
}

/** Mean and standard deviation, Bessel's. */
export function spread(values: readonly number[]): { mean: number; std: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, std: Math.sqrt(squares / (values.length - 1)) };
}

/** `validScoreWeight`: scores are clipped to this many standard deviations, so that no outlier carries the batch. */
const SCORE_DEVIATIONS_MAX = 3;

/**
 * Adds, after whitening, weight x clip((score - mean) / std, +-3) to the advantages of valid samples, mean and std over
 * the valid samples of a group. Without it a single -10 in the batch sets the scale and hides every score difference.
 *
 * @param goodness one number a sample, higher is better, undefined where there is no valid score
 * @param groups indices of the samples that are compared with each other; by default the batch is one group
 */
export function addValidScores(
  batch: Float32Array[],
  goodness: (number | undefined)[],
  weight: number,
  groups: number[][] = [[...batch.keys()]],
): void {
  if (weight === 0) return;
  for (const members of groups) {
    const valid = members.filter((i) => goodness[i] !== undefined);
    if (valid.length < 2) continue;
    const scores = valid.map((i) => goodness[i]!);
    const { mean, std } = spread(scores);
    if (std < 1e-12) continue;
    for (const [j, i] of valid.entries()) {
      const z = Math.min(Math.max((scores[j] - mean) / std, -SCORE_DEVIATIONS_MAX), SCORE_DEVIATIONS_MAX);
      for (let t = 0; t < batch[i].length; t++) batch[i][t] += weight * z;
    }
  }
}

/** Decoupled PPO (Hilton et al. 2022): exp(proximal - behaviour), capped, detached. At lag 0 it is 1 up to rounding. */
export function importanceWeights(proximal: Float32Array, behaviour: Float32Array, cap: number): Float32Array {
  return proximal.map((logProb, t) => Math.min(Math.exp(logProb - behaviour[t]), cap));
}
