/**
 * The memory that a session takes on a GPU for the values of its graph: the plan that ONNX Runtime makes of buffers when a session is
 * made, on its arena. A rehearsal has the same regions but for a few (learner/engine/memory.md).
 */
import type { Graph, Value } from "./graph.ts";
import { byteSize, type Dims, executionOrder, OVERWRITING, perGraph, RESHAPES } from "./memory.ts";
import { dimNames, liveNodes } from "./serialise.ts";

const ALIASES = new Set(RESHAPES); // not Identity, which copies a graph's outputs
const IN_PLACE = new Set(OVERWRITING);

/** Memory of one value after the other, all of one shape. */
interface Buffer {
  value: Value;
  /** nodes of the execution order: the first that writes it, the last that reads it */
  from: number;
  until: number;
}

/**
 * Finds the values that share memory: a value overwrites an input, or takes the buffer of a dead value of the same shape. ONNX Runtime
 * compares shapes by the names of their dims.
 */
const bufferPlan = perGraph((graph) => {
  const order = executionOrder(graph);
  const places = new Map(liveNodes(graph).map((node, place) => [node, place]));
  const outputs = new Set(graph.outputs.map(({ value }) => value.name));
  const bases = new Map<string, string>();
  const left = new Map<string, number>();
  for (const { type, inputs, outputs: made } of order) {
    for (const name of new Set(inputs)) {
      const base = bases.get(name);
      if (base !== undefined) left.set(base, (left.get(base) ?? 0) + 1);
    }
    const alias = ALIASES.has(type) ? bases.get(inputs[0]) : undefined;
    for (const { name } of made) if (!outputs.has(name)) bases.set(name, alias ?? name);
  }
  const buffers: Buffer[] = [];
  const shapes = new Map<string, string>();
  const holders = new Map<string, { buffer: Buffer; shape: string }>();
  const dead: { buffer: Buffer; shape: string }[] = []; // the last to die first
  for (const [at, node] of order.entries()) {
    const read = [...new Set(node.inputs)].filter((name) => bases.has(name));
    const over = new Set<string>();
    for (const value of node.outputs) {
      if (outputs.has(value.name)) continue; // in the caller's memory
      const shape = `${value.dtype} ${dimNames(graph, value, places.size, places.get(node)!).join()}`;
      shapes.set(value.name, shape);
      if (bases.get(value.name) !== value.name) continue;
      const input = IN_PLACE.has(node.type)
        ? read.find((name) => left.get(bases.get(name)!) === 1 && shapes.get(name) === shape)
        : undefined;
      if (input !== undefined) over.add(bases.get(input)!);
      const free = dead.findIndex((other) => other.shape === shape);
      const found = input !== undefined ? holders.get(bases.get(input)!) : dead.splice(free, free < 0 ? 0 : 1)[0];
      const buffer = found?.buffer ?? { value, from: at, until: at };
      if (!found) buffers.push(buffer);
      holders.set(value.name, { buffer, shape });
      if (!left.has(value.name)) dead.unshift({ buffer, shape });
    }
    for (const name of read) {
      const base = bases.get(name)!;
      const holder = holders.get(base)!;
      holder.buffer.until = at;
      left.set(base, left.get(base)! - 1);
      if (left.get(base) === 0 && !over.has(base)) dead.unshift(holder);
    }
  }
  return { buffers, nodes: order.length };
});

/** Bytes of the arena of a session on a GPU. @throws GraphError `shape` for a dim whose size is not known */
export function arenaBytes(graph: Graph, dims: Dims): number {
  const { buffers, nodes } = bufferPlan(graph);
  const arena = new Arena();
  const begin = Map.groupBy(buffers, ({ from }) => from);
  const end = Map.groupBy(buffers, ({ until }) => until);
  const pieces = new Map<Buffer, Piece>();
  for (let at = 0; at < nodes; at++) {
    for (const buffer of begin.get(at) ?? []) pieces.set(buffer, arena.allocate(byteSize(buffer.value, dims)));
    for (const buffer of end.get(at) ?? []) arena.free(pieces.get(buffer)!);
  }
  return arena.bytes;
}

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
