export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Returns null for no values. */
export function mean(values: readonly number[]): number | null {
  return share(sum(values), values.length);
}

/** Returns null for a whole of 0. */
export function share(part: number, whole: number): number | null {
  return whole > 0 ? part / whole : null;
}
