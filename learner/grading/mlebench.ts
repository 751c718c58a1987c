/**
 * The graders of the twelve MLE-bench tasks, as openai/mle-bench (commit 783b15a) grades under pandas 2.2, scikit-learn 1.6
 * and scipy 1.15. What a task checks, and in which order, is data (`mlebench.yaml`); `checks.ts` has the checks.
 */

import { checks } from "./checks.ts";
import type { Column } from "./column.ts";
import { readFrame } from "./frame.ts";
import { type Graded, type Halves, halvesOf, inOrder, pick, type Values } from "./grade.ts";
import { guardsOf } from "./guards.ts";
import { IdIndex } from "./ids.ts";
import { floats, floatsAboveMinusOne, kappaLabels, labelsOrTexts, numbers, texts } from "./inputs.ts";
import { accuracy, quadraticWeightedKappa } from "./labels.ts";
import type { MleBenchMetric, MleBenchTask } from "./mlebench-tasks.ts";
import { logLoss, rocAuc } from "./probabilities.ts";
import { type Refusal, reasonOf, refuse } from "./reasons.ts";
import { pearson, rmsle } from "./regression.ts";
import { roundExact, roundNumpy } from "./rounding.ts";
import { firstWordless, wordJaccard } from "./words.ts";

interface MleBenchMetricRules {
  /** What the metric takes from a column of the submission; `truth` is the answers' column. */
  read: (column: Column, truth?: Values) => Values | Refusal;
  /** @returns the score, NaN where it is undefined */
  score: (truth: readonly Values[], predicted: readonly Values[], task: MleBenchTask) => number | Refusal;
}

/** A metric over the columns [target][row] of numbers. */
const ofNumbers =
  (score: (truth: Float64Array[], predicted: Float64Array[]) => number): MleBenchMetricRules["score"] =>
  (truth, predicted) =>
    score(truth as Float64Array[], predicted as Float64Array[]);

const columnMean = (metric: (truth: Float64Array, predicted: Float64Array) => number) =>
  ofNumbers((truth, predicted) => truth.reduce((sum, t, c) => sum + metric(t, predicted[c]!), 0) / truth.length);

const metrics: Record<MleBenchMetric, MleBenchMetricRules> = {
  RocAuc: { read: floats, score: columnMean(rocAuc) },
  Accuracy: { read: labelsOrTexts, score: columnMean(accuracy) },
  QuadraticWeightedKappa: { read: kappaLabels, score: columnMean(quadraticWeightedKappa) },
  Pearson: { read: numbers, score: columnMean(pearson) },
  RMSLE: { read: floatsAboveMinusOne, score: columnMean(rmsle) },
  LogLoss: { read: numbers, score: ofNumbers(logLoss) },
  WordJaccard: {
    read: texts,
    score: (truth, predicted, { targetColumns }) => {
      const [answers, words] = [truth[0] as readonly string[], predicted[0] as readonly string[]];
      const row = firstWordless(answers, words);
      return row < 0 ? wordJaccard(answers, words) : refuse("noWords", { column: targetColumns[0]!, row: row + 1 });
    },
  },
};

/** The answers of a task, ready to compare submissions with. */
export interface MleBenchAnswers {
  task: MleBenchTask;
  rows: number;
  /** Absent where rows are matched by their position. */
  ids: IdIndex | undefined;
  /** [target][row]. */
  truth: Values[];
  /** Likewise; absent if there is no readable sample submission. */
  sample?: Values[];
  /** Absent with `rewardSplit: Full`. */
  halves?: Halves;
}

/** Most bytes of a submission to one of the twelve tasks; the largest of them needs 5 MB. */
export const maxSubmissionBytes = 64 * 2 ** 20;

/** @throws Error in one line if these are not the answers of the task */
export function readMleBenchAnswers(
  bytes: Buffer,
  task: MleBenchTask,
  o: { sample?: Buffer; split?: "Full" | "Half" } = {},
): MleBenchAnswers {
  const frame = readFrame(bytes, { bytes: 2 ** 31, rows: 50_000_000 });
  if ("reason" in frame) throw new Error(frame.reason.message);
  if (frame.rows === 0) throw new Error("there is no row");
  const column = (name: string): Column => {
    const found = frame.column(name);
    if (found) return found;
    throw new Error(`missing column ${name}; the header is ${frame.names.slice(0, 20).join(",")}`);
  };
  const truth = task.targetColumns.map((name) => {
    const values = metrics[task.metric].read(column(name));
    if ("reason" in values) throw new Error(values.reason.message);
    return values;
  });
  const exact = task.checks.includes("exactColumns") || task.checks.includes("shape");
  const extra = frame.names.find((name) => name !== task.idColumn && !task.targetColumns.includes(name));
  if (exact && extra !== undefined) throw new Error(`unexpected column ${extra}; the task has ids and targets alone`);
  const ids = task.ids === "Position" ? undefined : new IdIndex(column(task.idColumn), task.ids === "List");
  const answers: MleBenchAnswers = { task, rows: frame.rows, ids, truth };
  if (o.split === "Half") answers.halves = halvesOf(frame.rows);
  const sample = o.sample && predictions(o.sample, answers);
  if (sample && !("reason" in sample)) answers.sample = sample;
  return answers;
}

/** Grades a submission. It is a value: whatever the bytes, it never throws, and its time and memory are bounded. */
export function gradeMleBench(submission: Buffer, answers: MleBenchAnswers): Graded {
  const { task, truth, halves, sample } = answers;
  const refused = ({ reason }: Refusal): Graded => ({ valid: false, reason, guards: [] });
  const predicted = predictions(submission, answers);
  if ("reason" in predicted) return refused(predicted);
  const scoreOf = (rows?: Uint32Array) => {
    const { score } = metrics[task.metric];
    return rows ? score(pick(truth, rows), pick(predicted, rows), task) : score(truth, predicted, task);
  };
  const scoreRaw = scoreOf(halves?.reward);
  if (typeof scoreRaw !== "number") return refused(scoreRaw);
  if (!Number.isFinite(scoreRaw)) return refused(refuse("undefinedScore", { expected: task.metric }));
  const rounded = task.rounding === "Numpy" ? roundNumpy : roundExact;
  const reported = halves && scoreOf(halves.reported);
  return {
    valid: true,
    score: rounded(scoreRaw),
    scoreRaw,
    ...(typeof reported === "number" && { reportedScore: rounded(reported) }),
    reason: reasonOf("valid"),
    guards: guardsOf(scoreRaw, task.metric, predicted, truth, sample),
  };
}

/** The target columns in the order of the answers' rows, if the submission passes the task's checks. */
function predictions(submission: Buffer, answers: MleBenchAnswers): Values[] | Refusal {
  const { task, truth, rows } = answers;
  const frame = readFrame(submission, { bytes: maxSubmissionBytes, rows });
  if ("reason" in frame) return frame;
  for (const name of task.checks) {
    const refusal = checks[name](frame, task, rows);
    if (refusal) return refusal;
  }
  const alignment = answers.ids?.match(frame.column(task.idColumn)!);
  if (alignment && "reason" in alignment) return alignment;
  const predicted: Values[] = [];
  for (const [i, name] of task.targetColumns.entries()) {
    const values = metrics[task.metric].read(frame.column(name)!, truth[i]);
    if ("reason" in values) return values;
    predicted.push(inOrder(values, alignment));
  }
  return predicted;
}
