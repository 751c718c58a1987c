/** What a valid submission earns, by `tasks[].reward`. Begin with `earnedReward`; README.md has formulas and sources. */
import type { Grader, MedalRewards, Task } from "../../crds/trainingrun.ts";
import { rankAmong, type Thresholds } from "./mlebench-tasks.ts";

export type KindRules = Pick<Grader, "direction" | "rewardRange"> & Pick<Task, "reward" | "medals" | "medalRewards">;

/** Facts about other samples that Rank and Improvement compare a score with. */
export interface Standing {
  /** Score of the program that the sample was made from, or of the nearest ancestor with a score. Absent: a draft. */
  parentScore?: number | undefined;
  /** Scores of the valid programs of the task that its policy version had been trained on, in any order. */
  earlierScores: readonly number[];
}

/** Standing of the first draft. */
export const noStanding: Standing = { earlierScores: [] };

/** Rewards of the steps under `reward: Medal` if a task has no `medalRewards`. */
export const defaultMedalRewards: MedalRewards = { gold: 1, silver: 0.75, bronze: 0.5, median: 0.25, none: 0 };
/** From the best step to the worst. */
const STEPS = ["gold", "silver", "bronze", "median", "none"] as const;

/** Computes the reward of a valid score, before the guards' cap and the floor. */
export function earnedReward(score: number, rules: KindRules, standing: Standing): number {
  switch (rules.reward) {
    case "Medal":
      return (rules.medalRewards ?? defaultMedalRewards)[medalStep(score, rules)];
    case "Rank":
      return rankReward(score, rules, standing.earlierScores);
    case "Improvement":
      return improvement(score, rules, standing.parentScore);
    default:
      return scoreReward(score, rules);
  }
}

/** Converts a score to a reward: through `rewardRange` (`worst` -> 0, `best` -> 1, linear beyond), or by its sign alone. */
export function scoreReward(score: number, rules: Pick<KindRules, "direction" | "rewardRange">): number {
  const range = rules.rewardRange;
  if (range) return finite((score - range.worst) / (range.best - range.worst));
  return rules.direction === "Higher" ? score : -score;
}

/** Infinite for a score near the largest number. */
const finite = (reward: number) => Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, reward));

function medalStep(score: number, { direction, medals }: KindRules): (typeof STEPS)[number] {
  const { goldMedal, silverMedal, bronzeMedal, aboveMedian } = rankAmong(score, direction === "Lower", medals!);
  return goldMedal ? "gold" : silverMedal ? "silver" : bronzeMedal ? "bronze" : aboveMedian ? "median" : "none";
}

/** Computes the share of programs that this one beats, itself included: equals count half. Between 0 and 1; 0.5 for the first program. */
function rankReward(score: number, { direction }: KindRules, earlier: readonly number[]): number {
  let [worse, equal] = [0, 1]; // it equals itself
  for (const other of earlier) {
    if (other === score) equal++;
    else if (direction === "Higher" ? other < score : other > score) worse++;
  }
  return (worse + equal / 2) / (earlier.length + 1);
}

/** Computes the gain over the parent, or, of a draft, over `rewardRange.worst`, in units of the range. */
function improvement(score: number, rules: KindRules, parentScore: number | undefined): number {
  const { worst, best } = rules.rewardRange!;
  return finite((score - (parentScore ?? worst)) / (best - worst));
}

/** Returns in a line what scores earn. */
export function describeKind(rules: KindRules): string {
  const { reward, rewardRange: range, medals, medalRewards = defaultMedalRewards } = rules;
  if (reward === "Rank") return "share of the run's earlier valid programs that the program beats";
  if (reward === "Improvement")
    return `gain over the parent's score, of drafts over ${range?.worst}; ${Math.abs(range!.best - range!.worst)} earns 1`;
  if (reward === "Medal") {
    const from = (["gold", "silver", "bronze"] as const).map(
      (step) => `${step} (${medals![step]}) ${medalRewards[step]}`,
    );
    const above = medals!.median === undefined ? [] : [`above the median (${medals!.median}) ${medalRewards.median}`];
    return [...from, ...above, `else ${medalRewards.none}`].join(", ");
  }
  return range ? `score ${range.worst} earns 0, score ${range.best} earns 1` : "the score itself";
}

/**
 * Returns the rules with what the kind of reward needs: MLE-bench's thresholds and, for Improvement, its leaderboard's median and gold as a
 * range. @param leaderboard of one of MLE-bench's tasks
 */
export function withThresholds<R extends KindRules>(rules: R, leaderboard: Thresholds | undefined): R {
  if (!leaderboard) return rules;
  const { gold, silver, bronze, median } = leaderboard;
  if (rules.reward === "Medal") return { ...rules, medals: rules.medals ?? { gold, silver, bronze, median } };
  if (rules.reward !== "Improvement" || median === undefined) return rules;
  return { ...rules, rewardRange: rules.rewardRange ?? { worst: median, best: gold } };
}

/** Returns one line with a remedy if the rules cannot give the reward. */
export function rewardKindFault({
  reward,
  direction,
  rewardRange,
  medals,
  medalRewards,
}: KindRules): string | undefined {
  if (reward === "Improvement" && !rewardRange)
    return "reward Improvement is measured in units of grader.rewardRange, and the task has none; give one, or another reward";
  if (reward !== "Medal") return undefined;
  if (!medals)
    return "reward Medal needs scores that earn medals, which longrun knows of MLE-bench's tasks alone; give tasks[].medals, or another reward";
  const scores = [medals.gold, medals.silver, medals.bronze, medals.median ?? medals.bronze];
  const isOrdered = (values: readonly number[], lowerIsBetter: boolean) =>
    values.every((value, i) => i === 0 || (lowerIsBetter ? value >= values[i - 1]! : value <= values[i - 1]!));
  const better = direction.toLowerCase();
  if (!isOrdered(scores, direction === "Lower"))
    return `medals: gold, silver, bronze and median are ${scores.join(", ")}, but ${better} scores are better; put them in order, gold best`;
  const steps = STEPS.map((step) => (medalRewards ?? defaultMedalRewards)[step]);
  if (isOrdered(steps, false)) return undefined;
  return `medalRewards: gold, silver, bronze, median and none earn ${steps.join(", ")}; give no step less than a worse one`;
}
