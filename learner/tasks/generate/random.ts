/** Draws from a stream of uniform numbers (`uniforms`). */

export interface Draws {
  /** In [0, 1). */
  uniform(): number;
  /** A whole number from `least` to `most`. */
  whole(least: number, most: number): number;
  between(least: number, most: number): number;
  /** Standard normal (Box and Muller). */
  normal(): number;
  chance(share: number): boolean;
  one<T>(values: readonly T[]): T;
  /** Returns `n` different values in a random order. */
  some<T>(values: readonly T[], n: number): T[];
}

export function drawsOf(uniform: () => number): Draws {
  const whole = (least: number, most: number) => least + Math.floor(uniform() * (most - least + 1));
  return {
    uniform,
    whole,
    between: (least, most) => least + uniform() * (most - least),
    normal: () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()),
    chance: (share) => uniform() < share,
    one: (values) => values[whole(0, values.length - 1)]!,
    some: (values, n) => {
      const left = [...values];
      return Array.from({ length: Math.min(n, left.length) }, () => left.splice(whole(0, left.length - 1), 1)[0]!);
    },
  };
}

/** Returns the values with mean 0 and standard deviation 1; zeros if they are all alike. */
export function standardized(values: Float64Array): Float64Array {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
  return values.map((value) => (deviation < 1e-9 ? 0 : (value - mean) / deviation));
}
