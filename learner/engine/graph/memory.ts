/**
 * Computes a graph's peak memory without running it: a value lives from the node that makes it to
 * the last one that reads it, in the order in which ONNX Runtime runs nodes. Fused and eliminated nodes count as if they ran.
 */
import { GraphError } from "./errors.ts";
import { type Dim, type Graph, type OpNode, perGraph, type Value } from "./graph.ts";
import { liveNodes } from "./serialise.ts";
import { DTYPES, type Tensor } from "./tensor.ts";

export type Dims = Readonly<Record<string, number>>;

/** The named dims that `feeds` give the inputs of a graph; feeds of other names are left out. */
export function boundDims(graph: Graph, feeds: Readonly<Record<string, Tensor>>): Dims {
  const dims: Record<string, number> = {};
  for (const { name, shape } of graph.inputs) {
    const feed = feeds[name];
    for (const [axis, dim] of shape.entries())
      if (feed && typeof dim === "string" && !/[*+]/.test(dim)) dims[dim] = feed.shape[axis];
  }
  return dims;
}

export interface PeakMemory {
  bytes: number;
  /** values that are live then, largest first; inputs and initializers are not counted */
  live: { value: Value; bytes: number }[];
}

/** Operators whose result uses the memory of their first input. */
export const RESHAPES = ["Reshape", "Squeeze", "Unsqueeze", "Flatten"];
const ALIASES = new Set([...RESHAPES, "Identity"]);
/** Element-wise kernels, which write over an input that nobody reads any more. */
const OVERWRITING = "Add Sub Mul Div Neg Exp Log Sqrt Pow Reciprocal Sigmoid Tanh Abs Clip QuickGelu".split(" ");
/** Kernels that write over an input of the same size that nobody reads any more. */
const IN_PLACE = new Set([...OVERWRITING, "Cast", "ScatterND", "ScatterElements", "EmbeddingGradient"]);

/** Memory that values share; inputs and initializers have none. */
interface Buffer {
  value: Value;
  reads: number;
  output: boolean;
}

/** A node as its buffers, by number. */
interface Step {
  reads: number[];
  makes: number[];
  inPlace: boolean;
}

/** The part of the memory estimate that does not depend on the sizes of dims. */
const lifetimesOf = perGraph((graph) => {
  const buffers: Buffer[] = [];
  const numbers = new Map<string, number>();
  const steps = executionOrder(graph).map((node): Step => {
    const reads = [...new Set(node.inputs.flatMap((name) => numbers.get(name) ?? []))];
    for (const number of reads) buffers[number].reads++;
    const makes: number[] = [];
    for (const value of node.outputs) {
      if (ALIASES.has(node.type)) {
        const base = numbers.get(node.inputs[0]);
        if (base !== undefined) numbers.set(value.name, base);
        continue;
      }
      numbers.set(value.name, buffers.push({ value, reads: 0, output: false }) - 1);
      makes.push(buffers.length - 1);
    }
    return { reads, makes, inPlace: IN_PLACE.has(node.type) };
  });
  for (const { value } of graph.outputs) {
    const number = numbers.get(value.name);
    if (number !== undefined) buffers[number].output = true;
  }
  return { buffers, steps };
});

/**
 * @param dims sizes of the graph's named dims
 * @param outputsHeld the caller holds the outputs' memory, which does not count
 * @throws GraphError `shape` for a dim whose size is not known
 */
export function peakMemory(graph: Graph, dims: Dims, { outputsHeld = false } = {}): PeakMemory {
  const { buffers, steps } = lifetimesOf(graph);
  const bytesOf = byteSizes(dims);
  const bytes = buffers.map(({ value, output }) => (output && outputsHeld ? 0 : bytesOf(value)));
  const left = buffers.map(({ reads }) => reads);
  const born = new Array<number>(buffers.length).fill(0);
  const died = new Array<number>(buffers.length).fill(steps.length);
  let live = 0;
  let peak = { bytes: 0, at: -1 };
  for (const [at, { reads, makes, inPlace }] of steps.entries()) {
    const done = reads.filter((number) => --left[number] === 0 && !buffers[number].output);
    const reusable = inPlace ? [...done] : [];
    for (const number of makes) {
      const { output, reads: readers } = buffers[number];
      born[number] = at;
      const over = output ? -1 : reusable.findIndex((other) => bytes[other] === bytes[number]);
      if (over >= 0) {
        const [taken] = reusable.splice(over, 1) as [number];
        done.splice(done.indexOf(taken), 1);
        died[taken] = at - 1;
      } else live += bytes[number];
      if (readers === 0 && !output) done.push(number);
    }
    if (live > peak.bytes) peak = { bytes: live, at };
    for (const number of done) {
      live -= bytes[number];
      died[number] = at;
    }
  }
  const atPeak = buffers.flatMap(({ value }, i) =>
    bytes[i] > 0 && born[i] <= peak.at && died[i] >= peak.at ? [{ value, bytes: bytes[i] }] : [],
  );
  return { bytes: peak.bytes, live: atPeak.sort((a, b) => b.bytes - a.bytes) };
}

/**
 * ONNX Runtime's default order: depth first from the nodes that nobody reads, of several candidates the one that was added
 * to the graph last. Nodes that no output needs are not in the file that it reads.
 */
export const executionOrder = perGraph((graph: Graph): readonly OpNode[] => {
  const nodes = liveNodes(graph);
  const producer = new Map<string, number>();
  for (const [index, { outputs }] of nodes.entries()) for (const { name } of outputs) producer.set(name, index);
  const sources = nodes.map(({ inputs }) => {
    const found = new Set(inputs.flatMap((name) => producer.get(name) ?? []));
    return [...found].sort((a, b) => a - b);
  });
  const read = new Set(sources.flat());
  const stack = [...nodes.keys()].filter((index) => !read.has(index)); // ~index: all that it reads is in the order
  const visited = new Uint8Array(nodes.length);
  const order: OpNode[] = [];
  for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
    if (index < 0) order.push(nodes[~index]);
    if (index < 0 || visited[index]) continue;
    visited[index] = 1;
    stack.push(~index);
    for (const source of sources[index]) if (!visited[source]) stack.push(source);
  }
  return order;
});

/** Returns a function of a value's bytes with these sizes of the named dims. Few of a graph's dims differ, so each is computed once. */
export function byteSizes(dims: Dims): (value: Value) => number {
  const known = new Map<Dim, number>();
  return ({ name, dtype, shape }) => {
    let bytes = DTYPES[dtype].bytes;
    for (const dim of shape) {
      const size = known.get(dim) ?? sizes({ name, shape: [dim] }, dims)[0];
      known.set(dim, size);
      bytes *= size;
    }
    return bytes;
  };
}

/** Returns a value's shape with these sizes of the named dims. @throws GraphError `shape` for a dim whose size is not known */
export function sizes({ name, shape }: Pick<Value, "name" | "shape">, dims: Dims): number[] {
  const factor = (part: string): number => {
    const size = /^\d+$/.test(part) ? Number(part) : dims[part];
    if (size === undefined) throw new GraphError("shape", `the size of '${part}' in the shape of ${name} is not known`);
    return size;
  };
  const product = (dim: string) => dim.split("*").reduce((total, part) => total * factor(part), 1);
  return shape.map((dim) =>
    typeof dim === "number" ? dim : dim.split("+").reduce((total, part) => total + product(part), 0),
  );
}
