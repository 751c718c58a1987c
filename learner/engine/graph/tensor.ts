/** Data types and host tensors. A host tensor is a typed array with a shape; nothing is ever copied to make one. */
import { GraphError } from "./errors.ts";

export type TypedArray = Float32Array | Float64Array | Int32Array | BigInt64Array | Uint8Array | Uint16Array;
export type DType = "float32" | "float64" | "int32" | "int64" | "bool" | "uint8" | "float16" | "bfloat16";

export interface Tensor {
  dtype: DType;
  shape: readonly number[];
  data: TypedArray;
}

/** A tensor where a graph runs, which stays there between runs; only the sessions that made it know it (../device). */
export interface DeviceTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** of the OrtValue */
  readonly address: bigint;
}

/** TensorProto.DataType of ONNX and bytes per element. */
export const DTYPES: Record<DType, { code: number; bytes: number }> = {
  float32: { code: 1, bytes: 4 },
  uint8: { code: 2, bytes: 1 },
  int32: { code: 6, bytes: 4 },
  int64: { code: 7, bytes: 8 },
  bool: { code: 9, bytes: 1 },
  float16: { code: 10, bytes: 2 },
  float64: { code: 11, bytes: 8 },
  bfloat16: { code: 16, bytes: 2 },
};

function dtypeOf(data: TypedArray): DType {
  if (data instanceof Float32Array) return "float32";
  if (data instanceof Int32Array) return "int32";
  if (data instanceof BigInt64Array) return "int64";
  if (data instanceof Float64Array) return "float64";
  if (data instanceof Uint16Array) return "float16";
  return "uint8";
}

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, dim) => product * dim, 1);
}

/** A host tensor over `data`; the dtype follows the typed array (Uint8Array: uint8 unless 'bool' is said, Uint16Array: float16). */
export function tensor(data: TypedArray, shape: readonly number[] = [data.length], dtype = dtypeOf(data)): Tensor {
  if (elementCount(shape) !== data.length) {
    throw new GraphError("shape", `tensor: ${data.length} elements do not fill the shape [${shape}]; check the shape`);
  }
  return { dtype, shape, data };
}

const FROM_NUMBERS: Partial<Record<DType, (values: readonly number[]) => TypedArray>> = {
  float32: (values) => Float32Array.from(values),
  float64: (values) => Float64Array.from(values),
  int32: (values) => Int32Array.from(values),
  int64: (values) => BigInt64Array.from(values, BigInt),
  bool: (values) => Uint8Array.from(values),
  uint8: (values) => Uint8Array.from(values),
};

/** A host tensor from plain numbers. */
export function tensorOf(dtype: DType, values: readonly number[], shape: readonly number[] = [values.length]): Tensor {
  const from = FROM_NUMBERS[dtype];
  if (from) return tensor(from(values), shape, dtype);
  const remedy = "make a float32 tensor and cast it in the graph";
  throw new GraphError("dtype", `tensorOf: no ${dtype} from plain numbers; ${remedy}`);
}
