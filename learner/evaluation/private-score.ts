/** The private score of a best program beside its public one, with intervals that say how much the rows of the answers decide. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { uniforms } from "../engine/index.ts";
import type { Interval } from "../metrics/summary.ts";
import type { Task } from "../tasks/task.ts";
import { DRAWS, median, percentilesOf, redrawRows } from "./bootstrap.ts";

/** Most cells (rows times target columns) of one part that are drawn in all: a second or so of the learner's time. */
const MAX_DRAWN_CELLS = 2e6;
/** With fewer draws there is no interval. */
const MIN_DRAWS = 100;

/** Facts about a program's private score, for people. */
export interface PrivateFacts {
  /** In the task's own unit; absent if there is none. */
  privateScore?: number | undefined;
  /** Why there is no private score. */
  noPrivateScore?: string | undefined;
  direction: "Higher" | "Lower";
  publicRows: number;
  privateRows: number;
  /** The public score minus the private score. */
  gap?: number | undefined;
  /** The median gap of the valid programs among which this one was the best, and their number. */
  medianGap?: number | undefined;
  programs: number;
  /** 95 % percentile intervals of the bootstrap over rows; null where there are too many rows to draw, or no score. */
  rowIntervals: Record<"score" | "privateScore" | "gap", Interval | null>;
}

const NO_INTERVALS = { score: null, privateScore: null, gap: null };

/**
 * Returns the facts; undefined if the task has no private part.
 *
 * @param score the public score @param gaps of the programs among which this one is the best @param seed of the draws
 */
export async function privateFactsOf(
  task: Pick<Task, "grader" | "rows" | "privateRows" | "privateScore" | "partScores">,
  submission: Buffer,
  { score, gaps, seed }: { score: number; gaps: readonly number[]; seed: number },
): Promise<PrivateFacts | undefined> {
  const { rows, privateRows } = task;
  const found = privateRows === undefined ? undefined : task.privateScore(submission);
  if (found === undefined || privateRows === undefined) return undefined;
  const { score: privateScore, reason } = found;
  const { direction, targetColumns } = task.grader;
  const known = { direction, publicRows: rows - privateRows, privateRows, programs: gaps.length };
  if (privateScore === undefined) return { ...known, noPrivateScore: reason, rowIntervals: NO_INTERVALS };
  const cells = Math.max(known.publicRows, known.privateRows) * targetColumns.length;
  const draws = Math.min(DRAWS, Math.floor(MAX_DRAWN_CELLS / cells));
  const rowIntervals = draws < MIN_DRAWS ? NO_INTERVALS : await intervalsOf(task, submission, draws, seed);
  return { ...known, privateScore, gap: score - privateScore, medianGap: median(gaps), rowIntervals };
}

/** Draws the rows of both parts independently. Other work of the learner goes on between the draws. */
async function intervalsOf({ partScores }: Pick<Task, "partScores">, submission: Buffer, draws: number, seed: number) {
  const parts = partScores(submission);
  if (parts === undefined || "reason" in parts) return NO_INTERVALS;
  const next = uniforms(seed, "bootstrap of rows");
  const drawn = (part: keyof typeof parts) => {
    const score = parts[part].score(redrawRows(parts[part].rows, next));
    return typeof score === "number" && Number.isFinite(score) ? score : null;
  };
  const all: Record<keyof PrivateFacts["rowIntervals"], number | null>[] = [];
  for (let draw = 0; draw < draws; draw++) {
    const [score, privateScore] = [drawn("public"), drawn("private")];
    all.push({ score, privateScore, gap: score === null || privateScore === null ? null : score - privateScore });
    await nextTurn();
  }
  return percentilesOf(all);
}
