import type { Algorithm } from "../../crds/trainingrun.ts";
import type { LogProbs } from "../engine/index.ts";
import {
  type Advantages,
  addValidScores,
  batchMeanAdvantages,
  generalizedAdvantages,
  tokenRewards,
  whiten,
} from "./advantages.ts";
import { grpoAdvantages, rlooAdvantages, samplesPerPrompt } from "./groups.ts";

/** What the advantages of a batch are made of, one entry a sample. */
interface AdvantageInputs {
  rewards: number[];
  /** Scores with their sign such that higher is better; undefined where there is no valid one. */
  goodness: (number | undefined)[];
  /** Indices of the samples of each prompt. */
  groups: number[][];
  /** Duration weights. */
  weights: number[];
  /** With the weights that the update starts from. */
  evaluated: LogProbs[];
}

/** Advantages and returns of a batch: KL penalty where `klPlacement` is `Reward`, baseline, whitening, valid scores. */
export function batchAdvantages(inputs: AdvantageInputs, o: Algorithm): Advantages[] {
  const results = baselineAdvantages(inputs, o);
  const advantages = results.map((result) => result.advantages);
  if (whitening(o) === "Plain") whiten(advantages);
  const compared = samplesPerPrompt(o) > 1 ? inputs.groups : undefined;
  addValidScores(advantages, inputs.goodness, o.validScoreWeight, compared);
  return results;
}

/**
 * Whether samples that are compared and count differ in reward, or in score where `validScoreWeight` counts it. Where they
 * do not, advantages hold rounding, the KL penalty and the critic's error alone, and whitening and Adam make whole steps
 * of these: they destroyed a policy whose first batch had no valid program (test/experiments, E2).
 */
export function hasSignal({ rewards, goodness, groups, weights }: AdvantageInputs, o: Algorithm): boolean {
  const compared = samplesPerPrompt(o) > 1 ? groups : [[...rewards.keys()]];
  const differ = (values: number[]) => values.some((value) => value !== values[0]);
  return compared.some((members) => {
    const counted = members.filter((i) => weights[i]! > 0);
    const scores = o.validScoreWeight === 0 ? [] : counted.flatMap((i) => goodness[i] ?? []);
    return differ(counted.map((i) => rewards[i]!)) || differ(scores);
  });
}

function baselineAdvantages({ rewards, groups, evaluated }: AdvantageInputs, o: Algorithm) {
  const beta = klPlacement(o) === "Reward" ? o.klCoefficient : 0;
  const perToken = rewards.map((reward, i) => tokenRewards(reward, evaluated[i], beta));
  const returns = () => perToken.map((own) => own.reduce((sum, reward) => sum + reward, 0));
  /** The whole response is one action. */
  const alike = (advantages: number[]) =>
    advantages.map((advantage, i): Advantages => {
      const same = () => new Float32Array(perToken[i].length).fill(advantage);
      return { advantages: same(), returns: same() };
    });
  switch (o.baseline) {
    case "Critic":
      return perToken.map((own, i) => generalizedAdvantages(own, evaluated[i].values, o.gamma, o.lambda));
    case "BatchMean": {
      const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
      return perToken.map((own) => batchMeanAdvantages(own, mean, o.gamma));
    }
    case "GRPO":
      return alike(grpoAdvantages(returns(), groups, o.scaleByGroupStd));
    case "RLOO":
      return alike(rlooAdvantages(returns(), groups));
  }
}

/** What `whitening: Auto` comes to: group baselines are used as they are. */
function whitening(o: Algorithm): Exclude<Algorithm["whitening"], "Auto"> {
  if (o.whitening !== "Auto") return o.whitening;
  return samplesPerPrompt(o) > 1 ? "Off" : "Plain";
}

/** What `klPlacement: Auto` comes to: what the papers of the algorithms have. */
export function klPlacement(o: Pick<Algorithm, "klPlacement" | "baseline">): Exclude<Algorithm["klPlacement"], "Auto"> {
  if (o.klPlacement !== "Auto") return o.klPlacement;
  return o.baseline === "GRPO" ? "Loss" : "Reward";
}
