import { readFileSync } from "node:fs";
import { parse } from "yaml";

/** What a grader of MLE-bench can check before it computes a score; `mlebench.ts` has the checks. */
export type CheckName =
  | "idColumn"
  | "targetColumns"
  | "notEmpty"
  | "rowCount"
  | "exactColumns"
  | "shape"
  | "numeric"
  | "zeroToOneOrMissing"
  | "zeroToOne"
  | "positionalZeroToOne"
  | "sumsCloseToOne"
  | "positionalSumsCloseToOne"
  | "sumsRoundToOne";

export type MleBenchMetric =
  | "RocAuc"
  | "Accuracy"
  | "QuadraticWeightedKappa"
  | "Pearson"
  | "RMSLE"
  | "LogLoss"
  | "WordJaccard";

/** One of the twelve tasks as mlebench.yaml describes it. */
export interface MleBenchTask {
  /** What is to be predicted, for prompts. */
  statement: string;
  metric: MleBenchMetric;
  direction: "Higher" | "Lower";
  /** Files below prepared/public that programs need, besides the sample submission; a folder's name ends with a slash. */
  files: string[];
  /** Fields of public files that give the labels away, by file. */
  leaks?: { file: string; field: string; why: string }[];
  /** File below prepared/private. */
  answers: string;
  /** File below prepared/public. */
  sample: string;
  idColumn: string;
  targetColumns: string[];
  checks: CheckName[];
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

/** The twelve tasks by their ids. */
export function mleBenchTasks(): Record<string, MleBenchTask> {
  tasks ??= parse(readFileSync(new URL("mlebench.yaml", import.meta.url), "utf8")) as Record<string, MleBenchTask>;
  return tasks;
}

/** The task of that id, undefined if it is none of the twelve. */
export function mleBenchTask(id: string): MleBenchTask | undefined {
  return Object.hasOwn(mleBenchTasks(), id) ? mleBenchTasks()[id] : undefined;
}
