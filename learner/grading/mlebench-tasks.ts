import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { Grader } from "../../crds/trainingrun.ts";

/** One of the twelve tasks as mlebench.yaml describes it. */
export interface MleBenchTask {
  /** What is to be predicted, for prompts. */
  statement: string;
  metric: Grader["metric"];
  direction: Grader["direction"];
  /** Files below prepared/public that programs need, besides the sample submission; a folder's name ends with a slash. */
  files: string[];
  /** Fields of public files that give the labels away, by file. */
  leaks?: { file: string; field: string; why: string }[];
  /** Below prepared/private. */
  answers: string;
  /** Below prepared/public. */
  sample: string;
  idColumn: string;
  targetColumns: string[];
  /** What is checked before a score is computed, in this order: names of `checks` in mlebench.ts. */
  checks: string[];
  ids: "Sorted" | "List" | "Position";
  rounding: "Numpy" | "Exact";
  rewardFloor: number;
  leaderboard: Leaderboard;
}

/** Of the competition: scores that earn a medal, and the median of all teams. */
export interface Leaderboard {
  teams: number;
  gold: number;
  silver: number;
  bronze: number;
  median: number;
  best: number;
  worst: number;
}

let tasks: Record<string, MleBenchTask> | undefined;

export function mleBenchTasks(): Record<string, MleBenchTask> {
  tasks ??= parse(readFileSync(new URL("mlebench.yaml", import.meta.url), "utf8")) as Record<string, MleBenchTask>;
  return tasks;
}

/** The task of that id, undefined if it is none of the twelve. */
export function mleBenchTask(id: string): MleBenchTask | undefined {
  return Object.hasOwn(mleBenchTasks(), id) ? mleBenchTasks()[id] : undefined;
}

/** The best medal that a score of five decimals reaches, and whether it is strictly better than the median team's. */
export function rankOf(score: number | undefined, leaderboard: Leaderboard) {
  const { gold, silver, bronze, median, best, worst } = leaderboard;
  // The leaderboard is sorted, so its ends say which way is better.
  const lowerIsBetter = best < worst;
  const reaches = (threshold: number) =>
    score !== undefined && (lowerIsBetter ? score <= threshold : score >= threshold);
  const goldMedal = reaches(gold);
  const silverMedal = !goldMedal && reaches(silver);
  const bronzeMedal = !goldMedal && !silverMedal && reaches(bronze);
  const aboveMedian = score !== undefined && (lowerIsBetter ? score < median : score > median);
  return { goldMedal, silverMedal, bronzeMedal, anyMedal: goldMedal || silverMedal || bronzeMedal, aboveMedian };
}
