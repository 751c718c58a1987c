/** Grades submissions to tasks that name a metric: the bundled ones and a user's own. */
import type { Grader } from "../../crds/trainingrun.ts";
import { type Column, isNumeric } from "./column.ts";
import { type Frame, readFrame } from "./frame.ts";
import { type Guard, guardsOf } from "./guards.ts";
import { type Alignment, IdIndex } from "./ids.ts";
import { floatsAboveMinusOne, integerLabels, numbers, texts } from "./inputs.ts";
import { type Metric, metrics, scoreColumns } from "./metrics.ts";
import { type Reason, type Refusal, reasonOf, refuse } from "./reasons.ts";

/** What a grader says about a submission. It is a value: no submission makes a grader throw. */
export interface Graded {
  valid: boolean;
  /** In the task's own unit, as it is reported; there if valid. With `rewardSplit: Half`, of the half that makes the reward. */
  score?: number;
  /** The score before it was rounded. */
  scoreRaw?: number;
  /** With `rewardSplit: Half`: the score on the other half, which no reward ever sees. */
  reportedScore?: number;
  reason: Reason;
  guards: Guard[];
}

/** The values of a target column by row. */
export type Values = Float64Array | readonly string[];

/** Rows that make the reward, and the others. */
export interface Halves {
  reward: Uint32Array;
  reported: Uint32Array;
}

/** The answers of a task, ready to compare submissions with. Made once by `readAnswers`. */
export interface Answers {
  rows: number;
  ids: IdIndex;
  /** Column-major, [target][row]; labels that are text are numbered. */
  truth: Values[];
  /** Numbers of text labels, absent where labels are numbers. */
  labelNumbers?: Map<string, number>;
  /** Column-major like `truth`; absent if the task has no readable sample submission. */
  sample?: Values[];
  /** Absent with `rewardSplit: Full`. */
  halves?: Halves;
  maxBytes: number;
}

/** Sums of probabilities are checked this exactly (numpy.isclose with atol 1e-6). */
const sumTolerance = 1.1e-5;

/**
 * Grades a submission: needed columns, the ids of the answers each exactly once in any order, finite numbers (labels or
 * texts, where the metric takes them), the grader's bounds, probabilities in 0..1 where the metric wants them. Further
 * columns are ignored.
 */
export function gradeSubmission(submission: Buffer, answers: Answers, grader: Grader): Graded {
  const predicted = predictions(submission, answers, grader);
  if ("reason" in predicted) return { valid: false, reason: predicted.reason, guards: [] };
  const { halves, truth } = answers;
  const score = scoreOf(grader, truth, predicted, halves?.reward);
  if (!Number.isFinite(score))
    return { valid: false, reason: reasonOf("undefinedScore", { expected: grader.metric }), guards: [] };
  return {
    valid: true,
    score,
    scoreRaw: score,
    ...(halves && { reportedScore: scoreOf(grader, truth, predicted, halves.reported) }),
    reason: reasonOf("valid"),
    guards: guardsOf(score, grader.metric, predicted, answers.truth, answers.sample),
  };
}

function scoreOf(grader: Grader, truth: Values[], predicted: Values[], rows?: Uint32Array): number {
  return rows
    ? scoreColumns(grader.metric, pick(truth, rows), pick(predicted, rows), grader)
    : scoreColumns(grader.metric, truth, predicted, grader);
}

/** The target columns in the order of the answers' rows. */
function predictions(submission: Buffer, answers: Answers, grader: Grader): Values[] | Refusal {
  const frame = readFrame(submission, { bytes: answers.maxBytes, rows: answers.rows, wholeColumns: true });
  if ("reason" in frame) return frame;
  const missing = [grader.idColumn, ...grader.targetColumns].find((name) => !frame.names.includes(name));
  if (missing !== undefined)
    return refuse("missingColumn", { column: missing, found: frame.names.slice(0, 100).join(",") });
  if (frame.rows !== answers.rows) return refuse("rowCount", { found: frame.rows, expected: answers.rows });
  const alignment = answers.ids.match(frame.column(grader.idColumn)!);
  if (alignment && "reason" in alignment) return alignment;
  const predicted: Values[] = [];
  for (const name of grader.targetColumns) {
    const values = targetValues(frame.column(name)!, metrics[grader.metric], answers.labelNumbers);
    if ("reason" in values) return values;
    const refusal = values instanceof Float64Array ? outOfBounds(values, name, grader) : undefined;
    if (refusal) return refusal;
    predicted.push(inOrder(values, alignment));
  }
  return wrongSum(predicted, grader) ?? predicted;
}

/** What the metric takes from a column. */
function targetValues(column: Column, { input }: Metric, labelNumbers?: Map<string, number>): Values | Refusal {
  switch (input) {
    case "texts":
      return texts(column);
    case "labels":
      return labelNumbers ? numberedLabels(column, labelNumbers) : numbers(column);
    case "binary": {
      const values = numbers(column);
      if ("reason" in values) return values;
      const row = values.findIndex((value) => value !== 0 && value !== 1);
      if (row < 0) return values;
      return refuse("outOfRange", { column: column.name, row: row + 1, value: values[row]!, expected: "0 or 1" });
    }
    case "integers":
      return integerLabels(column);
    case "aboveMinusOne":
      return floatsAboveMinusOne(column);
    default:
      return numbers(column);
  }
}

function outOfBounds(values: Float64Array, column: string, { metric, bounds }: Grader): Refusal | undefined {
  const least = Math.max(bounds?.least ?? -Infinity, metrics[metric].probabilities ? 0 : -Infinity);
  const most = Math.min(bounds?.most ?? Infinity, metrics[metric].probabilities ? 1 : Infinity);
  const row = values.findIndex((value) => value < least || value > most);
  if (row < 0) return undefined;
  const range =
    most === Infinity ? `at least ${least}` : least === -Infinity ? `at most ${most}` : `in ${least}..${most}`;
  return refuse("outOfRange", { column, row: row + 1, value: values[row]!, expected: range });
}

function wrongSum(predicted: readonly Values[], { metric }: Grader): Refusal | undefined {
  if (!metrics[metric].probabilities || predicted.length === 1) return undefined;
  for (let row = 0; row < predicted[0]!.length; row++) {
    const sum = (predicted as Float64Array[]).reduce((total, column) => total + column[row]!, 0);
    if (Math.abs(sum - 1) > sumTolerance) return refuse("rowSum", { row: row + 1, value: sum });
  }
  return undefined;
}

/** @throws Error in one line if the answers themselves do not fit the grader */
export function readAnswers(
  bytes: Buffer,
  grader: Grader,
  o: { sample?: Buffer; split?: "Full" | "Half" } = {},
): Answers {
  const frame = readFrame(bytes, { bytes: 2 ** 31, rows: 50_000_000, wholeColumns: true });
  if ("reason" in frame) throw new Error(frame.reason.message);
  if (frame.rows === 0) throw new Error("there is no row");
  const metric = metrics[grader.metric];
  if (grader.targetColumns.length < (metric.columns ?? 1))
    throw new Error(`${grader.metric} takes a target column for each class, at least ${metric.columns}`);
  const ids = columnOf(frame, grader.idColumn);
  checkIds(ids);
  const columns = grader.targetColumns.map((name) => columnOf(frame, name));
  const labelNumbers = metric.input === "labels" && !columns.every(isNumeric) ? new Map<string, number>() : undefined;
  // Numbered from 0; labels that only a submission has get numbers below 0.
  if (labelNumbers)
    for (const column of columns)
      for (let row = 0; row < column.rows; row++) {
        const label = column.cell(row).trim();
        if (!labelNumbers.has(label)) labelNumbers.set(label, labelNumbers.size);
      }
  const truth = columns.map((column) => {
    const values = targetValues(column, metric, labelNumbers);
    if ("reason" in values) throw new Error(values.reason.message);
    return values;
  });
  const answers: Answers = {
    rows: frame.rows,
    // An id may be the text NA.
    ids: new IdIndex(ids, true),
    truth,
    ...(labelNumbers && { labelNumbers }),
    ...(o.split === "Half" && { halves: halvesOf(frame.rows) }),
    // Probabilities of 20 digits where the answers say 0 or 1, and room for a few columns more.
    maxBytes: Math.min(2 ** 30, Math.max(2 ** 20, 32 * bytes.length)),
  };
  const sample = o.sample && predictions(o.sample, answers, grader);
  if (sample && !("reason" in sample)) answers.sample = sample;
  return answers;
}

/** @throws Error if an id is missing or stands twice */
function checkIds(ids: Column): void {
  const idOf = (row: number) => (isNumeric(ids) ? ids.values[row]! : ids.cell(row));
  const all = Array.from({ length: ids.rows }, (_, row) => idOf(row));
  const missing = all.findIndex(Number.isNaN);
  if (missing >= 0) throw new Error(reasonOf("idMissing", { column: ids.name, row: missing + 1 }).message);
  if (new Set(all).size !== all.length) throw new Error(`column ${ids.name} has repeated values`);
}

function columnOf(frame: Frame, name: string): Column {
  const column = frame.column(name);
  if (column) return column;
  throw new Error(reasonOf("missingColumn", { column: name, found: frame.names.slice(0, 100).join(",") }).message);
}

/** Labels by number; each that the answers do not have gets a number of its own below 0, which is never right. */
function numberedLabels(column: Column, known: ReadonlyMap<string, number>): Float64Array {
  const others = new Map<string, number>();
  return Float64Array.from({ length: column.rows }, (_, row) => {
    const label = column.cell(row).trim();
    const number = known.get(label) ?? others.get(label);
    if (number !== undefined) return number;
    others.set(label, -1 - others.size);
    return -others.size;
  });
}

/** A fixed half of the rows: every other one, which is as good as any, because the rows of a test set are shuffled. */
export function halvesOf(rows: number): Halves {
  const all = Array.from({ length: rows }, (_, row) => row);
  return {
    reward: Uint32Array.from(all.filter((row) => row % 2 === 0)),
    reported: Uint32Array.from(all.filter((row) => row % 2 === 1)),
  };
}

/** The given rows of each column. */
export function pick(columns: readonly Values[], rows: Uint32Array): Values[] {
  return columns.map((column) => inOrder(column, rows));
}

/** A column of the submission in the order of the answers' rows. */
export function inOrder(values: Values, rows: Alignment): Values {
  if (!rows) return values;
  if (!(values instanceof Float64Array)) return Array.from(rows, (row) => values[row]!);
  const ordered = new Float64Array(rows.length);
  for (let i = 0; i < rows.length; i++) ordered[i] = values[rows[i]!]!;
  return ordered;
}
