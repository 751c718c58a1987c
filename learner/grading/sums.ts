/** Sums as numpy makes them (pairwise, `numpy/_core/src/umath/loops_utils.h.src`), so that their error does not grow. */

const blockLength = 128;
/** numpy's reductions take so many elements at once, and add up what these come to one after the other. */
const bufferLength = 8192;

/** Sum of the values, bit for bit numpy's. */
export function sum(values: Float64Array): number {
  let total = 0;
  for (let from = 0; from < values.length; from += bufferLength)
    total += pairwiseSum(values, from, Math.min(bufferLength, values.length - from));
  return total;
}

/**
 * The same of values that are only made to be added: an array of them all would take longer to allocate than to add up.
 *
 * @param fill puts values `from` to `from + block.length` into the block
 */
export function sumOf(count: number, fill: (block: Float64Array, from: number) => void): number {
  const buffer = new Float64Array(Math.min(bufferLength, count));
  let total = 0;
  for (let from = 0; from < count; from += bufferLength) {
    const block = buffer.subarray(0, Math.min(bufferLength, count - from));
    fill(block, from);
    total += pairwiseSum(block, 0, block.length);
  }
  return total;
}

/** Of `values[from .. from + length)`; its rounding error grows with the logarithm of the length. */
function pairwiseSum(values: Float64Array, from: number, length: number): number {
  if (length < 8) {
    let sum = 0;
    for (let i = from; i < from + length; i++) sum += values[i]!;
    return sum;
  }
  if (length > blockLength) {
    let half = length >> 1;
    half -= half % 8;
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

/** Sum of `a[i] * b[i]`, in the order of `pairwiseSum`. */
export function pairwiseDot(a: Float64Array, b: Float64Array, from = 0, length = a.length): number {
  if (length > blockLength) {
    let half = length >> 1;
    half -= half % 8;
    return pairwiseDot(a, b, from, half) + pairwiseDot(a, b, from + half, length - half);
  }
  let [even, odd] = [0, 0];
  const end = from + length - (length % 2);
  for (let i = from; i < end; i += 2) {
    even += a[i]! * b[i]!;
    odd += a[i + 1]! * b[i + 1]!;
  }
  for (let i = end; i < from + length; i++) even += a[i]! * b[i]!;
  return even + odd;
}

/** Sum of `(a[i] - b[i])^2`, likewise. */
export function pairwiseSquaredError(a: Float64Array, b: Float64Array, from = 0, length = a.length): number {
  if (length > blockLength) {
    let half = length >> 1;
    half -= half % 8;
    return pairwiseSquaredError(a, b, from, half) + pairwiseSquaredError(a, b, from + half, length - half);
  }
  let [even, odd] = [0, 0];
  const end = from + length - (length % 2);
  for (let i = from; i < end; i += 2) {
    const [x, y] = [a[i]! - b[i]!, a[i + 1]! - b[i + 1]!];
    even += x * x;
    odd += y * y;
  }
  for (let i = end; i < from + length; i++) even += (a[i]! - b[i]!) * (a[i]! - b[i]!);
  return even + odd;
}

/** Sum of `(values[i] - center)^2`, likewise. */
export function pairwiseSquaredDeviation(
  values: Float64Array,
  center: number,
  from = 0,
  length = values.length,
): number {
  if (length > blockLength) {
    let half = length >> 1;
    half -= half % 8;
    return (
      pairwiseSquaredDeviation(values, center, from, half) +
      pairwiseSquaredDeviation(values, center, from + half, length - half)
    );
  }
  let [even, odd] = [0, 0];
  const end = from + length - (length % 2);
  for (let i = from; i < end; i += 2) {
    const [x, y] = [values[i]! - center, values[i + 1]! - center];
    even += x * x;
    odd += y * y;
  }
  for (let i = end; i < from + length; i++) even += (values[i]! - center) * (values[i]! - center);
  return even + odd;
}

export function mean(values: Float64Array): number {
  return sum(values) / values.length;
}
