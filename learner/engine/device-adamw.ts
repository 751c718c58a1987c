/**
 * AdamW as in adamw.ts, for weights, gradients and moments on a device: the same operations in the same order, in float64 as in JavaScript,
 * so that every step gives the same bits. The step works block by block, so that temporary values are small. Its scalars are copied
 * to the device in one piece; the sum of the gradient's squares is copied back.
 */

import type { AdamWScalars } from "./adamw.ts";
import { fusedAdamW, fusedSquares, fusesAdamW } from "./graph/fused.ts";
import { Graph, type Value } from "./graph/graph.ts";
import { add, cast, div, mul, sqrt, square, sub, sum } from "./graph/primitives.ts";
import { type DeviceTensor, DTYPES } from "./graph/tensor.ts";
import type { HeldModel, Range } from "./model-memory.ts";
import { BLOCK_NUMBERS, type DeviceBuffer } from "./runtime/buffer.ts";
import type { Runtime } from "./runtime/runtime.ts";
import type { StepOptions } from "./steps.ts";

const BLOCK = ["block"];
const SCALARS: readonly (keyof AdamWScalars)[] = [
  ...(["scale", "beta1", "gradientShare", "beta2", "squareShare", "stepSize", "epsilon", "decay"] as const),
];

type GraphOptions = Pick<StepOptions, "compute" | "kernels">;

/** gradient, float32 [block], and total, float64 [] -> squares, the total with the sum of the gradient's, float64 [] */
export function squaresGraph(options: GraphOptions = {}): Graph {
  const graph = new Graph("squares", options);
  const gradient = graph.input("gradient", "float32", BLOCK);
  const squares = fusesAdamW({ graph }) ? fusedSquares(gradient) : square(cast(gradient, "float64"));
  graph.output("squares", add(graph.input("total", "float64", []), sum(squares)));
  return graph;
}

/**
 * weights, gradient, first, second, float32 [block], and AdamWScalars, each by its name or together as `scalars`, float64 [8] ->
 * `new weights`, `new first`, `new second`
 */
export function adamwGraph(options: GraphOptions = {}): Graph {
  const graph = new Graph("adamw", options);
  const given = (name: string) => graph.input(name, "float32", BLOCK);
  if (fusesAdamW({ graph })) {
    const scalars = graph.input("scalars", "float64", [SCALARS.length]);
    const inputs = {
      weights: given("weights"),
      gradient: given("gradient"),
      first: given("first"),
      second: given("second"),
    };
    for (const [name, value] of Object.entries(fusedAdamW(inputs, scalars))) graph.output(`new ${name}`, value);
    return graph;
  }
  const numbers = (name: string) => cast(given(name), "float64");
  const scalar = (name: keyof AdamWScalars) => graph.input(name, "float64", []);
  const output = (name: string, value: Value) => graph.output(`new ${name}`, cast(value, "float32"));
  const g = mul(numbers("gradient"), scalar("scale"));
  const m = add(mul(scalar("beta1"), numbers("first")), mul(scalar("gradientShare"), g));
  const v = add(mul(scalar("beta2"), numbers("second")), mul(mul(scalar("squareShare"), g), g));
  const root = add(sqrt(v), scalar("epsilon"));
  output("first", m);
  output("second", v);
  output("weights", sub(mul(numbers("weights"), scalar("decay")), div(mul(scalar("stepSize"), m), root)));
  return graph;
}

const { bytes: NUMBER_BYTES } = DTYPES.float64;
/** Returns float64 numbers as the float32 words of a buffer. */
const words = (numbers: Float64Array) => new Float32Array(numbers.buffer);

export type DeviceAdamW = Awaited<ReturnType<typeof deviceAdamW>>;

/** Numbers on the device, or in this process's memory, from which they pass through the device block by block. */
type Numbers = DeviceBuffer | Float32Array;
/** Weights and both moments. */
export const PASSING = 3;

/**
 * @param passes whether weights and moments may be in this process's memory: room for a block of each is reserved there
 * @param graphs `compute` bfloat16: our own kernels do it where they serve, with the same bits
 */
export async function deviceAdamW(runtime: Runtime, threads: number, passes = false, graphs: GraphOptions = {}) {
  // the graph runs as written above
  const options = { threads, graphOptimizationLevel: "basic" } as const;
  const squaresOf = await runtime.createSession(squaresGraph(graphs), options);
  const adamw = await runtime.createSession(adamwGraph(graphs), options);
  const reserve = (numbers: number) => runtime.reserve((numbers * NUMBER_BYTES) / DTYPES.float32.bytes);
  const [scalars, total] = [reserve(SCALARS.length), reserve(1)];
  const number = (buffer: DeviceBuffer, i: number) => buffer.viewOfBytes(NUMBER_BYTES * i, "float64", []);
  const rooms = Array.from({ length: passes ? PASSING : 0 }, () => runtime.reserve(BLOCK_NUMBERS));
  /** Returns the numbers from `start` on as a tensor on the device. */
  const onDevice = async (numbers: Numbers, room: number, start: number, count: number): Promise<DeviceTensor> => {
    if (!(numbers instanceof Float32Array)) return numbers.view(start, [count]);
    await runtime.write(rooms[room]!, numbers.subarray(start, start + count));
    return rooms[room]!.view(0, [count]);
  };
  const back = async (numbers: Numbers, room: number, start: number, count: number): Promise<void> => {
    if (numbers instanceof Float32Array) await runtime.read(rooms[room]!, numbers.subarray(start, start + count));
  };
  return {
    /** Returns the sum of squares of a part of the numbers in float64, in ONNX Runtime's order; not finite if any number is not. */
    async squares(gradient: DeviceBuffer, { from, to }: Range): Promise<number> {
      const squares = new Float64Array(1);
      await runtime.write(total, words(squares));
      const sum = number(total, 0);
      for (const { values } of gradient.blocks(to, from))
        await squaresOf.run({ gradient: values, total: sum }, { squares: sum });
      await runtime.read(total, words(squares));
      return squares[0];
    },

    /** Steps a part of the numbers in place, as `adamwStep`. The moments belong to this part alone. */
    async step(
      {
        gradient,
        weights,
        first,
        second,
      }: Record<"gradient", DeviceBuffer> & Record<Exclude<keyof HeldModel, "gradient">, Numbers>,
      { from, to }: Range,
      given: AdamWScalars,
    ): Promise<void> {
      await runtime.write(scalars, words(Float64Array.from(SCALARS, (name) => given[name])));
      const together = scalars.viewOfBytes(0, "float64", [SCALARS.length]);
      const feeds = {
        scalars: together,
        ...Object.fromEntries(SCALARS.map((name, i) => [name, number(scalars, i)])),
      };
      for (const { values: g, start, end } of gradient.blocks(to, from)) {
        const [at, count] = [start - from, end - start];
        const w = await onDevice(weights, 0, start, count);
        const m = await onDevice(first, 1, at, count);
        const v = await onDevice(second, 2, at, count);
        const outputs = { "new weights": w, "new first": m, "new second": v };
        await adamw.run({ weights: w, gradient: g, first: m, second: v, ...feeds }, outputs);
        await back(weights, 0, start, count);
        await back(first, 1, at, count);
        await back(second, 2, at, count);
      }
    },

    async release(): Promise<void> {
      for (const buffer of [scalars, total, ...rooms]) buffer.release();
      for (const session of [squaresOf, adamw]) await session.release();
    },
  };
}
