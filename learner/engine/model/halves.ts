/** The dtypes of safetensors files, and float32 to and from their bytes. */
import { DTYPES } from "../graph/tensor.ts";
import { elementCount } from "./weights.ts";

/** Names of dtypes in graphs and in config.json, by their names in safetensors files. */
export const TRANSFORMERS_DTYPES = { F32: "float32", F16: "float16", BF16: "bfloat16" } as const;
/** Names of dtypes in safetensors files, by their names in graphs. */
export const SAFETENSORS_DTYPES = { float32: "F32", float16: "F16", bfloat16: "BF16" } as const;
export type SafetensorsDType = keyof typeof TRANSFORMERS_DTYPES;

export const storedBytes = (dtype: SafetensorsDType, shape: readonly number[]): number =>
  DTYPES[TRANSFORMERS_DTYPES[dtype]].bytes * elementCount(shape);

/** Converts exactly: every bfloat16 and float16 is a float32. Numbers that need no conversion keep their buffer. */
export function fromStored(dtype: SafetensorsDType, buffer: ArrayBuffer): Float32Array {
  if (dtype === "F32") return new Float32Array(buffer);
  if (dtype === "F16") return Float32Array.from(new Float16Array(buffer));
  const bits = new Uint16Array(buffer);
  const data = new Float32Array(bits.length);
  const words = new Uint32Array(data.buffer);
  for (let i = 0; i < bits.length; i++) words[i] = bits[i] << 16; // bfloat16 is the upper half of a float32
  return data;
}

/** The bits of a number's exponent: all are set in infinities and NaNs. One word has two halves. */
const EXPONENTS = { F32: [0x7f800000, 0x7f800000], BF16: [0x7f800000, 0x7f80], F16: [0x7c000000, 0x7c00] } as const;

/** Returns whether all numbers in the words of a file are finite. For 3B that takes 2 s; a conversion to float32 took 26 s. */
export function areFinite(dtype: SafetensorsDType, words: Uint32Array): boolean {
  const [high, low] = EXPONENTS[dtype];
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if ((word & high) === high || (word & low) === low) return false;
  }
  return true;
}

/** Rounds to the nearest, ties to even, as PyTorch does. */
export function toStored(dtype: SafetensorsDType, data: Float32Array): Uint8Array {
  if (dtype === "F32") return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (dtype === "F16") return new Uint8Array(Float16Array.from(data).buffer);
  const words = new Uint32Array(data.buffer, data.byteOffset, data.length);
  const bits = new Uint16Array(data.length);
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    const nan = (word & 0x7fffffff) > 0x7f800000; // rounding must not carry its payload into infinity
    bits[i] = nan ? (word >>> 16) | 0x40 : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  }
  return new Uint8Array(bits.buffer);
}
