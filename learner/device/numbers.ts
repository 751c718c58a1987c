/** Numbers on a device that grow: keys and values, which one run writes and the next one reads. */
import type { Numbers } from "../graph/session.ts";
import { type DeviceTensor, elementCount } from "../graph/tensor.ts";
import type { DeviceBuffer } from "./buffer.ts";
import type { DeviceRuntime } from "./runtime.ts";

export class DeviceNumbers implements Numbers {
  readonly #runtime: DeviceRuntime;
  readonly #capacity: number;
  #buffer: DeviceBuffer | undefined;

  /** @param capacity room for so many is made with the first of them; more have room of their own */
  constructor(runtime: DeviceRuntime, capacity = 1) {
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
