/** The private part of a task's answers. Only reports may read what this file computes: no prompt, reward or choice. */
import type { PrivateScore } from "../store/types.ts";
import { type Answers, predictions } from "./grade.ts";
import { ofRows } from "./ids.ts";
import { type Refusal, refuse } from "./reasons.ts";
import type { Parts } from "./split.ts";

/** For reports alone. */
export interface PrivatePart {
  /** Number of rows; absent if there is no private part. */
  privateRows?: number | undefined;
  /** Returns the score on the private part, or why there is none; undefined if there is no private part. Never throws. */
  privateScore: (submission: Buffer) => PrivateScore | undefined;
  /** Returns how a submission scores on rows of each part, for intervals; undefined if there is no private part. */
  partScores: (submission: Buffer) => Record<keyof Parts, PartScore> | Refusal | undefined;
}

/** One part's rows, and the score of some of them, each as often as it is listed; NaN if it is undefined. */
interface PartScore {
  rows: Uint32Array;
  score: (rows: Uint32Array) => number | Refusal;
}

export function privatePartOf(answers: Answers): PrivatePart {
  const { grader, rules, truth, parts } = answers;
  const partScores = (submission: Buffer) => {
    if (parts === undefined) return undefined;
    const predicted = predictions(submission, answers);
    if ("reason" in predicted) return predicted;
    const score = (rows: Uint32Array) => rules.score(ofRows(truth, rows), ofRows(predicted, rows));
    return { public: { rows: parts.public, score }, private: { rows: parts.private, score } };
  };
  const privateScore = (submission: Buffer) => {
    const scores = partScores(submission);
    if (scores === undefined || "reason" in scores) return scores && { reason: scores.reason.message };
    const score = scores.private.score(scores.private.rows);
    if (typeof score !== "number") return { reason: score.reason.message };
    if (!Number.isFinite(score))
      return { reason: refuse("undefinedScore", { expected: grader.metric }).reason.message };
    return { score: rules.round(score), reason: "valid" };
  };
  return { privateRows: parts?.private.length, privateScore, partScores };
}
