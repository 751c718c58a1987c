/**
 * The memory that ONNX Runtime's arena takes from a device for allocations of given sizes: more than is in use at any time, as a freed piece
 * does not always fit what comes next. The rules are those of `BFCArena` (onnxruntime/core/framework/bfc_arena.cc) with the
 * strategy kSameAsRequested: best fit, a new region of just the size that found no free piece, nothing given back.
 */

/** Every size is rounded up to this, bytes. */
const GRAIN = 256;
/** A piece is not divided where it is less than twice the size and this or less would be left (`max_dead_bytes_per_chunk`), bytes. */
const MOST_DEAD = 2 ** 27;

/** A part of a region, with its neighbours there. */
export interface Piece {
  size: number;
  free: boolean;
  before: Piece | undefined;
  after: Piece | undefined;
}

export class Arena {
  /** by size */
  readonly #free: Piece[] = [];
  /** of all regions */
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
