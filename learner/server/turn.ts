/**
 * One turn of the event loop: all results that came in it are written in one commit, and leases for the slots that they
 * freed in the same one. A commit waits for the disk, and a thousand actors say much at once.
 */
import type { Store } from "../store/store.ts";

export interface TurnOptions {
  store: Pick<Store, "together">;
  /** Leases what is queued to free slots. */
  deal: () => void;
  onFailure: (error: unknown) => void;
}

interface Piece {
  work: () => void;
  onFailure: (error: unknown) => void;
}

export class Turn {
  readonly #options: TurnOptions;
  #pieces: Piece[] = [];
  #due: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(options: TurnOptions) {
    this.#options = options;
  }

  /** Has `work` written at the end of this turn. @param onFailure if it throws, or the commit fails: nothing of it is on disk */
  write(work: () => void, onFailure: (error: unknown) => void): void {
    this.#pieces.push({ work, onFailure });
    this.deal();
  }

  /** Has leases dealt at the end of this turn. */
  deal(): void {
    if (!this.#closed) this.#due ??= setImmediate(() => this.#end());
  }

  /** What has come is written; no lease is dealt any more. */
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
      // Dealing alone is often about nothing: then it costs no commit.
      if (pieces.length === 0) dealing.work();
      else
        for (const [index, fault] of store.together(all.map(({ work }) => work)).entries())
          if (fault !== undefined) all[index]!.onFailure(fault);
    } catch (error) {
      for (const piece of all) piece.onFailure(error);
    }
  }
}
