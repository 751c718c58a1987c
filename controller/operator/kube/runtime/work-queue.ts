/**
 * A queue of keys for workers. A key waits at most once and has at most one worker: a key that is added while a worker has it waits until
 * that worker is done. (client-go's rules.)
 */

import type { QueueMetrics } from "../metrics.ts";
import { TokenBucket } from "../token-bucket.ts";
import type { ReconcileResult } from "../types.ts";
import { Backoff } from "./backoff.ts";

export interface WorkQueueOptions {
  /** First wait after a key failed; doubles with each consecutive failure. Default 0.05. */
  firstBackoffSeconds?: number;
  /** Longest such wait. Default 60. */
  maxBackoffSeconds?: number;
  /** Retries per second for all keys together, and how many may start at once. Default 10 and 100. */
  retriesPerSecond?: number;
  retryBurst?: number;
  metrics?: QueueMetrics;
  /** Called when a worker threw; the key is retried. */
  onError?: (key: string, error: unknown, retryInSeconds: number) => void;
  /** Monotonic clock, in milliseconds. */
  now?: () => number;
}

export type Worker = (key: string, signal: AbortSignal) => Promise<ReconcileResult | undefined>;

interface Timer {
  dueMs: number;
  handle: NodeJS.Timeout;
}

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #now: () => number;
  /** Waiting keys in order, with the time of adding. */
  readonly #waiting = new Map<string, number>();
  /** Keys that a worker has, with the start time. */
  readonly #running = new Map<string, number>();
  /** Keys that were added while a worker had them. */
  readonly #again = new Set<string>();
  readonly #timers = new Map<string, Timer>();
  readonly #backoffs = new Map<string, Backoff>();
  readonly #retries: TokenBucket;
  #pump: () => void = () => {};
  #stopped = false;

  constructor(options: WorkQueueOptions = {}) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#retries = new TokenBucket(options.retriesPerSecond ?? 10, options.retryBurst ?? 100, this.#now);
    options.metrics?.observe(this);
  }

  /** Returns the number of waiting keys, without those of timers. */
  get depth(): number {
    return this.#waiting.size + this.#again.size;
  }

  /** Returns for each worker how long it has had its key. */
  runningSeconds(): number[] {
    return [...this.#running.values()].map((startedMs) => (this.#now() - startedMs) / 1000);
  }

  add(key: string): void {
    if (this.#stopped || this.#waiting.has(key) || this.#again.has(key)) return;
    this.#options.metrics?.added();
    if (this.#running.has(key)) this.#again.add(key);
    else {
      this.#waiting.set(key, this.#now());
      this.#pump();
    }
  }

  /** Adds the key after `seconds`, or at an earlier time for which it is already scheduled. */
  addAfter(key: string, seconds: number): void {
    if (this.#stopped) return;
    if (seconds <= 0) {
      this.add(key);
      return;
    }
    const dueMs = this.#now() + seconds * 1000;
    const planned = this.#timers.get(key);
    if (planned && planned.dueMs <= dueMs) return;
    clearTimeout(planned?.handle);
    const handle = setTimeout(
      () => {
        this.#timers.delete(key);
        this.add(key);
      },
      Math.min(seconds * 1000, 2 ** 31 - 1),
    );
    this.#timers.set(key, { dueMs, handle });
  }

  /**
   * Adds the key after its back-off, at least `atLeastSeconds`, within the limit of all retries together.
   * @returns the seconds until then
   */
  addRateLimited(key: string, atLeastSeconds = 0): number {
    let backoff = this.#backoffs.get(key);
    if (!backoff) {
      backoff = new Backoff({
        firstSeconds: this.#options.firstBackoffSeconds ?? 0.05,
        maxSeconds: this.#options.maxBackoffSeconds ?? 60,
        jitter: 0.2,
      });
      this.#backoffs.set(key, backoff);
    }
    const seconds = Math.max(backoff.nextSeconds(), atLeastSeconds, this.#retries.reserveSeconds());
    this.#options.metrics?.retried();
    this.addAfter(key, seconds);
    return seconds;
  }

  /** Resets the key's failures. */
  forget(key: string): void {
    this.#backoffs.delete(key);
  }

  /**
   * Hands keys to at most `concurrency` workers at a time until the signal aborts. Resolves when the last worker is done. Keys that still
   * wait are dropped.
   */
  async run(worker: Worker, { concurrency, signal }: { concurrency: number; signal: AbortSignal }): Promise<void> {
    const idle = Promise.withResolvers<void>();
    const stop = () => {
      this.#stopped = true;
      for (const { handle } of this.#timers.values()) clearTimeout(handle);
      this.#timers.clear();
      this.#waiting.clear();
      this.#again.clear();
      if (this.#running.size === 0) idle.resolve();
    };
    this.#pump = () => {
      while (!this.#stopped && this.#running.size < concurrency) {
        const next = this.#waiting.entries().next();
        if (next.done) return;
        const [key, addedMs] = next.value;
        this.#waiting.delete(key);
        this.#running.set(key, this.#now());
        this.#options.metrics?.started((this.#now() - addedMs) / 1000);
        this.#process(key, worker, signal).finally(() => {
          if (this.#stopped && this.#running.size === 0) idle.resolve();
          this.#pump();
        });
      }
    };
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    this.#pump();
    await idle.promise;
  }

  async #process(key: string, worker: Worker, signal: AbortSignal): Promise<void> {
    const startedMs = this.#now();
    let result: "success" | "requeue_after" | "error" = "success";
    try {
      const { requeueAfterSeconds } = (await worker(key, signal)) ?? {};
      this.forget(key);
      if (requeueAfterSeconds !== undefined) {
        result = "requeue_after";
        this.addAfter(key, requeueAfterSeconds);
      }
    } catch (error) {
      result = "error";
      if (!this.#stopped) {
        const seconds = this.addRateLimited(key, (error as { retryAfterSeconds?: number }).retryAfterSeconds);
        this.#options.onError?.(key, error, seconds);
      }
    }
    this.#options.metrics?.finished(result, (this.#now() - startedMs) / 1000);
    this.#running.delete(key);
    if (this.#again.delete(key)) this.#waiting.set(key, this.#now());
  }
}
