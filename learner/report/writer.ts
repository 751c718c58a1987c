/**
 * Keeps `report.html` up to date while a run goes on. The page is made in a worker thread, which loads Vega on the
 * first request; requests during a write become one more write after it. A report that fails never fails the run.
 */
import { Worker } from "node:worker_threads";

export interface ReportWriterOptions {
  runDirectory: string;
  /** Told of a report that could not be written, one line. */
  onError: (message: string) => void;
  /** At least this long from one report's end to the next one's start, so that plots do not eat the run's time. */
  minimumIntervalSeconds?: number;
}

type Answer = { path: string } | { error: string };

export class ReportWriter {
  readonly #options: ReportWriterOptions;
  #worker: Worker | undefined;
  #answer: ((answer: Answer) => void) | undefined;
  #writing: Promise<void> | undefined;
  #wanted = false;
  #timer: NodeJS.Timeout | undefined;
  #lastEnded = Number.NEGATIVE_INFINITY;

  constructor(options: ReportWriterOptions) {
    this.#options = options;
  }

  /** Asks for a report of what the run folder holds now; returns at once. */
  request(): void {
    this.#wanted = true;
    if (this.#writing || this.#timer) return;
    const interval = (this.#options.minimumIntervalSeconds ?? 10) * 1000;
    const wait = Math.max(0, this.#lastEnded + interval - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#write();
    }, wait);
    this.#timer.unref();
  }

  /** Writes the last report and ends the worker. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#writing;
    clearTimeout(this.#timer);
    await this.#write();
    await this.#worker?.terminate();
    this.#worker = undefined;
  }

  #write(): Promise<void> {
    this.#wanted = false;
    this.#writing = this.#ask()
      .then((answer) => {
        if ("error" in answer) this.#options.onError(answer.error);
      })
      .finally(() => {
        this.#writing = undefined;
        this.#lastEnded = performance.now();
        if (this.#wanted) this.request();
      });
    return this.#writing;
  }

  #ask(): Promise<Answer> {
    const worker = this.#worker ?? this.#start();
    // Only a report in the making keeps the process alive.
    worker.ref();
    return new Promise((resolve) => {
      this.#answer = (answer) => {
        worker.unref();
        resolve(answer);
      };
      worker.postMessage({ directory: this.#options.runDirectory });
    });
  }

  #start(): Worker {
    const worker = new Worker(new URL("./worker.ts", import.meta.url));
    worker.on("message", (answer: Answer) => this.#answer?.(answer));
    worker.on("error", (error: unknown) => this.#ended(error instanceof Error ? error.message : String(error)));
    worker.on("exit", (code) => this.#ended(`exit code ${code}`));
    this.#worker = worker;
    return worker;
  }

  #ended(reason: string): void {
    this.#worker = undefined;
    this.#answer?.({ error: `the report thread ended: ${reason}` });
  }
}
