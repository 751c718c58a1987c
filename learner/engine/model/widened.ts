/**
 * Float32 copies of a folder's half-precision matrices, for generation on a CPU. A processor without products in half precision casts each
 * matrix for every token anew, and casts on one thread; the copies are made once. The products have the same bits.
 */
import { DTYPES } from "../graph/tensor.ts";
import type { MappedWeights } from "./mapped.ts";
import { readTensor, type StoredTensor } from "./safetensors.ts";
import { elementCount } from "./weights.ts";

const isNarrow = ({ dtype, shape }: StoredTensor): boolean => dtype !== "F32" && shape.length === 2;

/** Returns the copies by name; undefined if all matrices are float32. */
export function wideMatrices({ tensors }: MappedWeights): ReadonlyMap<string, Float32Array> | undefined {
  const narrow = tensors.filter(isNarrow);
  return narrow.length > 0 ? new Map(narrow.map((tensor) => [tensor.name, readTensor(tensor)])) : undefined;
}

/** Returns the bytes of these copies; 0 if there are none. */
export const wideBytes = (tensors: readonly StoredTensor[]): number =>
  tensors.filter(isNarrow).reduce((total, { shape }) => total + DTYPES.float32.bytes * elementCount(shape), 0);
