import type { Algorithm } from "../../crds/trainingrun.ts";
import type { LogProbs } from "../engine/index.ts";
import {
  type Advantages,
  addValidScores,
  batchMeanAdvantages,
  generalizedAdvantages,
  tokenRewards,
  tokenStatistics,
  whitenBy,
} from "./advantages.ts";
import { groupsOf, grpoAdvantages, rlooAdvantages, samplesPerPrompt } from "./groups.ts";

/** Inputs of a batch's advantages, one entry per sample. */
interface AdvantageInputs {
  rewards: number[];
  tasks: string[];
  /** Scores with their sign such that higher is better; undefined where there is no valid one. */
  goodness: (number | undefined)[];
  /** Indices of the samples of each prompt. */
  groups: number[][];
  /** Of durations, as `durationWeights` returns them. */
  weights: number[];
  /** With the weights that the update starts from. */
  evaluated: LogProbs[];
}

/** Samples that are normalised together: `members` are normalised by the statistics of `reference`. Both are indices of samples. */
interface Share {
  members: number[];
  reference: number[];
}

/**
 * Splits a batch as `normalizeBy` says. `Task`: rewards of different tasks do not share a scale, so each task is measured by itself.
 * The only sample of its task is measured by the whole batch: alone it would have advantage 0, and the policy would never learn a
 * rare task.
 */
function sharesOf(tasks: string[], o: Algorithm): Share[] {
  const all = [...tasks.keys()];
  if (o.normalizeBy === "Batch") return [{ members: all, reference: all }];
  return groupsOf(tasks).map((members) => ({ members, reference: members.length > 1 ? members : all }));
}

/** Advantages and returns of a batch: KL penalty where `klPlacement` is `Reward`, baseline, whitening, valid scores. */
export function batchAdvantages(inputs: AdvantageInputs, o: Algorithm): Advantages[] {
  const shares = sharesOf(inputs.tasks, o);
  const results = baselineAdvantages(inputs, shares, o);
  const advantages = results.map((result) => result.advantages);
  const pick = (indices: number[]) => indices.map((i) => advantages[i]!);
  if (whitening(o) === "Plain") {
    const measured = shares.map(({ reference }) => tokenStatistics(pick(reference))); // before any of them changes
    for (const [j, { members }] of shares.entries()) whitenBy(pick(members), measured[j]!);
  }
  const compared = samplesPerPrompt(o) > 1 ? inputs.groups : shares.map(({ members }) => members);
  addValidScores(advantages, inputs.goodness, o.validScoreWeight, compared);
  for (const share of shares) if (!shareHasSignal(share, inputs, o)) for (const own of pick(share.members)) own.fill(0);
  return results;
}

/**
 * Returns whether compared samples of weight above 0 differ in reward, or in score if `validScoreWeight` counts it. If they do not,
 * advantages hold only rounding, the KL penalty and the critic's error. Whitening and Adam turn these into full steps, which
 * destroyed a policy whose first batch had no valid program (test/experiments, E2). A task without signal
 * beside others that have one gets advantages of 0.
 */
export function hasSignal(inputs: Omit<AdvantageInputs, "evaluated">, o: Algorithm): boolean {
  return sharesOf(inputs.tasks, o).some((share) => shareHasSignal(share, inputs, o));
}

function shareHasSignal(
  { members, reference }: Share,
  inputs: Omit<AdvantageInputs, "evaluated">,
  o: Algorithm,
): boolean {
  const { rewards, goodness, groups, weights } = inputs;
  const own = new Set(members);
  const compared = samplesPerPrompt(o) > 1 ? groups.filter(([first]) => own.has(first!)) : [reference];
  const differ = (values: number[]) => values.some((value) => value !== values[0]);
  return compared.some((samples) => {
    const counted = samples.filter((i) => weights[i]! > 0);
    const scores = o.validScoreWeight === 0 ? [] : counted.flatMap((i) => goodness[i] ?? []);
    return differ(counted.map((i) => rewards[i]!)) || differ(scores);
  });
}

function baselineAdvantages({ rewards, groups, evaluated }: AdvantageInputs, shares: Share[], o: Algorithm) {
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
      const means: number[] = [];
      for (const { members, reference } of shares) {
        const mean = reference.reduce((sum, i) => sum + rewards[i]!, 0) / reference.length;
        for (const i of members) means[i] = mean;
      }
      return perToken.map((own, i) => batchMeanAdvantages(own, means[i]!, o.gamma));
    }
    case "GRPO":
      return alike(grpoAdvantages(returns(), groups, o.scaleByGroupStd));
    case "RLOO":
      return alike(rlooAdvantages(returns(), groups));
  }
}

/** Resolves `whitening: Auto`: advantages from group baselines are not whitened. */
function whitening(o: Algorithm): Exclude<Algorithm["whitening"], "Auto"> {
  if (o.whitening !== "Auto") return o.whitening;
  return samplesPerPrompt(o) > 1 ? "Off" : "Plain";
}

/** Resolves `klPlacement: Auto` to the placement in the algorithm's paper. */
export function klPlacement(o: Pick<Algorithm, "klPlacement" | "baseline">): Exclude<Algorithm["klPlacement"], "Auto"> {
  if (o.klPlacement !== "Auto") return o.klPlacement;
  return o.baseline === "GRPO" ? "Loss" : "Reward";
}
