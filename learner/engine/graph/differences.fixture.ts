import assert from "node:assert/strict";
import { createSession } from "../runtime/runtime.ts";
import { gradients } from "./gradients.ts";
import { Graph, type Value } from "./graph.ts";
import { add, mul, sum } from "./primitives.ts";
import { elementCount, type Tensor, tensor } from "./tensor.ts";

// For tests: gradient rules against central differences of the forward pass, in float32, of loss = sum(f(x) * weights).

const STEP = 1e-2;
const TOLERANCE = 3e-3;

export interface GradientCase {
  name: string;
  /** shapes of the differentiable inputs */
  shapes: number[][];
  /** numbers are drawn from here; away from kinks and poles (default -1 to 1) */
  range?: [number, number];
  f: (inputs: Value[], g: Graph) => Value | Value[];
}

/** Uniform numbers between the borders. */
export function draw(count: number, [low, high]: [number, number], seed: number): Float32Array {
  let state = seed * 7919 + 13;
  const next = () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
  return Float32Array.from({ length: count }, () => low + (high - low) * next());
}

/** The case's loss and its gradients as a graph. */
export function gradientGraph({ shapes, f }: GradientCase): Graph {
  const g = new Graph("case");
  const inputs = shapes.map((shape, i) => g.input(`x${i}`, "float32", shape, { requiresGrad: true }));
  const loss = [f(inputs, g)]
    .flat()
    .map((y, i) => {
      const shape = y.shape as number[];
      return sum(mul(y, g.initializer(`weights${i}`, tensor(draw(elementCount(shape), [-1, 1], 77 + i), shape))));
    })
    .reduce((a, b) => add(a, b));
  g.output("loss", loss);
  for (const [i, d] of gradients(loss, inputs).entries()) {
    assert.deepEqual(d.shape, shapes[i], `shape of gradient ${i}`);
    g.output(`d${i}`, d);
  }
  return g;
}

/** Names of the gradient rules that a graph's values were recorded with. */
export function rulesOf(graph: Graph): string[] {
  return graph.model.tape.map(({ name }) => name);
}

export async function checkGradient(rule: GradientCase): Promise<void> {
  const { shapes, range = [-1, 1] } = rule;
  const session = await createSession(gradientGraph(rule), { threads: 1 });
  const feeds: Record<string, Tensor> = Object.fromEntries(
    shapes.map((shape, i) => [`x${i}`, tensor(draw(elementCount(shape), range, i + 1), shape)]),
  );
  const analytic = await session.run(feeds);
  const lossAt = async (data: Float32Array, i: number, value: number) => {
    const kept = data[i];
    data[i] = value;
    const result = (await session.run(feeds, ["loss"])).loss.data[0] as number;
    data[i] = kept;
    return result;
  };
  for (const n of shapes.keys()) {
    const data = feeds[`x${n}`].data as Float32Array;
    const numeric: number[] = [];
    for (let i = 0; i < data.length; i++) {
      const [low, high] = [Math.fround(data[i] - STEP), Math.fround(data[i] + STEP)];
      numeric.push(((await lossAt(data, i, high)) - (await lossAt(data, i, low))) / (high - low));
    }
    const scale = Math.max(1, ...numeric.map(Math.abs));
    for (const [i, want] of numeric.entries()) {
      const got = analytic[`d${n}`].data[i] as number;
      assert.ok(Math.abs(got - want) <= TOLERANCE * scale, `d x${n}[${i}]: ${got}, by differences ${want}`);
    }
  }
  await session.release();
}
