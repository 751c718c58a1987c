import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { Grader } from "../../crds/trainingrun.ts";

/** One of the twelve tasks of mlebench.yaml. */
export interface MleBenchTask {
  /** The task in a sentence or two, for prompts. */
  statement: string;
  metric: Grader["metric"];
  direction: Grader["direction"];
  /** Files below prepared/public that programs need, without the sample submission; a folder's name ends with a slash. */
  files: string[];
  /** Fields of public files that reveal the labels. */
  leaks?: { file: string; field: string; why: string }[];
  /** Path below prepared/private. */
  answers: string;
  /** Path below prepared/public. */
  sample: string;
  idColumn: string;
  targetColumns: string[];
  /** Checks before a score is computed, in this order: names of `checks` in mlebench.ts. */
  checks: string[];
  ids: "Sorted" | "List" | "Position";
  rounding: "Numpy" | "Exact";
  rewardFloor: number;
  leaderboard: Leaderboard;
}

/** The competition's scores: for each medal, and the median of all teams. */
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

/** Returns the task with that id; undefined for another id. */
export function mleBenchTask(id: string): MleBenchTask | undefined {
  return Object.hasOwn(mleBenchTasks(), id) ? mleBenchTasks()[id] : undefined;
}

/** Scores that earn medals, and the score that is beaten above the median. */
export type Thresholds = Pick<Leaderboard, "gold" | "silver" | "bronze"> & { median?: number | undefined };

/** Returns the best medal for a score of five decimals, and whether the score is strictly better than the median team's. */
export function rankOf(score: number | undefined, leaderboard: Leaderboard) {
  // The leaderboard is sorted, so its ends show the direction.
  return rankAmong(score, leaderboard.best < leaderboard.worst, leaderboard);
}

/** Returns the best medal for a score, and whether the score is strictly better than the median. */
export function rankAmong(score: number | undefined, lowerIsBetter: boolean, thresholds: Thresholds) {
  const { gold, silver, bronze, median } = thresholds;
  const reaches = (threshold: number) =>
    score !== undefined && (lowerIsBetter ? score <= threshold : score >= threshold);
  const goldMedal = reaches(gold);
  const silverMedal = !goldMedal && reaches(silver);
  const bronzeMedal = !goldMedal && !silverMedal && reaches(bronze);
  const isCompared = score !== undefined && median !== undefined;
  const aboveMedian = isCompared && (lowerIsBetter ? score < median : score > median);
  return { goldMedal, silverMedal, bronzeMedal, anyMedal: goldMedal || silverMedal || bronzeMedal, aboveMedian };
}
