/**
 * The memory in which a worker's graphs read and write models: shared memory of this process, or memory of a device.
 * Weights and moments have an array in shared memory in both cases. A device has its own copies; checkpoints fetch them.
 */

import { type AdamWScalars, adamwStep, addAll, sumOfSquares } from "./adamw.ts";
import { viewsOf } from "./adaptation.ts";
import type { DeviceHalves } from "./device-halves.ts";
import { layoutOf, type ParameterShape, Parameters } from "./graph/parameters.ts";
import type { DeviceTensor, Tensor } from "./graph/tensor.ts";
import type { Numbers } from "./model/generate-weights.ts";
import type { DeviceBuffer } from "./runtime/buffer.ts";

/** The part of a model's numbers that one worker steps: from `from` up to `to`, exclusive. */
export type Range = { from: number; to: number };

/** float32 numbers that graphs read and write. */
export interface Held {
  readonly length: number;
  /** The numbers themselves, where graphs work in this process's memory. */
  readonly shared?: Float32Array;
  /** The numbers on a device, where graphs work there. */
  readonly buffer?: DeviceBuffer;
  /** Tensors of these shapes, as `Parameters` lays them out, by `prefix + name`. */
  tensors(shapes: readonly ParameterShape[], prefix?: string): Promise<Record<string, Tensor | DeviceTensor>>;
  zero(): Promise<void>;
  /** Call it after a write to the array in shared memory, which then is the newest copy. */
  markHostDirty(): void;
  /** Copies the newest numbers, from number `from` on, into `numbers`. */
  fetch(numbers: Float32Array, from?: number): Promise<void>;
  release(): void;
}

/** Numbers on a device, which it exchanges with others through this process's memory. */
export interface DeviceTensors extends Held {
  /** Copies `numbers` there, from number `from` on. */
  put(numbers: Float32Array, from: number): Promise<void>;
  /** Copies all numbers outside a part from the array in shared memory, which already has this part's numbers. */
  allGather(own: Range): Promise<void>;
}

/** The arrays of an AdamW step for a part of the numbers. The moments cover only this part; the gradient may be longer than the weights. */
export type HeldModel = Record<"weights" | "gradient" | "first" | "second", Held>;

export interface Memory {
  /** Whether an optimiser's numbers stay in shared memory, and pass through the device in a step. */
  readonly offloads: boolean;
  /** Returns numbers that begin as a copy of `numbers`, an array in shared memory, or as zeros without it. */
  hold(length: number, numbers?: Float32Array): Promise<Held>;
  /** Returns a model's weights, which begin as a copy of the weights in shared memory. */
  holdWeights(shapes: readonly ParameterShape[], numbers: Float32Array): Promise<Held>;
  /** Returns one of the optimiser's moments: as `hold`, but an offloaded moment is the array itself. */
  holdMoment(length: number, numbers?: Float32Array): Promise<Held>;
  /**
   * Returns the sum of a gradient's squares in float64, not finite if any number is not.
   * @param others gradients in shared memory that are added first
   */
  squares(gradient: Held, range: Range, others: readonly Float32Array[]): Promise<number>;
  /** bfloat16 copies of the newest weights' matrices that a graph multiplies, by graphs' names; empty if graphs take none. */
  halves(weights: Held, shapes: readonly ParameterShape[]): Promise<Record<string, DeviceTensor>>;
  /** Returns the buffer for a graph's bfloat16 gradients of one micro-batch; undefined if it has none. */
  part(shapes: readonly ParameterShape[]): Promise<DeviceHalves | undefined>;
  /** A model's weights for generation, on a GPU with bfloat16 copies of the matrices. */
  generatorWeights(weights: Held, shapes: readonly ParameterShape[]): Promise<Numbers>;
  /** Returns room in this process's memory for numbers from a device, valid until the next call. */
  piece(length: number): Float32Array;
  /** Takes an AdamW step over a part of the numbers, in place. */
  adamw(model: HeldModel, range: Range, scalars: AdamWScalars): Promise<void>;
}

/** Shared memory itself: nothing is copied. */
export class HostMemory implements Memory {
  readonly offloads = false;

  async hold(
    length: number,
    numbers: Float32Array = new Float32Array(new SharedArrayBuffer(4 * length)),
  ): Promise<Held> {
    return new HostHeld(numbers);
  }

  async holdWeights(_: readonly ParameterShape[], numbers: Float32Array): Promise<Held> {
    return new HostHeld(numbers);
  }

  async holdMoment(length: number, numbers?: Float32Array): Promise<Held> {
    return this.hold(length, numbers);
  }

  async squares({ shared }: Held, range: Range, others: readonly Float32Array[]): Promise<number> {
    const part = (numbers: Float32Array) => numbers.subarray(range.from, range.to);
    return others.length > 0 ? addAll(part(shared!), others.map(part)) : sumOfSquares(part(shared!));
  }

  piece(length: number): Float32Array {
    return new Float32Array(length);
  }

  async halves(): Promise<Record<string, never>> {
    return {};
  }

  async part(): Promise<undefined> {
    return undefined;
  }

  async generatorWeights({ shared }: Held, shapes: readonly ParameterShape[]): Promise<Numbers> {
    return viewsOf(new Parameters(shapes, shared));
  }

  async adamw({ weights, gradient, first, second }: HeldModel, range: Range, scalars: AdamWScalars): Promise<void> {
    const part = ({ shared }: Held) => shared!.subarray(range.from, range.to);
    const moments = { first: first.shared!, second: second.shared! };
    adamwStep({ weights: part(weights), gradient: part(gradient), ...moments }, scalars);
  }
}

export class HostHeld implements Held {
  readonly shared: Float32Array;
  #views: Parameters | undefined;

  constructor(numbers: Float32Array) {
    this.shared = numbers;
  }

  get length(): number {
    return this.shared.length;
  }

  async tensors(shapes: readonly ParameterShape[], prefix = ""): Promise<Record<string, Tensor>> {
    if (this.#views?.shapes !== shapes)
      this.#views = new Parameters(shapes, this.shared.subarray(0, layoutOf(shapes).size));
    return this.#views.views(prefix);
  }

  async zero(): Promise<void> {
    this.shared.fill(0);
  }

  markHostDirty(): void {}

  async fetch(numbers: Float32Array, from = 0): Promise<void> {
    if (numbers.buffer !== this.shared.buffer) numbers.set(this.shared.subarray(from, from + numbers.length));
  }

  release(): void {}
}
