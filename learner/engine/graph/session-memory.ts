/**
 * The memory that a session takes on a GPU for the values of its graph: the plan that ONNX Runtime makes of buffers when a session is
 * made, on its arena. A rehearsal has the same regions but for a few (learner/engine/memory.md).
 */
import { type Graph, perGraph, type Value } from "./graph.ts";
import { byteSizes, type Dims, executionOrder, RESHAPES } from "./memory.ts";
import { dimNames, liveNodes } from "./serialise.ts";

const ALIASES = new Set(RESHAPES); // not Identity, which copies a graph's outputs
/** The kernels of the CUDA provider that write over an input: few, while a CPU's element-wise kernels all do. */
const IN_PLACE = new Set(["EmbeddingGradient", "QuickGelu", "ScatterND", "Sigmoid", "Tanh"]);

/** A place for one value after the other, all of one shape. */
interface Buffer {
  value: Value;
  /** nodes of the execution order: the first that writes it, the last that reads it */
  from: number;
  until: number;
}

/** What the views of one value share. */
interface Memory {
  value: Value;
  shape: string;
  /** reads to come */
  left: number;
  buffer: Buffer | undefined;
}

/**
 * Finds the values that share a buffer: a value overwrites an input, or takes the buffer of a dead value of the same shape. ONNX Runtime
 * compares shapes by the names of their dims.
 */
const bufferPlan = perGraph((graph) => {
  const live = liveNodes(graph);
  const places = new Map(live.map((node, place) => [node, place]));
  const outputs = inCallersMemory(graph);
  const known = new Map<string, { shape: string; memory: Memory }>();
  const order = executionOrder(graph);
  const steps = order.map((node) => {
    const reads = [...new Set(node.inputs)].flatMap((name) => known.get(name) ?? []);
    for (const { memory } of reads) memory.left++;
    const isView = ALIASES.has(node.type);
    const viewed = isView ? known.get(node.inputs[0])?.memory : undefined;
    const makes: Memory[] = [];
    for (const value of node.outputs) {
      if (outputs.has(value.name) || (isView && !viewed)) continue; // in the caller's memory
      const shape = `${value.dtype} ${dimNames(graph, value, live.length, places.get(node)!).join()}`;
      const memory = viewed ?? { value, shape, left: 0, buffer: undefined };
      known.set(value.name, { shape, memory });
      if (!viewed) makes.push(memory);
    }
    return { reads, makes, inPlace: IN_PLACE.has(node.type) };
  });
  const dead = new Map<string, Buffer[]>(); // by shape, the last to die last
  const die = ({ shape, buffer }: Memory) => {
    const same = dead.get(shape);
    if (same) same.push(buffer!);
    else dead.set(shape, [buffer!]);
  };
  const buffers: Buffer[] = [];
  for (const [at, { reads, makes, inPlace }] of steps.entries()) {
    const over = new Set<Memory>();
    for (const memory of makes) {
      const input = inPlace && reads.find(({ shape, memory: { left } }) => left === 1 && shape === memory.shape);
      if (input) over.add(input.memory);
      const found = input ? input.memory.buffer : memory.left > 0 ? dead.get(memory.shape)?.pop() : undefined;
      memory.buffer = found ?? { value: memory.value, from: at, until: at };
      if (!found) buffers.push(memory.buffer);
      if (memory.left > 0) continue;
      memory.buffer.until = order.length - 1; // what nobody reads stays until the run ends, unless another value takes its place
      die(memory);
    }
    for (const { memory } of reads) {
      memory.buffer!.until = at;
      memory.left--;
      if (memory.left === 0 && !over.has(memory)) die(memory);
    }
  }
  const begin = Map.groupBy(buffers, ({ from }) => from);
  const end = Map.groupBy(buffers, ({ until }) => until);
  return steps.map((_, at) => ({ begin: begin.get(at) ?? [], end: end.get(at) ?? [] }));
});

/**
 * Returns the names of the values in the caller's memory: outputs, and their sources where ONNX Runtime removes the copy that gives an output
 * its name: not where the graph recomputes (runtime/session.ts), nor where others read the source.
 */
function inCallersMemory(graph: Graph): Set<string> {
  const outputs = new Set(graph.outputs.map(({ value }) => value.name));
  if (graph.model.recomputes) return outputs;
  const nodes = liveNodes(graph);
  const readers = Map.groupBy(
    nodes.flatMap(({ inputs }) => inputs),
    (name) => name,
  );
  const copies = nodes.filter(({ type, outputs: [made] }) => type === "Identity" && outputs.has(made!.name));
  const sources = copies.flatMap(({ inputs }) => inputs).filter((name) => readers.get(name)!.length === 1);
  return outputs.union(new Set(sources));
}

/** Bytes of the arena of a session on a GPU. @throws GraphError `shape` for a dim whose size is not known */
export function arenaBytes(graph: Graph, dims: Dims): number {
  const arena = new Arena();
  const bytesOf = byteSizes(dims);
  const pieces = new Map<Buffer, Piece>();
  for (const { begin, end } of bufferPlan(graph)) {
    for (const buffer of begin) pieces.set(buffer, arena.allocate(bytesOf(buffer.value)));
    for (const buffer of end) arena.free(pieces.get(buffer)!);
  }
  return arena.bytes;
}

/** Bytes of the largest value in the arena whose size does not depend on the dims, such as a matrix's gradient. */
export const fixedBytes = perGraph((graph) => {
  const buffers = bufferPlan(graph).flatMap(({ begin }) => begin.map(({ value }) => value));
  const fixed = buffers.filter(({ shape }) => shape.every((dim) => typeof dim === "number"));
  return Math.max(0, ...fixed.map(byteSizes({})));
});

/** Every size is rounded up to this, bytes. */
const GRAIN = 256;
/** A piece is not divided where it is less than twice the size and this or less would be left (`max_dead_bytes_per_chunk`), bytes. */
const MOST_DEAD = 2 ** 27;

/** A part of a region, with its neighbours. */
interface Piece {
  size: number;
  free: boolean;
  before: Piece | undefined;
  after: Piece | undefined;
}

/**
 * The memory that ONNX Runtime's arena takes from a device for allocations of given sizes: more than is in use at any time, as a freed piece
 * does not always fit the next request. The rules are `BFCArena`'s (onnxruntime/core/framework/bfc_arena.cc) with the
 * strategy kSameAsRequested: best fit, a new region of just the size that found no free piece, nothing given back.
 */
export class Arena {
  /** free regions by size */
  readonly #free: Piece[] = [];
  /** bytes of all regions */
  bytes = 0;

  allocate(bytes: number): Piece {
    const size = Math.max(1, Math.ceil(bytes / GRAIN)) * GRAIN;
    const at = this.#firstOf(size);
    const piece = this.#free[at];
    if (!piece) {
      this.bytes += size;
      return { size, free: false, before: undefined, after: undefined };
    }
    this.#free.splice(at, 1);
    piece.free = false;
    if (piece.size >= 2 * size || piece.size - size >= MOST_DEAD) {
      const rest: Piece = { size: piece.size - size, free: false, before: piece, after: piece.after };
      if (piece.after) piece.after.before = rest;
      piece.after = rest;
      piece.size = size;
      this.#keep(rest);
    }
    return piece;
  }

  /** @param piece that `allocate` gave */
  free(piece: Piece): void {
    const { before, after } = piece;
    if (after?.free) {
      this.#free.splice(this.#free.indexOf(after), 1);
      piece.size += after.size;
      piece.after = after.after;
      if (after.after) after.after.before = piece;
    }
    if (before?.free) {
      this.#free.splice(this.#free.indexOf(before), 1);
      piece.size += before.size;
      piece.before = before.before;
      if (before.before) before.before.after = piece;
    }
    this.#keep(piece);
  }

  #keep(piece: Piece): void {
    piece.free = true;
    this.#free.splice(this.#firstOf(piece.size), 0, piece);
  }

  /** Index of the smallest free piece of at least this size. */
  #firstOf(size: number): number {
    let [low, high] = [0, this.#free.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#free[middle].size < size) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
