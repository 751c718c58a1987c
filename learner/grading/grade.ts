import type { Grader } from "../../crds/trainingrun.ts";
import { numberOf, numericColumn, oneLine, readTable, type Table } from "./csv.ts";
import { metrics } from "./metrics.ts";

/** Valid, and yet earned by no model: counted, so that a policy that lives on them shows. */
export type Guard = "sampleSubmission" | "constant";

/** What a grader says about a submission. It is a value: no submission makes a grader throw. */
export interface Graded {
  valid: boolean;
  /** In the task's own unit; there if valid. With `rewardSplit: Half`, of the half that makes the reward. */
  score?: number;
  /** With `rewardSplit: Half`: the score on the other half, which no reward ever sees. */
  reportedScore?: number;
  /** `valid`, or in one line what is wrong. */
  reason: string;
  guards: Guard[];
}

/** The answers of a task, ready to compare submissions with. Made once by `readAnswers`. */
export interface Answers {
  rows: number;
  /** Row of an id, by its key. */
  rowOf: Map<string, number>;
  /** Ids are numbers, so that `5`, `5.0` and `005` are the same. */
  numericIds: boolean;
  /** Column-major, [target][row]; labels that are text are numbered. */
  truth: Float64Array[];
  /** Numbers of text labels, absent where labels are numbers. */
  labelNumbers?: Map<string, number>;
  /** Column-major like `truth`; absent if the task has no readable sample submission. */
  sample?: Float64Array[];
  /** Rows that make the reward, and the others; absent with `rewardSplit: Full`. */
  halves?: { reward: Uint32Array; reported: Uint32Array };
  maxBytes: number;
}

/** Ranges and sums of probabilities are checked this exactly (scikit-learn's tolerance for rows that add up to 1). */
const sumTolerance = 1.1e-5;

/**
 * Grades a submission: needed columns, the ids of the answers each exactly once in any order, finite numbers (or labels,
 * for Accuracy), probabilities in 0..1 where the metric wants them. Further columns are ignored.
 */
export function gradeSubmission(submission: Buffer, answers: Answers, grader: Grader): Graded {
  const invalid = (reason: string): Graded => ({ valid: false, reason, guards: [] });
  const columns = [grader.idColumn, ...grader.targetColumns];
  const table = readTable(submission, { bytes: answers.maxBytes, rows: answers.rows, columns });
  if ("reason" in table) return invalid(table.reason);
  if (table.rows !== answers.rows) return invalid(`${table.rows} rows, the test set has ${answers.rows}`);
  const predicted = alignedPredictions(table, answers, grader);
  if ("reason" in predicted) return invalid(predicted.reason);

  const { score } = metrics[grader.metric];
  const { halves, truth } = answers;
  const scoreOf = (rows?: Uint32Array) =>
    rows
      ? score(
          truth.map((t) => pick(t, rows)),
          predicted.map((p) => pick(p, rows)),
        )
      : score(truth, predicted);
  const value = scoreOf(halves?.reward);
  if (!Number.isFinite(value)) return invalid(`${grader.metric} is not a finite number for these predictions`);
  return {
    valid: true,
    score: value,
    ...(halves && { reportedScore: scoreOf(halves.reported) }),
    reason: "valid",
    guards: guards(predicted, answers),
  };
}

/** The table's target columns as numbers, in the order of the answers' rows. */
function alignedPredictions(table: Table, answers: Answers, grader: Grader): Float64Array[] | { reason: string } {
  const metric = metrics[grader.metric];
  const rowOf = new Uint32Array(answers.rows);
  const seen = new Uint8Array(answers.rows);
  const ids = table.columns.get(grader.idColumn)!;
  for (let row = 0; row < ids.length; row++) {
    const at = answers.rowOf.get(idKey(ids[row]!, answers.numericIds));
    if (at === undefined) return { reason: `${grader.idColumn} ${oneLine(ids[row]!)} is not in the test set` };
    if (seen[at]) return { reason: `${grader.idColumn} ${oneLine(ids[row]!)} occurs twice` };
    seen[at] = 1;
    rowOf[row] = at;
  }
  const predicted: Float64Array[] = [];
  for (const name of grader.targetColumns) {
    const cells = table.columns.get(name)!;
    const values = answers.labelNumbers ? labelColumn(cells, answers.labelNumbers) : numericColumn(cells, name);
    if ("reason" in values) return values;
    const aligned = new Float64Array(answers.rows);
    for (let row = 0; row < values.length; row++) aligned[rowOf[row]!] = values[row]!;
    predicted.push(aligned);
  }
  if (metric.probabilities) {
    const fault = probabilityFault(predicted, grader.targetColumns);
    if (fault) return { reason: fault };
  }
  return predicted;
}

function probabilityFault(predicted: Float64Array[], names: readonly string[]): string | undefined {
  for (const [c, column] of predicted.entries())
    if (column.some((p) => p < 0 || p > 1)) return `${names[c]} has values outside 0..1`;
  if (predicted.length === 1) return undefined;
  for (let row = 0; row < predicted[0]!.length; row++) {
    const sum = predicted.reduce((total, column) => total + column[row]!, 0);
    if (Math.abs(sum - 1) > sumTolerance) return `the probabilities of a row add up to ${sum}, not to 1`;
  }
  return undefined;
}

function guards(predicted: Float64Array[], answers: Answers): Guard[] {
  const found: Guard[] = [];
  const { sample } = answers;
  if (sample && predicted.every((column, c) => column.every((value, row) => value === sample[c]![row])))
    found.push("sampleSubmission");
  if (predicted.every((column) => column.every((value) => value === column[0]))) found.push("constant");
  return found;
}

/** @throws Error in one line if the answers themselves do not fit the grader */
export function readAnswers(
  bytes: Buffer,
  grader: Grader,
  o: { sample?: Buffer; split?: "Full" | "Half" } = {},
): Answers {
  const columns = [grader.idColumn, ...grader.targetColumns];
  const table = readTable(bytes, { bytes: 2 ** 31, rows: 10_000_000, columns });
  if ("reason" in table) throw new Error(table.reason);
  if (table.rows === 0) throw new Error("there is no row");
  const ids = table.columns.get(grader.idColumn)!;
  const numericIds = ids.every((id) => Number.isFinite(numberOf(id)));
  const rowOf = new Map(ids.map((id, row) => [idKey(id, numericIds), row]));
  if (rowOf.size !== ids.length) throw new Error(`column ${grader.idColumn} has repeated values`);

  const cells = grader.targetColumns.map((name) => table.columns.get(name)!);
  const numeric = cells.map((column, c) => numericColumn(column, grader.targetColumns[c]!));
  const fault = numeric.find((column) => "reason" in column);
  const textLabels = fault !== undefined && metrics[grader.metric].labels;
  if (fault !== undefined && !textLabels) throw new Error((fault as { reason: string }).reason);
  const labelNumbers = textLabels
    ? new Map([...new Set(cells.flat().map((cell) => cell.trim()))].map((label, i) => [label, i]))
    : undefined;
  const truth = labelNumbers ? cells.map((column) => labelColumn(column, labelNumbers)) : (numeric as Float64Array[]);

  const answers: Answers = {
    rows: table.rows,
    rowOf,
    numericIds,
    truth,
    ...(labelNumbers && { labelNumbers }),
    ...(o.split === "Half" && { halves: halves(table.rows) }),
    // Probabilities of 20 digits where the answers say 0 or 1, and room for a few columns more.
    maxBytes: Math.max(2 ** 20, 32 * bytes.length),
  };
  if (o.sample) {
    const sample = readTable(o.sample, { bytes: answers.maxBytes, rows: answers.rows, columns });
    if (!("reason" in sample) && sample.rows === answers.rows) {
      const predictions = alignedPredictions(sample, answers, grader);
      if (!("reason" in predictions)) answers.sample = predictions;
    }
  }
  return answers;
}

function idKey(id: string, numeric: boolean): string {
  if (!numeric) return id;
  const value = numberOf(id);
  return value === undefined ? id : String(value);
}

/** Labels by number; one that the answers do not have gets -1, which is never right. */
function labelColumn(cells: readonly string[], numbers: Map<string, number>): Float64Array {
  return Float64Array.from(cells, (cell) => numbers.get(cell.trim()) ?? -1);
}

/** A fixed half of the rows: every other one, which is as good as any, because the rows of a test set are shuffled. */
function halves(rows: number): { reward: Uint32Array; reported: Uint32Array } {
  const all = Array.from({ length: rows }, (_, row) => row);
  return {
    reward: Uint32Array.from(all.filter((row) => row % 2 === 0)),
    reported: Uint32Array.from(all.filter((row) => row % 2 === 1)),
  };
}

function pick(values: Float64Array, rows: Uint32Array): Float64Array {
  return Float64Array.from(rows, (row) => values[row]!);
}
