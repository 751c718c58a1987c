/** Sums like numpy's (pairwise, `numpy/_core/src/umath/loops_utils.h.src`), whose rounding errors stay small. */

const blockLength = 128;
/** numpy's reductions take this many elements at once and add the partial sums in order. */
const bufferLength = 8192;

/** Returns the sum of the values, equal to numpy's bit for bit. */
export function sum(values: Float64Array): number {
  let total = 0;
  for (let from = 0; from < values.length; from += bufferLength)
    total += pairwiseSum(values, from, Math.min(bufferLength, values.length - from));
  return total;
}

/** Returns where numpy divides this many values: near the middle, at a multiple of 8. */
const halfOf = (length: number) => (length >> 1) - ((length >> 1) % 8);

/** Returns the sum of `values[from .. from + length)`. Its rounding error grows with the logarithm of the length. */
function pairwiseSum(values: Float64Array, from: number, length: number): number {
  if (length < 8) {
    let sum = 0;
    for (let i = from; i < from + length; i++) sum += values[i]!;
    return sum;
  }
  if (length > blockLength) {
    const half = halfOf(length);
    return pairwiseSum(values, from, half) + pairwiseSum(values, from + half, length - half);
  }
  let [a, b, c, d, e, f, g, h] = [0, 0, 0, 0, 0, 0, 0, 0];
  const end = from + length - (length % 8);
  for (let i = from; i < end; i += 8) {
    a += values[i]!;
    b += values[i + 1]!;
    c += values[i + 2]!;
    d += values[i + 3]!;
    e += values[i + 4]!;
    f += values[i + 5]!;
    g += values[i + 6]!;
    h += values[i + 7]!;
  }
  let sum = a + b + (c + d) + (e + f + (g + h));
  for (let i = end; i < from + length; i++) sum += values[i]!;
  return sum;
}

/** Returns the sum of squares of `values[from .. from + length)`, in the order of numpy's dot product. */
export function sumOfSquares(values: Float64Array, from = 0, length = values.length): number {
  if (length > blockLength) {
    const half = halfOf(length);
    return sumOfSquares(values, from, half) + sumOfSquares(values, from + half, length - half);
  }
  let [even, odd] = [0, 0];
  const end = from + length - (length % 2);
  for (let i = from; i < end; i += 2) {
    even += values[i]! * values[i]!;
    odd += values[i + 1]! * values[i + 1]!;
  }
  if (length % 2 === 1) even += values[end]! * values[end]!;
  return even + odd;
}

export function mean(values: Float64Array): number {
  return sum(values) / values.length;
}
