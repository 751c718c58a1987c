/** Compares searches and training runs: the best score so far against executions and time, with intervals. Pure. */
import { CONFIDENCE, mean, percentileIntervals, standardError } from "../evaluation/bootstrap.ts";
import type { Interval } from "../metrics/summary.ts";

/** A program, or an answer without one. */
export interface Attempt {
  /** The first of the solutions that led to it, itself if none did. */
  root: string;
  /** Seconds of search or training until it ended. */
  seconds: number;
  /** Present if valid. */
  score?: number | undefined;
}

/** What one folder did on one task. */
export interface Effort {
  folder: string;
  /** Who searched, and how: folders with equal arms are repetitions. */
  arm: string;
  task: string;
  metric: string;
  direction: "Higher" | "Lower";
  /** Other facts on which scores depend, as JSON. */
  graded: string;
  /** In the order of their ends. */
  attempts: readonly Attempt[];
  tokens?: number | undefined;
  /** US dollars. */
  cost?: number | undefined;
}

export const AXES = ["executions", "seconds"] as const;
export type Axis = (typeof AXES)[number];

/** The best score of an arm's folders that came so far: its mean over them, and its 95 % interval. */
export interface Point {
  at: number;
  /** Null: no program of these folders was valid. */
  best: number | null;
  interval: Interval | null;
  /** Folders that came so far, and those of them with a valid program. */
  folders: number;
  valid: number;
}

export interface ArmResult {
  arm: string;
  folders: string[];
  curves: Record<Axis, Point[]>;
  /** Over the folders, at their ends. */
  end: { best: number | null; standardError: number | null; interval: Interval | null; valid: number };
  executions: number;
  seconds: number;
  tokens: number | null;
  cost: number | null;
}

export interface TaskResult {
  task: string;
  metric: string;
  direction: "Higher" | "Lower";
  arms: ArmResult[];
}

/** Columns of tables. */
const MOST_COLUMNS = 8;
const TIMES = [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18_000, 36_000, 86_400, 172_800, 360_000];
const SEED = 0;

/**
 * @param placesOf the places of a curve for the largest one
 * @throws Error in one line if two folders' scores of a task do not compare
 */
export function compare(
  efforts: readonly Effort[],
  placesOf: (axis: Axis, most: number) => number[] = tablePlaces,
): TaskResult[] {
  for (const [, same] of Map.groupBy(efforts, ({ task }) => task))
    for (const other of same) refuseUnlike(same[0]!, other);
  return [...Map.groupBy(efforts, ({ task }) => task)].map(([task, all]) => {
    const { metric, direction } = all[0]!;
    const places = (axis: Axis) => placesOf(axis, Math.max(...all.map((effort) => lengthOf(effort, axis))));
    const [executions, seconds] = [places("executions"), places("seconds")];
    const arms = [...Map.groupBy(all, ({ arm }) => arm)].map(([arm, own]) => {
      const ends = own.flatMap((effort) => bestOf(effort.attempts, direction) ?? []);
      const sums = (of: (effort: Effort) => number | undefined) =>
        own.some((effort) => of(effort) !== undefined) ? own.reduce((sum, effort) => sum + (of(effort) ?? 0), 0) : null;
      return {
        arm,
        folders: own.map(({ folder }) => folder),
        curves: {
          executions: curveOf(own, "executions", executions),
          seconds: curveOf(own, "seconds", seconds),
        },
        end: {
          best: meanOf(ends),
          standardError: standardError(ends) ?? null,
          valid: ends.length,
          interval: intervalOf(own, "executions", Number.POSITIVE_INFINITY),
        },
        executions: own.reduce((sum, effort) => sum + effort.attempts.length, 0),
        seconds: own.reduce((sum, effort) => sum + lengthOf(effort, "seconds"), 0),
        tokens: sums(({ tokens }) => tokens),
        cost: sums(({ cost }) => cost),
      };
    });
    return { task, metric, direction, arms };
  });
}

function refuseUnlike(a: Effort, b: Effort): void {
  for (const field of ["metric", "direction", "graded"] as const)
    if (a[field] !== b[field])
      throw new Error(
        `${b.folder} has task ${b.task} with ${field} ${b[field]}, ${a.folder} with ${a[field]}: such scores do not compare; leave one of them out`,
      );
}

/** Returns at most 8 places of a table, the largest last: 1, 2, 5, 10, … executions, or round times in seconds. */
export function tablePlaces(axis: Axis, most: number): number[] {
  const round =
    axis === "seconds" ? TIMES : Array.from({ length: 18 }, (_, i) => [1, 2, 5][i % 3]! * 10 ** Math.floor(i / 3));
  return [...round.filter((place) => place < most), most].slice(-MOST_COLUMNS).filter((place) => place > 0);
}

const lengthOf = ({ attempts }: Effort, axis: Axis): number =>
  axis === "executions" ? attempts.length : (attempts.at(-1)?.seconds ?? 0);

/** The attempts up to a place. */
function within(attempts: readonly Attempt[], axis: Axis, place: number): readonly Attempt[] {
  if (axis === "executions") return attempts.slice(0, place);
  return attempts.filter(({ seconds }) => seconds <= place);
}

function bestOf(attempts: readonly Attempt[], direction: Effort["direction"]): number | undefined {
  const scores = attempts.flatMap(({ score }) => score ?? []);
  if (scores.length === 0) return undefined;
  return scores.reduce((best, score) => (direction === "Higher" ? Math.max(best, score) : Math.min(best, score)));
}

function curveOf(efforts: readonly Effort[], axis: Axis, places: readonly number[]): Point[] {
  return places.flatMap((at): Point[] => {
    const far = efforts.filter((effort) => lengthOf(effort, axis) >= at);
    if (far.length === 0) return [];
    const known = far.flatMap((effort) => bestOf(within(effort.attempts, axis, at), effort.direction) ?? []);
    const interval = intervalOf(far, axis, at);
    return [{ at, best: meanOf(known), interval, folders: far.length, valid: known.length }];
  });
}

const meanOf = (values: readonly number[]): number | null => (values.length === 0 ? null : mean(values));

/**
 * Returns the bootstrap interval of the best score at a place. Several folders are drawn as wholes. Of a single one the drafts are drawn,
 * each with everything that descends from it.
 */
function intervalOf(efforts: readonly Effort[], axis: Axis, place: number): Interval | null {
  const { direction, attempts } = efforts[0]!;
  if (efforts.length === 1) {
    const trees = [...Map.groupBy(within(attempts, axis, place), ({ root }) => root).values()];
    return intervalOfBest(
      trees.map((tree) => bestOf(tree, direction) ?? null),
      direction,
    );
  }
  const bests = efforts.map((effort) => bestOf(within(effort.attempts, axis, place), direction) ?? null);
  const statistics = (drawn: (number | null)[]) => ({ best: meanOf(drawn.flatMap((best) => best ?? [])) });
  return percentileIntervals(bests, statistics, { seed: SEED }).best;
}

/**
 * Returns the percentile interval of the best of n numbers under the bootstrap. Its distribution is known without drawing: the best of n
 * draws is among the k best numbers with probability 1 - ((n - k) / n)^n. Draws without a number are left out. @param all null: no score
 */
export function intervalOfBest(all: readonly (number | null)[], direction: Effort["direction"]): Interval | null {
  const sign = direction === "Higher" ? 1 : -1;
  const sorted = all.flatMap((best) => best ?? []).sort((a, b) => sign * (b - a));
  const within = (k: number) => 1 - ((all.length - k) / all.length) ** all.length;
  const quantile = (share: number) => sorted.find((_, index) => within(index + 1) >= share * within(sorted.length))!;
  if (sorted.length === 0) return null;
  const tail = (1 - CONFIDENCE) / 2;
  const [best, worst] = [quantile(tail), quantile(1 - tail)];
  return sign > 0 ? [worst, best] : [best, worst];
}
