export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Null for none. */
export function mean(values: readonly number[]): number | null {
  return share(sum(values), values.length);
}

/** Null of nothing. */
export function share(part: number, whole: number): number | null {
  return whole > 0 ? part / whole : null;
}
