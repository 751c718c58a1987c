/**
 * bfloat16 numbers beside float32 on a device: copies of the matrices that a bfloat16 graph multiplies, made once for each version of the weights,
 * and the gradients of one micro-batch, which are then added to the float32 sum. In a graph, copies and sums would need a kernel for every matrix.
 */

import { isDeepStrictEqual } from "node:util";
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

/** Returns `count` float32 numbers from `start` on as a tensor on the device, valid until the next call. */
type Wide = (start: number, count: number) => DeviceTensor | Promise<DeviceTensor>;

/** The sessions that convert between the two, block by block. */
export type HalfKernels = Record<"narrow" | "add", Session>;

export async function halfKernels(runtime: Runtime, threads: number): Promise<HalfKernels> {
  const options = { threads, graphOptimizationLevel: "basic" } as const;
  const narrow = new Graph("narrow");
  narrow.output("narrow", cast(narrow.input("wide", "float32", BLOCK), runtime.half));
  const sum = new Graph("add_halves");
  const part = cast(sum.input("part", runtime.half, BLOCK), "float32");
  sum.output("sum", add(sum.input("total", "float32", BLOCK), part));
  return { narrow: await runtime.createSession(narrow, options), add: await runtime.createSession(sum, options) };
}

const namesOf = (shapes: readonly ParameterShape[]) => shapes.map(({ name }) => name).filter(isMultiplied);

export type DeviceHalves = NonNullable<Awaited<ReturnType<typeof allocateHalves>>>;

/**
 * bfloat16 zeros for the matrices among some parameters, in the places that they have in a float32 buffer of all parameters; undefined
 * where no parameter is multiplied. @throws GraphError `device` where there is no memory left
 */
export async function allocateHalves(runtime: Runtime, kernels: HalfKernels, shapes: readonly ParameterShape[]) {
  const matrices = shapes.filter(({ name }) => isMultiplied(name));
  const last = matrices.at(-1);
  if (!last) return undefined;
  const { offsets } = layoutOf(shapes);
  const begin = offsets.get(matrices[0].name)!;
  const end = offsets.get(last.name)! + elementCount(last.shape);
  const buffer = await runtime.allocate(Math.ceil((end - begin) / PER_FLOAT));
  /** @param offset in the buffer of all parameters */
  const view = (offset: number, shape: readonly number[]): DeviceTensor =>
    buffer.viewOfBytes(HALF_BYTES * (offset - begin), runtime.half, shape);
  /** Runs a kernel on each block of the float32 numbers and of these bfloat16 numbers. */
  const each = async (wide: Wide, run: (wide: DeviceTensor, narrow: DeviceTensor) => Promise<unknown>) => {
    for (let start = begin; start < end; start += BLOCK_NUMBERS) {
      const count = Math.min(BLOCK_NUMBERS, end - start);
      await run(await wide(start, count), view(start, [count]));
    }
  };
  const inBuffer =
    (buffer: DeviceBuffer): Wide =>
    (start, count) =>
      buffer.view(start, [count]);
  return {
    /** Returns whether other parameters have the same matrices. The numbers between the matrices are 0. */
    fits: (others: readonly ParameterShape[]) => isDeepStrictEqual(namesOf(others), namesOf(shapes)),
    parameters: (prefix: string): Record<string, DeviceTensor> =>
      Object.fromEntries(matrices.map(({ name, shape }) => [prefix + name, view(offsets.get(name)!, shape)])),
    /** Sets the bfloat16 numbers to the rounded float32 numbers of all parameters. */
    write: (from: DeviceBuffer | Wide) =>
      each(typeof from === "function" ? from : inBuffer(from), (wide, narrow) =>
        kernels.narrow.run({ wide }, { narrow }),
      ),
    /** Adds the bfloat16 numbers to the float32 buffer of all parameters. */
    addTo: (total: DeviceBuffer) =>
      each(inBuffer(total), (sum, part) => kernels.add.run({ total: sum, part }, { sum })),
    release: () => buffer.release(),
  };
}
