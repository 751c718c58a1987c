/** Grades submissions by their bytes. The answers are read once, with the rules of the task's grader. */
import type { Grader } from "../../crds/trainingrun.ts";
import type { PrivateScore } from "../store/types.ts";
import { readFrame } from "./frame.ts";
import { graderRules } from "./grader-rules.ts";
import { type Guard, guardsOf } from "./guards.ts";
import { type Alignment, matcherOf } from "./ids.ts";
import type { Values } from "./metrics.ts";
import { mleBenchRules } from "./mlebench.ts";
import type { MleBenchTask } from "./mlebench-tasks.ts";
import { type Reason, type Refusal, reasonOf, refuse } from "./reasons.ts";
import { missingColumn, type Rules } from "./rules.ts";
import { type Parts, partsOf, type Split } from "./split.ts";

/** A grader's verdict on a submission. It is a value: no submission makes a grader throw. */
export interface Graded {
  valid: boolean;
  /** In the task's own unit, for valid submissions; the public score, if the answers have a private part. */
  score?: number;
  /** The score before rounding. */
  scoreRaw?: number;
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
  /** Absent if all rows are public. */
  parts?: Parts | undefined;
  /** Like `truth`, of the public rows. Grades, guards and rewards are made of these answers alone. */
  publicTruth: readonly Values[];
  /** Like `publicTruth`; absent if the task has no readable sample submission. */
  sample?: readonly Values[];
  maxBytes: number;
}

/** @throws Error in one line if the answers do not fit the grader */
export function readAnswers(
  bytes: Buffer,
  grader: Grader | MleBenchTask,
  o: { sample?: Buffer | undefined; split?: Split } = {},
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
  const parts = partsOf(o.split ?? 0, grader.metric, truth);
  const publicTruth = ofRows(truth, parts?.public);
  const maxBytes = rules.maxBytes(bytes.length);
  const answers: Answers = { grader, rules, rows, match, truth, read, parts, publicTruth, maxBytes };
  if (typeof o.split === "number") checkParts(answers, o.split);
  const sample = o.sample && predictions(o.sample, answers);
  if (sample && !("reason" in sample)) answers.sample = ofRows(sample, parts?.public);
  return answers;
}

/** @throws Error in one line if the metric has no score for one of the parts, whatever a program predicts */
function checkParts({ grader, rules, truth, parts }: Answers, share: number): void {
  for (const [name, rows] of Object.entries(parts ?? {})) {
    const best = rules.score(ofRows(truth, rows), ofRows(truth, rows));
    if (typeof best === "number" && !Number.isFinite(best))
      throw new Error(
        `privateShare ${share} leaves ${rows.length} of ${truth[0]!.length} rows in the ${name} part, on which ` +
          `${grader.metric} is undefined: their answers are all alike, or a class is missing; ` +
          "give more answers, or set privateShare to 0",
      );
  }
}

/** Grades a submission. Never throws, whatever the bytes are; time and memory are bounded. */
export function gradeSubmission(submission: Buffer, answers: Answers): Graded {
  const { grader, rules, publicTruth, parts, sample } = answers;
  const refused = ({ reason }: Refusal): Graded => ({ valid: false, reason, guards: [] });
  const all = predictions(submission, answers);
  if ("reason" in all) return refused(all);
  const predicted = ofRows(all, parts?.public);
  const scoreRaw = rules.score(publicTruth, predicted);
  if (typeof scoreRaw !== "number") return refused(scoreRaw);
  if (!Number.isFinite(scoreRaw)) return refused(refuse("undefinedScore", { expected: grader.metric }));
  return {
    valid: true,
    score: rules.round(scoreRaw),
    scoreRaw,
    reason: reasonOf("valid"),
    guards: guardsOf(scoreRaw, grader.metric, predicted, publicTruth, sample),
  };
}

/** Returns the score on the private part, or why there is none; undefined if the answers have no private part. Never throws. */
export function privateScoreOf(submission: Buffer, answers: Answers): PrivateScore | undefined {
  const scores = partScores(submission, answers);
  if (scores === undefined || "reason" in scores) return scores && { reason: scores.reason.message };
  const score = scores.private.score(scores.private.rows);
  if (typeof score !== "number") return { reason: score.reason.message };
  if (!Number.isFinite(score))
    return { reason: refuse("undefinedScore", { expected: answers.grader.metric }).reason.message };
  return { score: answers.rules.round(score), reason: "valid" };
}

/** One part's rows, and the score of some of them, each as often as it is listed; NaN if it is undefined. */
export interface PartScore {
  rows: Uint32Array;
  score: (rows: Uint32Array) => number | Refusal;
}

/** Returns how a submission scores on rows of each part, for intervals; undefined if the answers have no private part. */
export function partScores(submission: Buffer, answers: Answers): Record<keyof Parts, PartScore> | Refusal | undefined {
  const { rules, truth, parts } = answers;
  if (parts === undefined) return undefined;
  const predicted = predictions(submission, answers);
  if ("reason" in predicted) return predicted;
  const score = (rows: Uint32Array) => rules.score(ofRows(truth, rows), ofRows(predicted, rows));
  return { public: { rows: parts.public, score }, private: { rows: parts.private, score } };
}

/** Returns the target columns in the order of the answers' rows, if the submission passes the grader's checks. */
export function predictions(submission: Buffer, answers: Answers): Values[] | Refusal {
  const { grader, rules, rows, publicTruth, maxBytes } = answers;
  const frame = readFrame(submission, { bytes: maxBytes, rows, wholeColumns: rules.wholeColumns });
  if ("reason" in frame) return frame;
  const refusal = rules.check(frame, rows);
  if (refusal) return refusal;
  const alignment = answers.match?.(frame.column(grader.idColumn)!);
  if (alignment && "reason" in alignment) return alignment;
  const predicted: Values[] = [];
  for (const [i, name] of grader.targetColumns.entries()) {
    const values = answers.read(frame.column(name)!, publicTruth[i]);
    if ("reason" in values) return values;
    predicted.push(inOrder(values, alignment));
  }
  return rules.checkRows(predicted) ?? predicted;
}

const ofRows = (columns: readonly Values[], rows: Alignment): readonly Values[] =>
  columns.map((column) => inOrder(column, rows));

/** Returns a column's values in the order of `rows`. */
function inOrder(values: Values, rows: Alignment): Values {
  if (!rows) return values;
  if (!(values instanceof Float64Array)) return Array.from(rows, (row) => values[row]!);
  const ordered = new Float64Array(rows.length);
  for (let i = 0; i < rows.length; i++) ordered[i] = values[rows[i]!]!;
  return ordered;
}
