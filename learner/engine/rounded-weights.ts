/**
 * Weights on a device for bfloat16 graphs that train every weight: matrices in bfloat16, the rest in float32. The float32
 * weights, the masters, are in this process's memory, which all workers share. There an update smaller than bfloat16's resolution is not
 * lost.
 */

import type { DeviceHalves } from "./device-halves.ts";
import { layoutOf, type ParameterShape } from "./graph/parameters.ts";
import { type DeviceTensor, elementCount } from "./graph/tensor.ts";
import { HALF_PREFIX, isMultiplied } from "./model/halved.ts";
import type { DeviceTensors } from "./model-memory.ts";
import { BLOCK_NUMBERS, type DeviceBuffer } from "./runtime/buffer.ts";
import type { Runtime } from "./runtime/runtime.ts";

type Shapes = readonly ParameterShape[];
type Made = { halves: DeviceHalves | undefined; rest: DeviceBuffer; block: DeviceBuffer };

/** Parameters that graphs read in float32. */
const rest = (shapes: Shapes) => shapes.filter(({ name }) => !isMultiplied(name));

/** Bytes of a model's rounded weights on a device. */
export function roundedBytes(shapes: Shapes): { matrices: number; rest: number } {
  const { offsets, size } = layoutOf(shapes);
  const matrices = shapes.filter(({ name }) => isMultiplied(name));
  const [first, last] = [matrices[0], matrices.at(-1)];
  const span = first && last ? offsets.get(last.name)! + elementCount(last.shape) - offsets.get(first.name)! : 0;
  return { matrices: 2 * Math.min(span, size), rest: 4 * layoutOf(rest(shapes)).size };
}

/** Room on a device for the rounded weights of one model at a time. */
export class RoundedWeights {
  readonly #runtime: Runtime;
  readonly #allocate: (shapes: Shapes) => Promise<DeviceHalves | undefined>;
  readonly #restNumbers: number;
  #made: Made | undefined;
  /** the masters whose rounded weights it has, and their version */
  #has: { masters: Masters; version: number } | undefined;

  /**
   * @param allocate makes room for bfloat16 matrices, which have the same shapes in all models
   * @param models the models for which there must be room
   */
  constructor(runtime: Runtime, allocate: (shapes: Shapes) => Promise<DeviceHalves | undefined>, models: Shapes[]) {
    this.#runtime = runtime;
    this.#allocate = allocate;
    this.#restNumbers = Math.max(...models.map((shapes) => layoutOf(rest(shapes)).size));
  }

  /** A model's newest weights by graphs' names, valid until the next call for another model. @throws GraphError `device` without memory */
  async of(masters: Masters): Promise<Record<string, DeviceTensor>> {
    const { shapes, version } = masters;
    this.#made ??= {
      rest: this.#runtime.reserve(this.#restNumbers),
      block: this.#runtime.reserve(BLOCK_NUMBERS),
      halves: await this.#allocate(shapes),
    };
    if (this.#has?.masters !== masters || this.#has.version !== version) {
      this.#has = undefined; // stays undefined if a copy fails
      await this.#write(masters, this.#made);
      this.#has = { masters, version };
    }
    return { ...this.#made.rest.parameters(rest(shapes)), ...this.#made.halves?.parameters(HALF_PREFIX) };
  }

  async #write({ shapes, shared }: Masters, { halves, rest: there, block }: Made): Promise<void> {
    const [{ offsets }, within] = [layoutOf(shapes), layoutOf(rest(shapes)).offsets];
    for (const { name, shape } of rest(shapes)) {
      const from = offsets.get(name)!;
      await this.#runtime.write(there, shared.subarray(from, from + elementCount(shape)), within.get(name));
    }
    await halves?.write(async (start, count) => {
      await this.#runtime.write(block, shared.subarray(start, start + count));
      return block.view(0, [count]);
    });
  }

  release(): void {
    this.#made?.halves?.release();
    this.#made?.rest.release();
    this.#made?.block.release();
    this.#made = this.#has = undefined;
  }
}

/** The float32 weights of a model in this process's memory, and its rounded weights on a device. */
export class Masters implements DeviceTensors {
  readonly shared: Float32Array;
  readonly shapes: Shapes;
  readonly #room: RoundedWeights;
  readonly #ownsRoom: boolean;
  /** grows with each change */
  version = 0;

  constructor(room: RoundedWeights, shapes: Shapes, shared: Float32Array, ownsRoom: boolean) {
    this.#room = room;
    this.#ownsRoom = ownsRoom;
    this.shapes = shapes;
    this.shared = shared;
  }

  get length(): number {
    return this.shared.length;
  }

  async tensors(): Promise<Record<string, DeviceTensor>> {
    return this.#room.of(this);
  }

  async zero(): Promise<void> {
    this.shared.fill(0);
    this.markHostDirty();
  }

  markHostDirty(): void {
    this.version++;
  }

  /** The newest numbers are in shared memory already. */
  async fetch(): Promise<void> {}

  async put(numbers: Float32Array, from: number): Promise<void> {
    this.shared.set(numbers, from);
    this.markHostDirty();
  }

  async allGather(): Promise<void> {
    this.markHostDirty();
  }

  release(): void {
    if (this.#ownsRoom) this.#room.release();
  }
}
