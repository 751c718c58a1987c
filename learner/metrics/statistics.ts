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

/** Returns the standard deviation with Bessel's correction, null for less than two values. */
export function deviation(values: readonly number[]): number | null {
  if (values.length < 2) return null;
  const center = sum(values) / values.length;
  return Math.sqrt(sum(values.map((value) => (value - center) ** 2)) / (values.length - 1));
}
