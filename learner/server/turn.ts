/**
 * One turn of the event loop. All results that came in it are written in one commit, together with the leases for the
 * slots that they freed: a commit waits for the disk, and a thousand actors send much at once.
 */
import type { Store } from "../store/store.ts";

export interface TurnOptions {
  store: Pick<Store, "together">;
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

  /** Does `work` at the end of this turn. @param onFailure called if `work` throws or the commit fails: nothing is on disk */
  write(work: () => void, onFailure: (error: unknown) => void): void {
    this.#pieces.push({ work, onFailure });
    this.deal();
  }

  deal(): void {
    if (!this.#closed) this.#due ??= setImmediate(() => this.#end());
  }

  /** Writes what has come; deals no lease any more. */
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
      // Dealing alone often has nothing to lease, and then costs no commit.
      if (pieces.length === 0) dealing.work();
      else
        for (const [index, fault] of store.together(all.map(({ work }) => work)).entries())
          if (fault !== undefined) all[index].onFailure(fault);
    } catch (error) {
      for (const piece of all) piece.onFailure(error);
    }
  }
}
