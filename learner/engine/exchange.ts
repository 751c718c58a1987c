/**
 * Exchanges data between workers with separate devices in an optimiser step, through this process's memory. Gradients are summed in the
 * workers' order, whichever finishes first, so the same number of workers gives the same bits. Each worker then steps a part of the
 * numbers, whose moments it alone holds (ZeRO, stage 1), and the others copy the new weights.
 */

import type { Moments } from "./adamw.ts";
import type { Role } from "./adaptation.ts";
import type { Remote } from "./calls.ts";
import type { EngineWorker } from "./engine-worker.ts";
import type { Range } from "./model-memory.ts";
import { BLOCK_NUMBERS } from "./runtime/buffer.ts";

type Calls = Pick<Remote<EngineWorker>, "addGradient" | "prepareStep" | "shareWeights" | "takeWeights">;

/** A worker, and the part of a model's numbers that it steps. */
export type Stepping<T> = { readonly worker: T; readonly range: Range };

export class Exchange {
  readonly #pieceNumbers: number;
  /** The summed gradient, as long as the largest model that has taken a step. */
  #total: Float32Array = new Float32Array(0);

  /** @param pieceNumbers numbers of a gradient per piece: while one worker adds a piece the next one adds the piece before it */
  constructor(pieceNumbers = BLOCK_NUMBERS) {
    this.#pieceNumbers = pieceNumbers;
  }

  /**
   * Computes the sum of the gradients of `ran`, in shared memory until the next call. Each of `all` then has the sum of its part and
   * everything else for its step; if one fails, no weight has changed.
   */
  async gradient(
    role: Role,
    size: number,
    ran: readonly Calls[],
    all: readonly Stepping<Calls>[],
    moments: Moments | undefined,
  ): Promise<Float32Array> {
    if (this.#total.length < size) this.#total = new Float32Array(new SharedArrayBuffer(4 * size));
    const total = this.#total.subarray(0, size);
    let added = [...pieces(size, this.#pieceNumbers)].map((piece) => ({ piece, done: Promise.resolve() }));
    for (const [i, worker] of ran.entries())
      added = added.map(({ piece, done }) => ({
        piece,
        done: done.then(() => worker.addGradient(role, piece, total, i === 0)),
      }));
    // a call that came after the error would add to the sum of the next step
    const ended = await Promise.allSettled(added.map(({ done }) => done));
    for (const each of ended) if (each.status === "rejected") throw each.reason;
    await Promise.all(all.map(({ worker, range }) => worker.prepareStep(role, range, total, moments)));
    return total;
  }

  /** Gives every worker all new weights after a step. */
  async weights(role: Role, all: readonly Stepping<Calls>[]): Promise<void> {
    await Promise.all(all.map(({ worker, range }) => worker.shareWeights(role, range)));
    await Promise.all(all.map(({ worker, range }) => worker.takeWeights(role, range)));
  }
}

function* pieces(size: number, numbers: number): Generator<Range> {
  for (let from = 0; from < size; from += numbers) yield { from, to: Math.min(size, from + numbers) };
}
