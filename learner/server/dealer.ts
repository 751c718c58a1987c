/** Gives queued executions to actors' free slots. */
import type { Leases } from "../store/leases.ts";
import type { LeasedExecution } from "../store/types.ts";

/** An actor's stream, as far as leases go to it. */
export interface Taker {
  readonly actor: string;
  readonly freeSlots: number;
  lease(execution: LeasedExecution): void;
}

export interface DealerOptions {
  leases: Leases;
  takers: () => Iterable<Taker>;
  onLeased: (execution: LeasedExecution, actor: string) => void;
  /** All that could be leased is. */
  onDealt: () => void;
  onFailure: (error: unknown) => void;
}

/** Leases that are committed together: a commit waits for the disk, and the first of many actors for the last. */
const LEASES_PER_COMMIT = 64;

export class Dealer {
  readonly #options: DealerOptions;
  #due: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(options: DealerOptions) {
    this.#options = options;
  }

  /** Once for all messages that have come in this turn of the event loop: a thousand actors say much at once. */
  soon(): void {
    if (this.#closed) return;
    this.#due ??= setImmediate(() => {
      this.#due = undefined;
      try {
        this.#deal();
      } catch (error) {
        this.#options.onFailure(error);
      }
    });
  }

  close(): void {
    this.#closed = true;
    clearImmediate(this.#due);
  }

  /** One at a time to whoever has most slots free. */
  #deal(): void {
    const { leases, takers, onLeased, onDealt } = this.#options;
    const places: { taker: Taker; room: number }[] = [];
    if (leases.hasQueued())
      for (const taker of takers()) for (let room = taker.freeSlots; room > 0; room--) places.push({ taker, room });
    places.sort((a, b) => b.room - a.room);
    for (let from = 0; from < places.length; from += LEASES_PER_COMMIT) {
      const some = places.slice(from, from + LEASES_PER_COMMIT);
      const leased = leases.takeAll(some.map(({ taker }) => taker.actor));
      for (const [index, execution] of leased.entries()) {
        const { taker } = some[index]!;
        taker.lease(execution);
        onLeased(execution, taker.actor);
      }
      if (leased.length < some.length) break;
    }
    onDealt();
  }
}
