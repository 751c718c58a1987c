/** `summary.json` of a run folder: the state and figures of the run as a whole. It is written anew after each change. */

import { join } from "node:path";
import type { SolveFigures } from "../../proto/solve.ts";
import type { CommonError } from "./common-errors.ts";
import { readIfThere, replaceFile } from "./files.ts";

/** The corpus that the starting policy was pretrained on, and the score of its best program. */
export interface CorpusSummary {
  programs: number;
  /** Score of its best program on the run's task; absent if it was never measured. */
  bestScore?: number;
  /** Description of that program, e.g. its kind of model. */
  bestProgram?: string;
}

/** Protocols of an evaluation: learner/evaluation/README.md explains each. */
export type Protocol = "Paper" | "Equal" | "Scratch";

/** Both ends, in the number's own unit. */
export type Interval = [low: number, high: number];

export type Medal = "gold" | "silver" | "bronze";

/** The numbers that have intervals; null where there is nothing to compute one from. */
export interface Statistics {
  /** Valid programs divided by all programs. */
  validFraction: number | null;
  /** Mean over valid programs, in the task's unit; of private scores, if the answers have a private part. */
  meanScore: number | null;
  /** The score of the best program; its private score, if there is a private part: the public score chooses the program. */
  bestScore: number | null;
  /** Mean of the scores between `rewardRange.worst` (0) and `.best` (1), clipped; null without a range. */
  meanNormalizedScore: number | null;
  /** Share of all programs that would have won a medal; null where a score has no rank. */
  medalFraction: number | null;
  /** Share of all programs that are strictly better than the median team. */
  aboveMedianFraction: number | null;
}

export interface Figures extends Statistics {
  validFraction: number;
  samples: number;
  meanReward: number | null;
  meanDurationSeconds: number | null;
  /** Programs by the best medal that each would have won; null where a score has no rank. */
  medals: Record<Medal, number> | null;
  bestMedal: Medal | null;
  /** The best and the mean public score; only with a private part. */
  publicBestScore?: number | null;
  publicMeanScore?: number | null;
  /** The 95 % interval. For a best score it ends at the best score seen, unless the score is private. */
  intervals: Record<keyof Statistics, Interval | null>;
}

/** The evaluation of one policy. */
export interface EvaluationSummary extends Figures {
  /** Finished iterations of the evaluated policy. */
  iteration: number;
  /** Executions that the infrastructure lost; they count nowhere else. */
  lost: number;
  /** The same by kind of prompt, where there is more than one. */
  kinds?: Record<"scratch" | "improve", Figures>;
}

/** Settings of an evaluation. Only numbers with the same settings can be compared. */
export interface EvaluationSettings {
  task: string;
  metric: string;
  direction: "Higher" | "Lower";
  rewardSplit: "Full" | "Half";
  /** Absent: an older longrun evaluated. */
  privateShare?: number;
  protocol: Protocol;
  /** N. */
  samples: number;
  temperature: number;
  seed: number;
  /** Confidence level of the intervals. */
  confidence: number;
}

/** Returns the share of the answers that the reported scores are of; undefined without a private part: they are of all. */
export function privateShareOf({ rewardSplit, privateShare = 0 }: EvaluationSettings): number | undefined {
  return rewardSplit === "Half" ? 0.5 : privateShare || undefined;
}

/** Returns the name of the reported scores, e.g. `MAE` or `private MAE`. */
export function reportedMetric(settings: EvaluationSettings | undefined): string {
  if (!settings) return "score";
  return privateShareOf(settings) === undefined ? settings.metric : `private ${settings.metric}`;
}

/** The evaluated policy: before training, after training, or from a model folder. */
export type When = "before" | "after" | "model";

export interface Evaluation extends Partial<Record<When, EvaluationSummary>> {
  settings?: EvaluationSettings;
  /** Between iterations (`evaluation.everyIterations`), in their order. */
  during?: EvaluatedBetween[];
  /** After training minus before it. */
  change?: Change;
  /** Evaluations by task name, in runs with several tasks; the other fields are then absent. */
  tasks?: Record<string, Evaluation>;
}

/** Returns the evaluations of all tasks. */
export const evaluationsOf = (evaluation: Evaluation): Evaluation[] =>
  evaluation.tasks ? Object.values(evaluation.tasks) : [evaluation];

/** Returns the evaluation of a task, an empty one if there is none. An older longrun, which had one task, did not name it. */
export const evaluationOf = (evaluation: Evaluation, task: string): Evaluation =>
  evaluationsOf(evaluation).find(({ settings }) => settings === undefined || settings.task === task) ?? {};

/** Returns `all` with the evaluation of one task replaced. @param several tasks: a run that had one task may get more */
export function withEvaluation(all: Evaluation, own: Evaluation, several: boolean): Evaluation {
  if (!several && !all.tasks) return own;
  const known = evaluationsOf(all).flatMap((each) => (each.settings ? [[each.settings.task, each] as const] : []));
  return { tasks: { ...Object.fromEntries(known), [own.settings!.task]: own } };
}

/** `lineage`: the training that made the weights. After a restart an iteration can be trained again, with other weights. */
export type EvaluatedBetween = EvaluationSummary & { lineage: number };

export interface Change extends Statistics {
  intervals: Record<keyof Statistics, Interval | null>;
}

/** The warm start of a run (`spec.warmStart`). */
export interface WarmStartSummary {
  /** Examples that are trained on, held out, and left out: of too many tokens, or equal to an earlier one. */
  examples: number;
  heldOut: number;
  tooLong: number;
  repeated: number;
  steps: number;
  taken: number;
  isOver: boolean;
  /** Mean cross-entropy of a batch's response tokens, nats, in the first and in the newest step. */
  firstLoss: number | null;
  loss: number | null;
  /** How well the policy predicts the held-out responses, before the first step and lately. */
  before?: { loss: number; accuracy: number } | undefined;
  newest?: { loss: number; accuracy: number } | undefined;
  /** Seconds of its steps. */
  seconds: number;
}

/** A search for a solution (`longrun solve`). */
export interface SolveSummary extends SolveFigures {
  metric: string;
  direction: "Higher" | "Lower";
}

export interface RunSummary {
  state: "running" | "succeeded" | "failed" | "stopped";
  /** For a person: the obstacle or the failure, and its remedy. */
  message: string;
  startedAt: string;
  updatedAt: string;
  /** Number of finished iterations. */
  iterations: number;
  elapsedSeconds: number;
  evaluation: Evaluation;
  warmStart?: WarmStartSummary;
  solve?: SolveSummary | undefined;
  corpus?: CorpusSummary;
  /** The commonest errors, as long as the run has had no valid program. */
  commonErrors?: readonly CommonError[] | undefined;
  /** longrun, node, onnxruntime, python, numpy, … as found. */
  versions: Record<string, string>;
  isolationLevel?: string;
}

/** Returns the summary of a run that begins. */
export function newSummary(corpus: CorpusSummary | undefined, versions: Record<string, string>): RunSummary {
  const now = new Date().toISOString();
  return {
    state: "running",
    message: "",
    startedAt: now,
    updatedAt: now,
    iterations: 0,
    elapsedSeconds: 0,
    evaluation: {},
    ...(corpus && { corpus }),
    versions,
  };
}

export async function writeSummary(runDirectory: string, summary: RunSummary): Promise<void> {
  await replaceFile(join(runDirectory, "summary.json"), `${JSON.stringify(summary, null, 2)}\n`);
}

/** Undefined if there is none yet. */
export async function readSummary(runDirectory: string): Promise<RunSummary | undefined> {
  const text = await readIfThere(join(runDirectory, "summary.json"));
  return text === undefined ? undefined : (JSON.parse(text) as RunSummary);
}
