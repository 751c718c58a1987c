/**
 * The inputs of a run from this process's memory, sent to the device in one copy. ONNX Runtime copies each input by itself, and a
 * step has two dozen; most are small, so the number of copies matters, not their bytes.
 */
import type { Graph, Value } from "../graph/graph.ts";
import { type DeviceTensor, DTYPES, type Tensor } from "../graph/tensor.ts";
import type { DeviceBuffer } from "./buffer.ts";

/** CUDA's own allocations are aligned to this. */
export const ALIGNMENT_BYTES = 256;
/** Inputs of at most this size are sent together. A larger one is sent alone, because joining it would copy it on the host first. */
const MOST_BYTES = 2 ** 22;
const FLOAT_BYTES = DTYPES.float32.bytes;

/** Allocates memory on the device, and copies numbers to it. */
export interface Room {
  /** float32 [length], of which nothing is known */
  reserve(length: number): DeviceBuffer;
  write(buffer: DeviceBuffer, numbers: Float32Array): Promise<void>;
}

export class Staging {
  readonly #room: Room;
  #buffer: DeviceBuffer | undefined;
  #scratch = new Float32Array(0);

  constructor(room: Room) {
    this.#room = room;
  }

  /**
   * Sends inputs of a run together. Returns them as tensors on the device, which are valid until the next call.
   *
   * @param names of the inputs that may: `stageable`
   */
  async send(
    feeds: Readonly<Record<string, Tensor | DeviceTensor>>,
    names: ReadonlySet<string>,
  ): Promise<Record<string, DeviceTensor>> {
    const tensors = Object.entries(feeds).filter(
      (feed): feed is [string, Tensor] => names.has(feed[0]) && goesTogether(feed[1]),
    );
    if (tensors.length < 2) return {};
    const offsets = new Map<string, number>();
    let end = 0;
    for (const [name, { data }] of tensors) {
      offsets.set(name, end);
      end += Math.ceil(data.byteLength / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
    }
    const buffer = this.#reserved(end / FLOAT_BYTES);
    const bytes = new Uint8Array(this.#scratch.buffer);
    for (const [name, { data }] of tensors)
      bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), offsets.get(name)!);
    await this.#room.write(buffer, this.#scratch.subarray(0, end / FLOAT_BYTES));
    return Object.fromEntries(
      tensors.map(([name, { dtype, shape }]) => [name, buffer.viewOfBytes(offsets.get(name)!, dtype, shape)]),
    );
  }

  /** @param length float32 numbers */
  #reserved(length: number): DeviceBuffer {
    if (this.#buffer && this.#buffer.length >= length) {
      this.#buffer.forgetViews();
      return this.#buffer;
    }
    this.#buffer?.release();
    this.#buffer = undefined; // frees the old room first, in case the allocation of the next one fails
    this.#buffer = this.#room.reserve(length);
    this.#scratch = new Float32Array(length);
    return this.#buffer;
  }

  release(): void {
    this.#buffer?.release();
    this.#buffer = undefined;
  }
}

/** Excludes inputs that are on the device already, and large ones. */
function goesTogether(feed: Tensor | DeviceTensor): feed is Tensor {
  return !("address" in feed) && feed.data.byteLength > 0 && feed.data.byteLength <= MOST_BYTES;
}

/**
 * The inputs that ONNX Runtime wants on the device. It wants three kinds of input in this process's memory, and would copy them back:
 * inputs that lead to no output, inputs whose shape a node reads, and single integers (the size of an Expand, the length that
 * attention makes room for).
 */
export function stageable(graph: Graph): ReadonlySet<string> {
  const live = new Set(graph.outputs.map(({ value }) => value.name));
  const measured = new Set<string>();
  // From the last node on: a node whose outputs nobody reads needs no inputs.
  for (const { type, inputs, outputs } of graph.nodes.toReversed())
    if (outputs.some(({ name }) => live.has(name) || measured.has(name)))
      for (const name of inputs) (type === "Shape" ? measured : live).add(name);
  const isSize = ({ dtype, shape }: Value) =>
    dtype === "int64" ? shape.every((dim) => dim === 1) : dtype === "int32" && shape.length === 0;
  const wanted = graph.inputs.filter((it) => live.has(it.name) && !measured.has(it.name) && !isSize(it));
  return new Set(wanted.map(({ name }) => name));
}
