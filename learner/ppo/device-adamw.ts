/**
 * adamw.ts for weights, gradients and moments that are on a device: the same operations in the same order, in float64 as
 * JavaScript's are, so that every step gives the same bits. A block of the buffers at a time, so that what is between two
 * operations is small beside them. One number a block comes to this process: the sum of the gradient's squares.
 */
import type { DeviceBuffer } from "../device/buffer.ts";
import type { DeviceRuntime } from "../device/runtime.ts";
import { Graph, type Value } from "../graph/graph.ts";
import { add, cast, div, mul, sqrt, square, sub, sum } from "../graph/primitives.ts";
import type { GraphSession } from "../graph/session.ts";
import { tensor } from "../graph/tensor.ts";
import { type AdamWScalars, adamwScalars } from "./adamw.ts";
import type { Adam } from "./engine.ts";

const BLOCK = ["block"];

export interface DeviceMoments {
  first: DeviceBuffer;
  second: DeviceBuffer;
  /** optimiser steps taken */
  steps: number;
}

/** gradient, float32 [block] -> squares, their sum, float64 */
export function squaresGraph(): Graph {
  const graph = new Graph("squares");
  graph.output("squares", sum(square(cast(graph.input("gradient", "float32", BLOCK), "float64"))));
  return graph;
}

/** weights, gradient, first, second, float32 [block], and AdamWScalars -> `new weights`, `new first`, `new second` */
export function adamwGraph(): Graph {
  const graph = new Graph("adamw");
  const numbers = (name: string) => cast(graph.input(name, "float32", BLOCK), "float64");
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

export class DeviceAdamW {
  readonly #squares: GraphSession;
  readonly #adamw: GraphSession;

  private constructor(squares: GraphSession, adamw: GraphSession) {
    this.#squares = squares;
    this.#adamw = adamw;
  }

  static async create(runtime: DeviceRuntime, threads: number): Promise<DeviceAdamW> {
    // what is written above is what runs
    const options = { threads, graphOptimizationLevel: "basic" } as const;
    const squares = await runtime.createSession(squaresGraph(), options);
    return new DeviceAdamW(squares, await runtime.createSession(adamwGraph(), options));
  }

  /** Euclidean norm of the first numbers, summed in float64; not finite when any is not. The sum's order is ONNX Runtime's. */
  async norm(gradient: DeviceBuffer, length: number): Promise<number> {
    let total = 0;
    for (const { values } of gradient.blocks(length)) {
      const { squares } = await this.#squares.run({ gradient: values });
      total += squares!.data[0] as number;
    }
    return Math.sqrt(total);
  }

  /** One step in place: `adamwStep`. Only the gradient's buffer may be longer than the weights'. */
  async step(
    weights: DeviceBuffer,
    gradient: DeviceBuffer,
    moments: DeviceMoments,
    o: Adam & { learningRate: number; scale: number },
  ): Promise<void> {
    const scalars = Object.fromEntries(
      Object.entries(adamwScalars(++moments.steps, o)).map(([name, value]) => [
        name,
        tensor(Float64Array.of(value), []),
      ]),
    );
    const blocks = [weights, gradient, moments.first, moments.second].map((buffer) => [
      ...buffer.blocks(weights.length),
    ]);
    for (const i of blocks[0]!.keys()) {
      const [w, g, m, v] = blocks.map((of) => of[i]!.values);
      await this.#adamw.run(
        { weights: w!, gradient: g!, first: m!, second: v!, ...scalars },
        { "new weights": w!, "new first": m!, "new second": v! },
      );
    }
  }

  async release(): Promise<void> {
    await this.#squares.release();
    await this.#adamw.release();
  }
}
