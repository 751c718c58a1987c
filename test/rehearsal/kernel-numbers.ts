/** Numbers for kernels, and how far their results are from a CPU's. */
import type { Graph, KernelSource } from "../../learner/engine/graph/graph.ts";
import { type Tensor, tensor } from "../../learner/engine/graph/tensor.ts";
import { uniforms } from "../../learner/engine/model/random.ts";
import type { Runtime } from "../../learner/engine/runtime/runtime.ts";

/** Of the largest value: a bfloat16 has 8 bits, and a probability is rounded before it is multiplied. */
const BFLOAT16 = 5e-3;
const FLOAT32 = 1e-5;

/** Numbers, rounded to bfloat16, that are the same in every run. */
export function numbers(count: number, seed: number, scale = 1): Float32Array {
  const next = uniforms(seed, "kernel");
  const data = Float32Array.from({ length: count }, () => scale * (next() + next() + next() + next() - 2));
  const bits = new Uint32Array(data.buffer);
  for (let i = 0; i < count; i++) bits[i] = ((bits[i]! + 0x7fff + ((bits[i]! >>> 16) & 1)) & 0xffff0000) >>> 0;
  return data;
}

/** The same as a tensor. */
export const tensorOfNumbers = (shape: readonly number[], seed: number, scale = 1): Tensor =>
  tensor(
    numbers(
      shape.reduce((a, b) => a * b, 1),
      seed,
      scale,
    ),
    shape,
  );

/** The largest difference, as a part of the largest value. */
function difference(found: Float32Array, wanted: Float32Array): number {
  let [worst, largest] = [0, 0];
  for (let i = 0; i < wanted.length; i++) {
    const off = Math.abs(found[i]! - wanted[i]!);
    worst = Number.isNaN(off) ? Number.POSITIVE_INFINITY : Math.max(worst, off);
    largest = Math.max(largest, Math.abs(wanted[i]!));
  }
  return largest === 0 ? worst : worst / largest;
}

/** A graph that is composed of primitives, or uses kernels. */
export interface Compared {
  graphOf(kernels: KernelSource | undefined): { graph: Graph; feeds: Record<string, Tensor> };
  /** outputs that are sums in float32, and as exact */
  exact?: string[] | undefined;
}
type Results = Record<string, Float32Array>;

/** Runs the primitives on the CPU, and makes the session with the kernels of `gpu`. */
export async function prepared(cpu: Runtime, gpu: Runtime, { graphOf, exact = [] }: Compared) {
  const sessionOf = async (runtime: Runtime, kernels: KernelSource | undefined) => {
    const { graph, feeds } = graphOf(kernels);
    const session = await runtime.createSession(graph, { threads: 1 });
    const zeros = Object.fromEntries(
      Object.entries(feeds).map(([name, it]) => [
        name,
        it.dtype === "float32" ? tensor(new Float32Array(it.data.length), it.shape) : it,
      ]),
    );
    const run = async (given = feeds): Promise<Results> =>
      Object.fromEntries(
        Object.entries(await session.run(given)).map(([name, { data }]) => [name, data as Float32Array]),
      );
    /** Runs with other numbers, so that memory that the next run does not write has wrong ones. */
    const disturb = () => run(zeros).then(() => {});
    return { run: () => run(), disturb, release: () => session.release() };
  };
  const primitives = await sessionOf(cpu, undefined);
  const wanted = await primitives.run();
  await primitives.release();
  return {
    ...(await sessionOf(gpu, gpu.kernels!)),
    /** Returns a line for each result that is too far from the CPU's. */
    faults: (found: Results): string[] =>
      Object.entries(wanted).flatMap(([name, value]) => {
        const off = difference(found[name]!, value);
        if (process.env.SHOW) process.stdout.write(`${name} ${off.toExponential(1)}\n`);
        return off <= (exact.includes(name) ? FLOAT32 : BFLOAT16) ? [] : [`${name} is off by ${off.toExponential(1)}`];
      }),
  };
}
