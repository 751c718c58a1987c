import { setTimeout as sleep } from "node:timers/promises";

/** Lets `perSecond` calls through on average and `burst` at once; who waits is served in the order of asking. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #now: () => number;
  #tokens: number;
  #filledMs: number;

  /** `now`: monotonic milliseconds. */
  constructor(perSecond: number, burst: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#now = now;
    this.#tokens = burst;
    this.#filledMs = now();
  }

  /** Takes a token, in debt if need be. @returns the seconds after which the taker may go on */
  reserveSeconds(): number {
    this.#fill();
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : -this.#tokens / this.#perSecond;
  }

  /** @returns whether a token was there; takes none otherwise */
  tryTake(): boolean {
    this.#fill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Until a token is there; takes none. */
  secondsUntilNext(): number {
    this.#fill();
    return Math.max(0, 1 - this.#tokens) / this.#perSecond;
  }

  /** What is left of the burst, 0..1; negative where takers wait. */
  get level(): number {
    this.#fill();
    return this.#tokens / this.#burst;
  }

  /** Milliseconds since it was last asked. */
  get idleMs(): number {
    return this.#now() - this.#filledMs;
  }

  /** Waits for the turn. Rejects with the signal's reason when it aborts. */
  async take(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const seconds = this.reserveSeconds();
    if (seconds > 0) await sleep(seconds * 1000, undefined, signal ? { signal } : {});
  }

  #fill(): void {
    const nowMs = this.#now();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#filledMs) / 1000) * this.#perSecond);
    this.#filledMs = nowMs;
  }
}
