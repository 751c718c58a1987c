/**
 * Distributes rows among workers. Rows wait here, not at a worker: the worker with the fewest rows gets the next ones. A worker has a few
 * rows beyond its slots, which it can start at once when a row ends.
 */

import type { Role } from "./adaptation.ts";
import type { Remote } from "./calls.ts";
import type { EngineWorker } from "./engine-worker.ts";
import { dealtPrompts } from "./microbatches.ts";
import type { GenerateOptions, Listener, Response } from "./model/generate.ts";

type Calls = Pick<Remote<EngineWorker>, "generate">;

/** Rows that a worker holds beyond its slots, as a share of its slots; at least one row. */
const AHEAD = 1 / 8;

/** One call of `generate`. */
interface Call {
  readonly role: Role;
  readonly options: GenerateOptions;
  readonly listener: Listener | undefined;
  readonly responses: Response[];
  /** Ends its rows at all workers, if one of them fails or the caller aborts. */
  readonly ending: AbortController;
  readonly settled: PromiseWithResolvers<Response[]>;
  /** Number of rows that wait here. */
  waiting: number;
  /** Number of parts that workers generate. */
  open: number;
}

interface Row {
  readonly call: Call;
  readonly index: number;
  readonly prompt: Int32Array;
}

export class Dealing {
  readonly #workers: readonly Calls[];
  /** Number of rows of each worker. */
  readonly #rows: number[];
  /** Most rows of a worker. */
  readonly #most: number;
  readonly #slots: number;
  #waiting: Row[] = [];

  /** @param slots number of each worker's slots */
  constructor(workers: readonly Calls[], slots: number) {
    this.#workers = workers;
    this.#rows = workers.map(() => 0);
    this.#slots = slots;
    // a single worker may have all rows, because there is no other
    this.#most = workers.length === 1 ? Number.POSITIVE_INFINITY : slots + Math.max(1, Math.floor(slots * AHEAD));
  }

  async generate(
    role: Role,
    prompts: readonly Int32Array[],
    options: GenerateOptions,
    listener?: Listener,
  ): Promise<Response[]> {
    const { signal } = options;
    signal?.throwIfAborted();
    if (prompts.length === 0) return [];
    const call: Call = {
      role,
      options,
      listener,
      responses: [],
      open: 0,
      waiting: prompts.length,
      ending: new AbortController(),
      settled: Promise.withResolvers<Response[]>(),
    };
    const abort = () => this.#end(call, signal?.reason);
    signal?.addEventListener("abort", abort);
    this.#waiting.push(...prompts.map((prompt, index) => ({ call, index, prompt })));
    this.#deal();
    return call.settled.promise.finally(() => signal?.removeEventListener("abort", abort));
  }

  /** Gives workers as many of the waiting rows as they may have. */
  #deal(): void {
    const room = this.#rows.reduce((total, rows) => total + Math.max(0, this.#most - rows), 0);
    const next = this.#waiting.splice(0, Math.min(room, this.#waiting.length));
    const parts = dealtPrompts(
      next.map(({ prompt }) => prompt),
      this.#rows,
    );
    for (const [worker, part] of parts.entries())
      for (const [call, rows] of Map.groupBy(
        part.map((i) => next[i]!),
        ({ call }) => call,
      ))
        void this.#generate(worker, call, rows);
  }

  /** Gives some rows of a call to a worker. */
  async #generate(worker: number, call: Call, rows: readonly Row[]): Promise<void> {
    const { role, options, listener, ending } = call;
    let left = rows.length;
    const ended = (count: number) => {
      left -= count;
      this.#rows[worker]! -= count;
      if (this.#waiting.length > 0 && this.#rows[worker]! <= this.#slots) this.#deal();
    };
    this.#rows[worker]! += left;
    call.waiting -= left;
    call.open++;
    try {
      const found = await this.#workers[worker]!.generate(
        role,
        rows.map(({ prompt }) => prompt),
        { ...options, seeds: rows.map(({ index }) => options.seeds[index]!), signal: ending.signal },
        (i, part) => {
          listener?.(rows[i]!.index, part);
          if (part.ended) ended(1);
        },
      );
      for (const [i, { index }] of rows.entries()) call.responses[index] = found[i]!;
    } catch (cause) {
      this.#end(call, cause);
    }
    call.open--;
    ended(left);
    this.#settle(call);
  }

  /** Ends a call's rows, including waiting ones. */
  #end(call: Call, cause: unknown): void {
    this.#waiting = this.#waiting.filter((row) => row.call !== call);
    call.waiting = 0;
    if (!call.ending.signal.aborted) call.ending.abort(cause);
    this.#settle(call);
  }

  /** Resolves a call that has no row left. */
  #settle(call: Call): void {
    if (call.waiting > 0 || call.open > 0) return;
    if (call.ending.signal.aborted) call.settled.reject(call.ending.signal.reason);
    else call.settled.resolve(call.responses);
  }
}
