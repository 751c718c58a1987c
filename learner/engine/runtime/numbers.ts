/** Numbers on a device that grow: keys and values, which one run writes and the next one reads. */
import type { Graph } from "../graph/graph.ts";
import { type DeviceTensor, elementCount, type Tensor } from "../graph/tensor.ts";
import type { DeviceBuffer } from "./buffer.ts";
import type { Runtime } from "./runtime.ts";
import type { Session, SessionOptions } from "./session.ts";

/** Float32 numbers that runs read and write, as many as are needed, here or where the graphs run. */
export interface Numbers {
  /** The first of them as a tensor, with room for all of its own; what is there beyond those that were set is anything. */
  tensor(shape: readonly number[]): Tensor | DeviceTensor;
  /** The first `length` of them, not to be changed. */
  read(length: number): Promise<Float32Array>;
  /** Where `length` numbers can be put together before they are set. */
  scratch(length: number): Float32Array;
  set(numbers: Float32Array): Promise<void>;
  release(): void;
}

/** What a device has that this process's memory has not: sessions, and numbers that stay there between runs. */
export interface OnDevice {
  createSession(graph: Graph, options: SessionOptions): Promise<Session>;
  /** @param capacity as many as there will be, for which there is room at once */
  numbers(capacity?: number): Numbers;
}

export class DeviceNumbers implements Numbers {
  readonly #runtime: Runtime;
  readonly #capacity: number;
  #buffer: DeviceBuffer | undefined;

  /** @param capacity room for so many is made with the first of them; more have room of their own */
  constructor(runtime: Runtime, capacity = 1) {
    this.#runtime = runtime;
    this.#capacity = capacity;
  }

  tensor(shape: readonly number[]): DeviceTensor {
    return this.#room(elementCount(shape)).view(0, shape);
  }

  async read(length: number): Promise<Float32Array> {
    const numbers = new Float32Array(length);
    await this.#runtime.read(this.#room(length), numbers);
    return numbers;
  }

  scratch(length: number): Float32Array {
    return new Float32Array(length);
  }

  async set(numbers: Float32Array): Promise<void> {
    await this.#runtime.write(this.#room(numbers.length), numbers);
  }

  /** What was there is lost where it does not suffice; shapes that it was seen in are forgotten. */
  #room(length: number): DeviceBuffer {
    this.#buffer?.forgetViews();
    if (this.#buffer && this.#buffer.length >= length) return this.#buffer;
    this.release();
    this.#buffer = this.#runtime.reserve(Math.max(length, this.#capacity));
    return this.#buffer;
  }

  release(): void {
    this.#buffer?.release();
    this.#buffer = undefined;
  }
}
