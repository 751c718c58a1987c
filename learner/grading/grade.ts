/** Grades submissions by their bytes. The answers are read once, with the rules of the task's grader. */
import type { Grader } from "../../crds/trainingrun.ts";
import { readFrame } from "./frame.ts";
import { graderRules } from "./grader-rules.ts";
import { type Guard, guardsOf } from "./guards.ts";
import { inOrder, matcherOf, ofRows } from "./ids.ts";
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
  const parts = partsOf(o.split ?? 0, grader.metric, truth, rules.score);
  const publicTruth = ofRows(truth, parts?.public);
  const maxBytes = rules.maxBytes(bytes.length);
  const answers: Answers = { grader, rules, rows, match, truth, read, parts, publicTruth, maxBytes };
  const sample = o.sample && predictions(o.sample, answers);
  if (sample && !("reason" in sample)) answers.sample = ofRows(sample, parts?.public);
  return answers;
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
