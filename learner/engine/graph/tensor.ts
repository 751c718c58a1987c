/** Data types and host tensors. A host tensor is a typed array with a shape; nothing is ever copied to make one. */
import { GraphError } from "./errors.ts";

export type TypedArray = Float32Array | Float64Array | Int32Array | BigInt64Array | Uint8Array | Uint16Array;
export type DType = keyof typeof DTYPES;

export interface Tensor {
  dtype: DType;
  shape: readonly number[];
  data: TypedArray;
}

/** A tensor where a graph runs, which stays there between runs; only the sessions that made it know it (../device). */
export interface DeviceTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** address of the OrtValue */
  readonly address: bigint;
}

/** TensorProto.DataType of ONNX, bytes per element, and the array of a host tensor. */
export const DTYPES = {
  float32: { code: 1, bytes: 4, array: Float32Array },
  uint8: { code: 2, bytes: 1, array: Uint8Array },
  int32: { code: 6, bytes: 4, array: Int32Array },
  int64: { code: 7, bytes: 8, array: BigInt64Array },
  bool: { code: 9, bytes: 1, array: Uint8Array },
  float16: { code: 10, bytes: 2, array: Uint16Array },
  float64: { code: 11, bytes: 8, array: Float64Array },
  bfloat16: { code: 16, bytes: 2, array: Uint16Array },
} as const;

const dtypeOf = (data: TypedArray): DType =>
  (Object.keys(DTYPES) as DType[]).find((dtype) => data instanceof DTYPES[dtype].array)!;

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

/** A host tensor of zeros. */
export function zeros(dtype: DType, shape: readonly number[]): Tensor {
  return tensor(new DTYPES[dtype].array(elementCount(shape)), shape, dtype);
}

/** A host tensor from plain numbers. */
export function tensorOf(dtype: DType, values: readonly number[], shape: readonly number[] = [values.length]): Tensor {
  const { array } = DTYPES[dtype];
  if (array === BigInt64Array) return tensor(array.from(values, BigInt), shape, dtype);
  if (array !== Uint16Array) return tensor(new (array as typeof Float32Array)(values), shape, dtype);
  const remedy = "make a float32 tensor and cast it in the graph";
  throw new GraphError("dtype", `tensorOf: no ${dtype} from plain numbers; ${remedy}`);
}
