/**
 * Keeps `report.html` up to date during a run. A worker thread makes the page; it loads Vega on the first request. Requests during a write
 * lead to one more write. A failed report never fails the run.
 */
import { setTimeout } from "node:timers/promises";
import { Worker } from "node:worker_threads";

interface ReportWriterOptions {
  runDirectory: string;
  /** Called with one line if a report could not be written. */
  onError: (message: string) => void;
}

/** Shortest time from one report's end to the next one's start, so that plots do not slow the run down. */
const INTERVAL_MILLISECONDS = 10_000;

export class ReportWriter {
  readonly #options: ReportWriterOptions;
  readonly #closing = new AbortController();
  #worker: Worker | undefined;
  #writing: Promise<void> | undefined;
  #wanted = false;
  #lastEnded = Number.NEGATIVE_INFINITY;

  constructor(options: ReportWriterOptions) {
    this.#options = options;
  }

  /** Requests a report of the run folder's current content; returns at once. */
  request(): void {
    this.#wanted = true;
    this.#writing ??= this.#writeWanted().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Writes the last report and ends the worker. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writing;
    await this.#write();
    await this.#worker?.terminate();
  }

  async #writeWanted(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#wanted) {
      const wait = Math.max(0, this.#lastEnded + INTERVAL_MILLISECONDS - performance.now());
      await setTimeout(wait, undefined, { ref: false, signal }).catch(() => undefined);
      if (signal.aborted) return;
      await this.#write();
    }
  }

  async #write(): Promise<void> {
    this.#wanted = false;
    const error = await this.#ask();
    if (error !== undefined) this.#options.onError(error);
    this.#lastEnded = performance.now();
  }

  /** Asks the worker for a report. @returns why there is none, or undefined */
  #ask(): Promise<string | undefined> {
    this.#worker ??= new Worker(new URL("./worker.ts", import.meta.url));
    const worker = this.#worker;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const ended = (reason: unknown) => {
      this.#worker = undefined;
      resolve(`the report thread ended: ${reason instanceof Error ? reason.message : `exit code ${reason}`}`);
    };
    worker.removeAllListeners();
    worker.once("message", resolve).on("error", ended).on("exit", ended);
    // Only a report in progress keeps the process alive.
    worker.ref();
    worker.postMessage(this.#options.runDirectory);
    return promise.finally(() => worker.unref());
  }
}
