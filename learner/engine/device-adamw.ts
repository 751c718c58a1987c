/**
 * adamw.ts for weights, gradients and moments on a device: the same operations in the same order, in float64 as JavaScript's are, so
 * that every step gives the same bits. A block of the buffers goes at a time, so that temporary values are small. A step's scalars go
 * there in one piece; the sum of the gradient's squares comes back.
 */

import type { AdamWScalars } from "./adamw.ts";
import { Graph, type Value } from "./graph/graph.ts";
import { add, cast, div, mul, sqrt, square, sub, sum } from "./graph/primitives.ts";
import { DTYPES } from "./graph/tensor.ts";
import type { DeviceBuffer } from "./runtime/buffer.ts";
import type { Runtime } from "./runtime/runtime.ts";
import type { Session } from "./runtime/session.ts";

const BLOCK = ["block"];
const SCALARS: readonly (keyof AdamWScalars)[] = [
  ...(["scale", "beta1", "gradientShare", "beta2", "squareShare", "stepSize", "epsilon", "decay"] as const),
];

/** gradient, float32 [block], and total, float64 [] -> squares, the total with the sum of the gradient's, float64 [] */
export function squaresGraph(): Graph {
  const graph = new Graph("squares");
  const squares = sum(square(cast(graph.input("gradient", "float32", BLOCK), "float64")));
  graph.output("squares", add(graph.input("total", "float64", []), squares));
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

const { bytes: NUMBER_BYTES } = DTYPES.float64;
/** float64 numbers as the float32 words of a buffer. */
const words = (numbers: Float64Array) => new Float32Array(numbers.buffer);

export class DeviceAdamW {
  readonly #runtime: Runtime;
  readonly #squares: Session;
  readonly #adamw: Session;
  readonly #scalars: DeviceBuffer;
  readonly #total: DeviceBuffer;

  private constructor(runtime: Runtime, squares: Session, adamw: Session) {
    this.#runtime = runtime;
    this.#squares = squares;
    this.#adamw = adamw;
    const reserve = (numbers: number) => runtime.reserve((numbers * NUMBER_BYTES) / DTYPES.float32.bytes);
    this.#scalars = reserve(SCALARS.length);
    this.#total = reserve(1);
  }

  static async create(runtime: Runtime, threads: number): Promise<DeviceAdamW> {
    // what is written above is what runs
    const options = { threads, graphOptimizationLevel: "basic" } as const;
    const squares = await runtime.createSession(squaresGraph(), options);
    return new DeviceAdamW(runtime, squares, await runtime.createSession(adamwGraph(), options));
  }

  /** The sum of squares of the first numbers in float64; not finite when any is not. The sum's order is ONNX Runtime's. */
  async squares(gradient: DeviceBuffer, length: number): Promise<number> {
    const total = this.#total.viewOfBytes(0, "float64", []);
    const squares = new Float64Array(1);
    await this.#runtime.write(this.#total, words(squares));
    for (const { values } of gradient.blocks(length))
      await this.#squares.run({ gradient: values, total }, { squares: total });
    await this.#runtime.read(this.#total, words(squares));
    return squares[0];
  }

  /** One step in place: `adamwStep`. Only the gradient's buffer may be longer than the weights'. */
  async step(
    weights: DeviceBuffer,
    gradient: DeviceBuffer,
    moments: Record<"first" | "second", DeviceBuffer>,
    given: AdamWScalars,
  ): Promise<void> {
    const numbers = Float64Array.from(SCALARS, (name) => given[name]);
    await this.#runtime.write(this.#scalars, words(numbers));
    const view = (i: number) => this.#scalars.viewOfBytes(NUMBER_BYTES * i, "float64", []);
    const scalars = Object.fromEntries(SCALARS.map((name, i) => [name, view(i)]));
    const buffers = [weights, gradient, moments.first, moments.second];
    const blocks = buffers.map((buffer) => [...buffer.blocks(weights.length)]);
    for (const i of blocks[0].keys()) {
      const [w, g, m, v] = blocks.map((of) => of[i].values);
      await this.#adamw.run(
        { weights: w, gradient: g, first: m, second: v, ...scalars },
        { "new weights": w, "new first": m, "new second": v },
      );
    }
  }

  async release(): Promise<void> {
    this.#scalars.release();
    this.#total.release();
    await this.#squares.release();
    await this.#adamw.release();
  }
}
