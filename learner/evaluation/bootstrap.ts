/**
 * The bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, 1993): estimates the uncertainty of a number by resampling the
 * measured values with replacement. Seeded: the same values give the same bounds.
 */
import { uniforms } from "../engine/index.ts";
import type { Interval } from "../metrics/summary.ts";

export const CONFIDENCE = 0.95;
export const DRAWS = 2000;

/** Numbers by name; null if there are no values to compute one from. */
type Numbers<Name extends string> = Record<Name, number | null>;

/**
 * Returns percentile intervals of statistics of `units`. Each unit is drawn as a whole, because values within it are not independent. Draws
 * in which a statistic is null are left out; a statistic that is null in all draws has no interval.
 */
export function percentileIntervals<Unit, Name extends string>(
  units: readonly Unit[],
  statistics: (drawn: Unit[]) => Numbers<Name>,
  { seed, draws }: { seed: number; draws?: number },
): Record<Name, Interval | null> {
  const next = uniforms(seed, "bootstrap");
  return intervalsOf(() => statistics(redraw(units, next)), draws);
}

/**
 * Returns intervals of the differences between the statistics of `treated` and of `control`. If both have as many units, the i-th units of
 * both are drawn together, because they share their conditions. Otherwise they are drawn independently.
 */
export function differenceIntervals<Unit, Name extends string>(
  treated: readonly Unit[],
  control: readonly Unit[],
  statistics: (drawn: Unit[]) => Numbers<Name>,
  { seed, draws }: { seed: number; draws?: number },
): Record<Name, Interval | null> {
  const next = uniforms(seed, "bootstrap");
  const paired = treated.length === control.length;
  return intervalsOf(() => {
    const drawn = redraw([...treated.keys()], next);
    const other = paired ? drawn : redraw([...control.keys()], next);
    const [a, b] = [drawn.map((index) => treated[index]!), other.map((index) => control[index]!)];
    return difference(statistics(a), statistics(b));
  }, draws);
}

/** Returns the difference of each statistic; null if one of the two is null. */
export function difference<Name extends string>(a: Numbers<Name>, b: Numbers<Name>): Numbers<Name> {
  const names = Object.keys(a) as Name[];
  const entries = names.map((name) => [name, a[name] === null || b[name] === null ? null : a[name] - b[name]]);
  return Object.fromEntries(entries) as Numbers<Name>;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Returns a mean's standard error: the sample's standard deviation (Bessel) over the root of its size; undefined for a single value. */
export function standardError(values: readonly number[]): number | undefined {
  if (values.length < 2) return undefined;
  const center = mean(values);
  const squares = values.reduce((sum, value) => sum + (value - center) ** 2, 0);
  return Math.sqrt(squares / (values.length - 1) / values.length);
}

/** Returns as many rows, drawn with replacement. */
export function redrawRows(rows: Uint32Array, next: () => number): Uint32Array {
  return rows.map(() => rows[Math.floor(next() * rows.length)]!);
}

function redraw<Unit>(units: readonly Unit[], next: () => number): Unit[] {
  return units.map(() => units[Math.floor(next() * units.length)]!);
}

function intervalsOf<Name extends string>(draw: () => Numbers<Name>, draws = DRAWS): Record<Name, Interval | null> {
  return percentilesOf(Array.from({ length: draws }, draw));
}

/** Returns the percentile interval of each statistic over the draws. */
export function percentilesOf<Name extends string>(drawn: readonly Numbers<Name>[]): Record<Name, Interval | null> {
  const tail = (1 - CONFIDENCE) / 2;
  const intervals = (Object.keys(drawn[0]!) as Name[]).map((name) => {
    const sorted = drawn.flatMap((numbers) => numbers[name] ?? []).sort((a, b) => a - b);
    return [name, sorted.length > 0 ? [quantile(sorted, tail), quantile(sorted, 1 - tail)] : null];
  });
  return Object.fromEntries(intervals) as Record<Name, Interval | null>;
}

/** Returns the median; undefined without values. */
export function median(values: readonly number[]): number | undefined {
  return values.length > 0
    ? quantile(
        [...values].sort((a, b) => a - b),
        0.5,
      )
    : undefined;
}

/** Returns a quantile with linear interpolation, like numpy.quantile. */
function quantile(sorted: readonly number[], share: number): number {
  const at = share * (sorted.length - 1);
  const below = sorted[Math.floor(at)]!;
  return below + (at - Math.floor(at)) * (sorted[Math.ceil(at)]! - below);
}
