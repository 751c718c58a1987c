/** Numbers for kernels, and how far results are from them. */
import { type Tensor, tensor } from "../../learner/engine/graph/tensor.ts";
import { uniforms } from "../../learner/engine/model/random.ts";

/** Of the largest value: a bfloat16 has 8 bits, and a probability is rounded before it is multiplied. */
export const BFLOAT16 = 5e-3;
export const FLOAT32 = 1e-5;

/** Numbers, rounded to bfloat16, that are the same in every run. */
export function numbers(count: number, seed: number, scale = 1): Float32Array {
  const next = uniforms(seed, "kernel");
  const data = Float32Array.from({ length: count }, () => scale * (next() + next() + next() + next() - 2));
  const bits = new Uint32Array(data.buffer);
  for (let i = 0; i < count; i++) bits[i] = ((bits[i]! + 0x7fff + ((bits[i]! >>> 16) & 1)) & 0xffff0000) >>> 0;
  return data;
}

/** The same as a tensor. */
export const tensorOfNumbers = (shape: readonly number[], seed: number, scale = 1): Tensor =>
  tensor(
    numbers(
      shape.reduce((a, b) => a * b, 1),
      seed,
      scale,
    ),
    shape,
  );

/** The largest difference, as a part of the largest value. */
export function difference(found: Float32Array, wanted: Float32Array): number {
  let [worst, largest] = [0, 0];
  for (let i = 0; i < wanted.length; i++) {
    const off = Math.abs(found[i]! - wanted[i]!);
    worst = Number.isNaN(off) ? Number.POSITIVE_INFINITY : Math.max(worst, off);
    largest = Math.max(largest, Math.abs(wanted[i]!));
  }
  return largest === 0 ? worst : worst / largest;
}
