/** Numbers on a device in one piece, seen as tensors; Parameters (../graph/parameters.ts) is the same in this process's memory. */
import { layoutOf, type ParameterShape } from "../graph/parameters.ts";
import { type DeviceTensor, DTYPES, type DType, elementCount, type Tensor, tensor } from "../graph/tensor.ts";
import type { OrtApi, Pointer } from "./api.ts";

/**
 * Numbers that an optimiser works on at a time. Its temporary buffers have this size for every model, and an index
 * fits into 32 bits.
 */
export const BLOCK_NUMBERS = 2 ** 22;

export interface Block {
  /** float32 [end - start] */
  values: DeviceTensor;
  start: number;
  end: number;
}

export class DeviceBuffer {
  readonly #api: OrtApi;
  readonly #memory: Pointer;
  readonly #value: Pointer;
  readonly #data: Pointer;
  readonly length: number;
  readonly #views = new Map<string, DeviceTensor>();

  /** @param value an OrtValue, float32 [length], which this releases */
  constructor(api: OrtApi, memory: Pointer, value: Pointer, length: number) {
    this.#api = api;
    this.#memory = memory;
    this.#value = value;
    this.#data = api.created((out) => api.GetTensorMutableData(value, out));
    this.length = length;
  }

  /** Returns the address of number `start`. */
  addressOf(start: number): Pointer {
    return this.#data + BigInt(DTYPES.float32.bytes * start);
  }

  /** The numbers from `start` on, as a tensor of their own; not a copy. */
  view(start: number, shape: readonly number[]): DeviceTensor {
    return this.viewOfBytes(DTYPES.float32.bytes * start, "float32", shape);
  }

  /** The same buffer from byte `offset` on, read as numbers of another type. */
  viewOfBytes(offset: number, dtype: DType, shape: readonly number[]): DeviceTensor {
    const key = `${offset}:${dtype}:${shape}`;
    const known = this.#views.get(key);
    if (known) return known;
    const api = this.#api;
    const { bytes, code } = DTYPES[dtype];
    const dims = BigInt64Array.from(shape, BigInt);
    const address = api.created((out) =>
      api.CreateTensorWithDataAsOrtValue(
        this.#memory,
        this.#data + BigInt(offset),
        bytes * elementCount(shape),
        dims.length > 0 ? dims : null,
        dims.length,
        code,
        out,
      ),
    );
    const view: DeviceTensor = { dtype, shape, address };
    this.#views.set(key, view);
    return view;
  }

  /** The numbers up to, and without, `to` (all when left out), BLOCK_NUMBERS at a time. */
  *blocks(to = this.length, from = 0): Generator<Block> {
    for (let start = from; start < to; start += BLOCK_NUMBERS) {
      const end = Math.min(to, start + BLOCK_NUMBERS);
      yield { values: this.view(start, [end - start]), start, end };
    }
  }

  /** Views by `prefix + name`, where `Parameters` of these shapes has them. */
  parameters(shapes: readonly ParameterShape[], prefix = ""): Record<string, DeviceTensor> {
    const { offsets } = layoutOf(shapes);
    return Object.fromEntries(shapes.map(({ name, shape }) => [prefix + name, this.view(offsets.get(name)!, shape)]));
  }

  /** Frees the views that were given out, not the numbers: for a buffer whose views change shape often. */
  forgetViews(): void {
    for (const { address } of this.#views.values()) this.#api.ReleaseValue(address);
    this.#views.clear();
  }

  release(): void {
    this.forgetViews();
    this.#api.ReleaseValue(this.#value);
  }
}

/** float32 zeros of this process, with the methods of a DeviceBuffer that make and free tensors. */
export class HostBuffer {
  readonly #data: Float32Array<ArrayBuffer>;

  constructor(length: number) {
    this.#data = new Float32Array(length);
  }

  viewOfBytes(offset: number, _: "float32", shape: readonly number[]): Tensor {
    const start = offset / DTYPES.float32.bytes;
    return tensor(this.#data.subarray(start, start + elementCount(shape)), shape);
  }

  /** Frees the numbers at once, without waiting for garbage collection. */
  release(): void {
    this.#data.buffer.transfer(0);
  }
}
