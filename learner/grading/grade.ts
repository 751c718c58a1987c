/** Grades submissions by their bytes. The answers are read once, with the rules of the task's grader. */
import type { Grader } from "../../crds/trainingrun.ts";
import { readFrame } from "./frame.ts";
import { graderRules } from "./grader-rules.ts";
import { type Guard, guardsOf } from "./guards.ts";
import { type Alignment, matcherOf } from "./ids.ts";
import type { Values } from "./metrics.ts";
import { mleBenchRules } from "./mlebench.ts";
import type { MleBenchTask } from "./mlebench-tasks.ts";
import { type Reason, type Refusal, reasonOf, refuse } from "./reasons.ts";
import { missingColumn, type Rules } from "./rules.ts";

/** A grader's verdict on a submission. It is a value: no submission makes a grader throw. */
export interface Graded {
  valid: boolean;
  /** The reported score in the task's own unit, for valid submissions. With `rewardSplit: Half`, the score on the reward's half. */
  score?: number;
  /** The score before rounding. */
  scoreRaw?: number;
  /** With `rewardSplit: Half`: the score on the other half, which affects no reward. */
  reportedScore?: number;
  reason: Reason;
  guards: Guard[];
}

/** A task's answers, prepared for comparison with submissions. Made once by `readAnswers`. */
export interface Answers {
  grader: Grader | MleBenchTask;
  rules: Rules;
  rows: number;
  /** Absent if rows are matched by position. */
  match: ReturnType<typeof matcherOf> | undefined;
  /** [target][row]; labels are replaced by their places, see label-places.ts. */
  truth: Values[];
  read: ReturnType<Rules["reader"]>;
  /** Like `truth`; absent if the task has no readable sample submission. */
  sample?: Values[];
  /** Rows that determine the reward, and the other rows; absent with `rewardSplit: Full`. */
  halves?: { reward: Uint32Array; reported: Uint32Array };
  maxBytes: number;
}

/** @throws Error in one line if the answers do not fit the grader */
export function readAnswers(
  bytes: Buffer,
  grader: Grader | MleBenchTask,
  o: { sample?: Buffer | undefined; split?: "Full" | "Half" } = {},
): Answers {
  const rules = "checks" in grader ? mleBenchRules(grader) : graderRules(grader);
  const frame = readFrame(bytes, { bytes: 2 ** 31, rows: 50_000_000, wholeColumns: rules.wholeColumns });
  if ("reason" in frame) throw new Error(frame.reason.message);
  if (frame.rows === 0) throw new Error("there is no row");
  const { rows } = frame;
  const byPosition = rules.ids === "Position";
  const missing = missingColumn(frame, [...(byPosition ? [] : [grader.idColumn]), ...grader.targetColumns]);
  if (missing) throw new Error(missing.reason.message);
  rules.checkAnswers(frame);
  const columns = grader.targetColumns.map((name) => frame.column(name)!);
  const read = rules.reader(columns);
  const truth = columns.map((column) => {
    const values = read(column);
    if ("reason" in values) throw new Error(values.reason.message);
    return values;
  });
  const match = byPosition ? undefined : matcherOf(frame.column(grader.idColumn)!, rules.ids === "List");
  const answers: Answers = { grader, rules, rows, match, truth, read, maxBytes: rules.maxBytes(bytes.length) };
  if (o.split === "Half") answers.halves = { reward: everyOther(rows, 0), reported: everyOther(rows, 1) };
  const sample = o.sample && predictions(o.sample, answers);
  if (sample && !("reason" in sample)) answers.sample = sample;
  return answers;
}

/** Returns the target columns [target][row] of the rows that determine the reward. */
export function rewardTruth({ truth, halves }: Answers): readonly Values[] {
  return truth.map((column) => inOrder(column, halves?.reward));
}

/** Returns every other row, from `first` on. The half is fair because the rows of a test set are shuffled. */
function everyOther(rows: number, first: number): Uint32Array {
  return Uint32Array.from({ length: Math.ceil((rows - first) / 2) }, (_, i) => first + 2 * i);
}

/** Grades a submission. Never throws, whatever the bytes are; time and memory are bounded. */
export function gradeSubmission(submission: Buffer, answers: Answers): Graded {
  const { grader, rules, truth, halves, sample } = answers;
  const refused = ({ reason }: Refusal): Graded => ({ valid: false, reason, guards: [] });
  const predicted = predictions(submission, answers);
  if ("reason" in predicted) return refused(predicted);
  const aligned = (columns: readonly Values[], rows: Alignment) => columns.map((column) => inOrder(column, rows));
  const scoreOf = (rows: Alignment) => rules.score(aligned(truth, rows), aligned(predicted, rows));
  const scoreRaw = scoreOf(halves?.reward);
  if (typeof scoreRaw !== "number") return refused(scoreRaw);
  if (!Number.isFinite(scoreRaw)) return refused(refuse("undefinedScore", { expected: grader.metric }));
  const reported = halves && scoreOf(halves.reported);
  return {
    valid: true,
    score: rules.round(scoreRaw),
    scoreRaw,
    ...(typeof reported === "number" && { reportedScore: rules.round(reported) }),
    reason: reasonOf("valid"),
    guards: guardsOf(scoreRaw, grader.metric, predicted, truth, sample),
  };
}

/** Returns the target columns in the order of the answers' rows, if the submission passes the grader's checks. */
export function predictions(submission: Buffer, answers: Answers): Values[] | Refusal {
  const { grader, rules, rows, truth, maxBytes } = answers;
  const frame = readFrame(submission, { bytes: maxBytes, rows, wholeColumns: rules.wholeColumns });
  if ("reason" in frame) return frame;
  const refusal = rules.check(frame, rows);
  if (refusal) return refusal;
  const alignment = answers.match?.(frame.column(grader.idColumn)!);
  if (alignment && "reason" in alignment) return alignment;
  const predicted: Values[] = [];
  for (const [i, name] of grader.targetColumns.entries()) {
    const values = answers.read(frame.column(name)!, truth[i]);
    if ("reason" in values) return values;
    predicted.push(inOrder(values, alignment));
  }
  return rules.checkRows(predicted) ?? predicted;
}

/** Returns a column's values in the order of `rows`. */
function inOrder(values: Values, rows: Alignment): Values {
  if (!rows) return values;
  if (!(values instanceof Float64Array)) return Array.from(rows, (row) => values[row]!);
  const ordered = new Float64Array(rows.length);
  for (let i = 0; i < rows.length; i++) ordered[i] = values[rows[i]!]!;
  return ordered;
}
