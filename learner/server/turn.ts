/**
 * One turn of the event loop. All results of a turn are written in one commit, together with leases for the slots that they freed: a commit
 * waits for the disk, and a thousand actors send many messages at once.
 */
import type { Leases } from "../store/leases.ts";
import type { Store } from "../store/store.ts";
import type { LeasedExecution } from "../store/types.ts";

interface TurnOptions {
  store: Pick<Store, "together">;
  deal: () => void;
  onFailure: (error: unknown) => void;
}

type Piece = { work: () => void; onFailure: (error: unknown) => void };

export class Turn {
  readonly #options: TurnOptions;
  #pieces: Piece[] = [];
  #due: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(options: TurnOptions) {
    this.#options = options;
  }

  /** Runs `work` at the end of this turn. @param onFailure called if `work` throws or the commit fails: nothing is on disk */
  write(work: () => void, onFailure: (error: unknown) => void): void {
    this.#pieces.push({ work, onFailure });
    this.deal();
  }

  deal(): void {
    if (!this.#closed) this.#due ??= setImmediate(() => this.#end());
  }

  /** Writes the collected results and deals no more leases. */
  close(): void {
    this.#closed = true;
    clearImmediate(this.#due);
    this.#end();
  }

  #end(): void {
    this.#due = undefined;
    const pieces = this.#pieces;
    this.#pieces = [];
    const { store, deal, onFailure } = this.#options;
    const dealing = { work: this.#closed ? () => {} : deal, onFailure };
    const all = [...pieces, dealing];
    try {
      // Dealing alone often finds nothing to lease, and then needs no commit.
      if (pieces.length === 0) dealing.work();
      else
        for (const [index, fault] of store.together(all.map(({ work }) => work)).entries())
          if (fault !== undefined) all[index].onFailure(fault);
    } catch (error) {
      for (const piece of all) piece.onFailure(error);
    }
  }
}

/** The part of an actor's stream that takes leases. */
interface Taker {
  readonly actor: string;
  readonly freeSlots: number;
  lease(execution: LeasedExecution): void;
}

/** Most leases in one commit. More would save commits, but the first actor waits until all are on disk. */
const LEASES_PER_COMMIT = 64;

/** Leases one execution at a time to the actor with the most free slots. */
export function deal(leases: Leases, takers: Iterable<Taker>): void {
  if (!leases.attempts.hasQueued()) return;
  const places: { taker: Taker; room: number }[] = [];
  for (const taker of takers) for (let room = taker.freeSlots; room > 0; room--) places.push({ taker, room });
  places.sort((a, b) => b.room - a.room);
  for (let from = 0; from < places.length; from += LEASES_PER_COMMIT) {
    const some = places.slice(from, from + LEASES_PER_COMMIT);
    const leased = leases.takeAll(some.map(({ taker }) => taker.actor));
    for (const [index, execution] of leased.entries()) some[index].taker.lease(execution);
    if (leased.length < some.length) return;
  }
}
