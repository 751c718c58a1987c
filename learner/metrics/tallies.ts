/** Counts, shares and extremes of the samples of a batch. */
import { sum } from "./statistics.ts";

/** Returns a count for every name, 0 too: a line of metrics always has the same fields. */
export function countsOf<Name extends string>(
  names: readonly Name[],
  count: (name: Name) => number,
): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, count(name)])) as Record<Name, number>;
}

export function counts<Item>(items: readonly Item[], key: (item: Item) => string): Record<string, number> {
  const result: Record<string, number> = {};
  for (const item of items) result[key(item)] = (result[key(item)] ?? 0) + 1;
  return result;
}

export function shares(from: Record<string, number>): Record<string, number> {
  const total = sum(Object.values(from));
  return Object.fromEntries(Object.entries(from).map(([key, count]) => [key, count / total]));
}

export function largest(values: readonly number[]): number {
  return values.reduce((highest, value) => Math.max(highest, value), Number.NEGATIVE_INFINITY);
}

/** Seconds to the millisecond: finer digits are noise and make the lines hard to read. */
export function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
