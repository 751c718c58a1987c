/**
 * How much memory a graph takes at its worst moment, found without running it: a value lives from the node that makes it to
 * the last one that reads it, in the order in which ONNX Runtime runs nodes. Fused and eliminated nodes are not foreseen.
 */
import { GraphError } from "./errors.ts";
import { type Dim, Graph, type OpNode, type Shape, type Value } from "./graph.ts";
import { DTYPES, type Tensor } from "./tensor.ts";

export type Dims = Readonly<Record<string, number>>;

/** The named dims that `feeds` give the inputs of a graph; feeds of other names are left out. */
export function boundDims(graph: Graph, feeds: Readonly<Record<string, Tensor>>): Dims {
  const dims: Record<string, number> = {};
  for (const { name, shape } of graph.inputs) {
    const feed = feeds[name];
    for (const [axis, dim] of shape.entries())
      if (feed && typeof dim === "string" && !/[*+]/.test(dim)) dims[dim] = feed.shape[axis]!;
  }
  return dims;
}

export interface PeakMemory {
  bytes: number;
  /** what is live then, largest first; inputs and initializers are not counted */
  live: { value: Value; bytes: number }[];
}

/** Results that have the memory of their first input. */
const ALIASES = new Set(["Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"]);
/** Kernels that write over an input of the same size that nobody reads any more. */
const IN_PLACE = new Set(
  "Add Sub Mul Div Neg Exp Log Sqrt Pow Reciprocal Sigmoid Tanh Abs Clip Cast QuickGelu ScatterND ScatterElements".split(
    " ",
  ),
);

interface Buffer {
  value: Value;
  bytes: number;
  /** reads that are still to come */
  uses: number;
  output: boolean;
  born: number;
  died: number;
}

/**
 * @param dims sizes of the graph's named dims
 * @param outputsHeld outputs are written into memory of the caller's and do not count
 * @throws GraphError `shape` for a dim whose size is not known
 */
export function peakMemory(graph: Graph, dims: Dims, { outputsHeld = false } = {}): PeakMemory {
  const order = executionOrder(graph);
  const sizes = { ...dims, ...tripCounts(order) };
  const buffers = new Map<string, Buffer>();
  const all: Buffer[] = [];
  for (const node of order) {
    const base = ALIASES.has(node.type) ? node.inputs[0] : undefined;
    for (const value of node.outputs) {
      const aliased = base === undefined ? undefined : buffers.get(base);
      const bytes = base === undefined ? byteSize(value, sizes) : 0; // of an input's alias: nothing
      const buffer = aliased ?? { value, bytes, uses: 0, output: false, born: -1, died: order.length };
      if (!aliased) all.push(buffer);
      buffers.set(value.name, buffer);
    }
    for (const buffer of inputBuffers(node, buffers)) buffer.uses++;
  }
  for (const { value } of graph.outputs) {
    const buffer = buffers.get(value.name);
    if (buffer === undefined) continue;
    buffer.output = true;
    if (outputsHeld) buffer.bytes = 0;
  }

  let live = 0;
  let peak = { bytes: 0, at: -1 };
  for (const [at, node] of order.entries()) {
    const inputs = inputBuffers(node, buffers);
    const done = inputs.filter((buffer) => --buffer.uses === 0 && !buffer.output);
    const reusable = IN_PLACE.has(node.type) ? [...done] : [];
    for (const value of node.outputs) {
      const buffer = buffers.get(value.name)!;
      if (buffer.born >= 0) continue; // an alias
      buffer.born = at;
      const over = buffer.output ? -1 : reusable.findIndex(({ bytes }) => bytes === buffer.bytes);
      if (over >= 0) {
        const [taken] = reusable.splice(over, 1);
        done.splice(done.indexOf(taken), 1);
        taken.died = at - 1;
      } else live += buffer.bytes;
      if (buffer.uses === 0 && !buffer.output) done.push(buffer); // nobody reads it
    }
    const inside = Math.max(0, ...bodies(node).map((body) => peakMemory(body, sizes).bytes));
    if (live + inside > peak.bytes) peak = { bytes: live + inside, at };
    for (const buffer of done) {
      live -= buffer.bytes;
      buffer.died = at;
    }
  }
  const atPeak = all.filter(({ bytes, born, died }) => bytes > 0 && born >= 0 && born <= peak.at && died >= peak.at);
  atPeak.sort((a, b) => b.bytes - a.bytes);
  return { bytes: peak.bytes, live: atPeak.map(({ value, bytes }) => ({ value, bytes })) };
}

/**
 * ONNX Runtime's default order: depth first from the nodes that nobody reads, of several candidates the one that was added
 * to the graph last.
 */
export function executionOrder(graph: Graph): OpNode[] {
  const { nodes } = graph;
  const producer = new Map(
    nodes.flatMap((node, index) => node.outputs.map(({ name }): [string, number] => [name, index])),
  );
  const sources = nodes.map((node) => {
    const found = namesRead(node).flatMap((name) => producer.get(name) ?? []);
    return [...new Set(found)].sort((a, b) => a - b);
  });
  const read = new Set(sources.flat());
  const stack: { index: number; leave: boolean }[] = [...nodes.keys()]
    .filter((index) => !read.has(index))
    .map((index) => ({ index, leave: false }));
  const visited = new Set<number>();
  const order: OpNode[] = [];
  for (let entry = stack.pop(); entry; entry = stack.pop()) {
    const { index, leave } = entry;
    if (leave) order.push(nodes[index]!);
    if (leave || visited.has(index)) continue;
    visited.add(index);
    stack.push({ index, leave: true });
    for (const source of sources[index]!) if (!visited.has(source)) stack.push({ index: source, leave: false });
  }
  return order;
}

const bodies = (node: OpNode): Graph[] => Object.values(node.attributes).filter((value) => value instanceof Graph);

/** Also what the bodies of loops and branches capture. */
function namesRead(node: OpNode): string[] {
  return [...node.inputs, ...bodies(node).flatMap((body) => body.nodes.flatMap(namesRead))];
}

function inputBuffers(node: OpNode, buffers: ReadonlyMap<string, Buffer>): Buffer[] {
  return [...new Set(namesRead(node).flatMap((name) => buffers.get(name) ?? []))];
}

/** Of loops with a constant number of iterations: the first dim of what they stack. */
function tripCounts(nodes: readonly OpNode[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { type, inputs, outputs } of nodes) {
    const graph = outputs[0]?.graph;
    if (type !== "Loop" || graph === undefined) continue;
    const count = graph.root.initializers.find(({ value }) => value.name === inputs[0]);
    for (const { shape } of outputs) {
      const dim = shape[0];
      if (count && "data" in count && typeof dim === "string" && dim.startsWith("iterations_"))
        counts[dim] = Number(count.data[0]);
    }
  }
  return counts;
}

function byteSize({ name, dtype, shape }: Value, dims: Dims): number {
  return DTYPES[dtype].bytes * sizeOf(shape, dims, name);
}

function sizeOf(shape: Shape, dims: Dims, name: string): number {
  const factor = (part: string): number => {
    const size = /^\d+$/.test(part) ? Number(part) : dims[part];
    if (size === undefined) throw new GraphError("shape", `the size of '${part}' in the shape of ${name} is not known`);
    return size;
  };
  const product = (dim: string) => dim.split("*").reduce((total, part) => total * factor(part), 1);
  const size = (dim: Dim): number =>
    typeof dim === "number" ? dim : dim.split("+").reduce((total, part) => total + product(part), 0);
  return shape.reduce<number>((product, dim) => product * size(dim), 1);
}
