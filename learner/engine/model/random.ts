import { createHash } from "node:crypto";

/**
 * A stream of uniform random numbers in [0, 1) that is named, not stored: the same seed and the same name give the
 * same numbers, so that a run's only random state is its seed and the counters that appear in names (sample index,
 * iteration, epoch). A resumed or replayed run needs nothing else.
 *
 * The name is hashed to the 128-bit state of sfc32 (Doty-Humphrey's Small Fast Counter generator, PractRand).
 */
export function uniforms(seed: number, ...name: (string | number)[]): () => number {
  const digest = createHash("sha256")
    .update(JSON.stringify([seed, ...name]))
    .digest();
  let a = digest.readUInt32LE(0);
  let b = digest.readUInt32LE(4);
  let c = digest.readUInt32LE(8);
  let counter = digest.readUInt32LE(12) | 1;
  return () => {
    const t = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + t;
    return (t >>> 0) / 2 ** 32;
  };
}

/** A seed in [0, 2^53) for another generator, from the same naming. */
export function seedFor(seed: number, ...name: (string | number)[]): number {
  const next = uniforms(seed, "seed", ...name);
  return Math.floor(next() * 2 ** 21) * 2 ** 32 + Math.floor(next() * 2 ** 32);
}

/** The numbers 0..count-1 in a random order (Fisher-Yates). */
export function permutation(count: number, next: () => number): number[] {
  const order = Array.from({ length: count }, (_, index) => index);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}
