/**
 * Keeps `report.html` up to date while a run goes on. The page is made in a worker thread, which loads Vega on the
 * first request; requests during a write become one more write after it. A report that fails never fails the run.
 */
import { setTimeout } from "node:timers/promises";
import { Worker } from "node:worker_threads";

interface ReportWriterOptions {
  runDirectory: string;
  /** Told of a report that could not be written, one line. */
  onError: (message: string) => void;
}

/** From one report's end to the next one's start at least, so that plots do not eat the run's time. */
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

  /** Asks for a report of what the run folder holds now; returns at once. */
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

  /** @returns why there is no report */
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
    // Only a report in the making keeps the process alive.
    worker.ref();
    worker.postMessage(this.#options.runDirectory);
    return promise.finally(() => worker.unref());
  }
}
