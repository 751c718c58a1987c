/**
 * bfloat16 beside float32 on a device: copies of the matrices that a bfloat16 graph multiplies, made once for each version of the weights,
 * and the gradients of one micro-batch, which are then added to the float32 sum. In a graph both would be kernels for every matrix.
 */

import { Graph } from "./graph/graph.ts";
import { layoutOf, type ParameterShape } from "./graph/parameters.ts";
import { add, cast } from "./graph/primitives.ts";
import { type DeviceTensor, DTYPES, elementCount } from "./graph/tensor.ts";
import { isMultiplied } from "./model/halved.ts";
import { BLOCK_NUMBERS, type DeviceBuffer } from "./runtime/buffer.ts";
import type { Runtime } from "./runtime/runtime.ts";
import type { Session } from "./runtime/session.ts";

const BLOCK = ["block"];
const { bytes: HALF_BYTES } = DTYPES.bfloat16;
/** bfloat16 numbers that take the room of a float32 */
const PER_FLOAT = DTYPES.float32.bytes / HALF_BYTES;

/** The sessions that turn one into the other, in blocks, as an optimiser works. */
export type HalfKernels = Record<"narrow" | "add", Session>;

export async function halfKernels(runtime: Runtime, threads: number): Promise<HalfKernels> {
  const options = { threads, graphOptimizationLevel: "basic" } as const;
  const narrow = new Graph("narrow");
  narrow.output("narrow", cast(narrow.input("wide", "float32", BLOCK), "bfloat16"));
  const sum = new Graph("add_halves");
  const part = cast(sum.input("part", "bfloat16", BLOCK), "float32");
  sum.output("sum", add(sum.input("total", "float32", BLOCK), part));
  return { narrow: await runtime.createSession(narrow, options), add: await runtime.createSession(sum, options) };
}

interface Matrix extends ParameterShape {
  /** in a float32 buffer of all parameters, numbers */
  offset: number;
}

/** bfloat16 numbers for the matrices among some parameters, in the places that they have in a float32 buffer of all. */
export class DeviceHalves {
  readonly #kernels: HalfKernels;
  readonly #buffer: DeviceBuffer;
  readonly #matrices: readonly Matrix[];
  /** of the matrices in the buffer of all parameters, numbers */
  readonly #begin: number;
  readonly #end: number;

  private constructor(kernels: HalfKernels, buffer: DeviceBuffer, matrices: readonly Matrix[], end: number) {
    this.#kernels = kernels;
    this.#buffer = buffer;
    this.#matrices = matrices;
    this.#begin = matrices[0].offset;
    this.#end = end;
  }

  /** Zeros; undefined where no parameter is multiplied. @throws GraphError `device` where there is no memory left */
  static async allocate(
    runtime: Runtime,
    kernels: HalfKernels,
    shapes: readonly ParameterShape[],
  ): Promise<DeviceHalves | undefined> {
    const { offsets } = layoutOf(shapes);
    const matrices = shapes.flatMap((of) => (isMultiplied(of.name) ? [{ ...of, offset: offsets.get(of.name)! }] : []));
    const last = matrices.at(-1);
    if (!last) return undefined;
    const end = last.offset + elementCount(last.shape);
    const buffer = await runtime.allocate(Math.ceil((end - matrices[0].offset) / PER_FLOAT));
    return new DeviceHalves(kernels, buffer, matrices, end);
  }

  /** Whether these are as good for other parameters: what lies between the matrices is 0. */
  fits(shapes: readonly ParameterShape[]): boolean {
    const matrices = shapes.filter(({ name }) => isMultiplied(name));
    return (
      matrices.length === this.#matrices.length && matrices.every(({ name }, i) => name === this.#matrices[i].name)
    );
  }

  parameters(prefix: string): Record<string, DeviceTensor> {
    return Object.fromEntries(
      this.#matrices.map(({ name, shape, offset }) => [prefix + name, this.#view(offset, shape)]),
    );
  }

  async write(from: DeviceBuffer): Promise<void> {
    for (const { start, size } of this.#blocks())
      await this.#kernels.narrow.run({ wide: from.view(start, size) }, { narrow: this.#view(start, size) });
  }

  /** Adds them to the float32 buffer of all parameters. */
  async addTo(total: DeviceBuffer): Promise<void> {
    for (const { start, size } of this.#blocks()) {
      const sum = total.view(start, size);
      await this.#kernels.add.run({ total: sum, part: this.#view(start, size) }, { sum });
    }
  }

  release(): void {
    this.#buffer.release();
  }

  *#blocks(): Generator<{ start: number; size: readonly number[] }> {
    for (let start = this.#begin; start < this.#end; start += BLOCK_NUMBERS)
      yield { start, size: [Math.min(BLOCK_NUMBERS, this.#end - start)] };
  }

  /** @param offset in the buffer of all parameters */
  #view(offset: number, shape: readonly number[]): DeviceTensor {
    return this.#buffer.viewOfBytes(HALF_BYTES * (offset - this.#begin), "bfloat16", shape);
  }
}
