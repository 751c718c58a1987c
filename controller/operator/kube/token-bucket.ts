import { setTimeout as sleep } from "node:timers/promises";

/** Allows `perSecond` calls on average and `burst` calls at once. Waiting callers are served in order. */
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

  /** Takes a token, in advance if none is left. @returns the seconds that the caller must wait */
  reserveSeconds(): number {
    this.#fill();
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : -this.#tokens / this.#perSecond;
  }

  /** @returns whether a token was available; if not, takes none */
  tryTake(): boolean {
    this.#fill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Returns the seconds until a token is available. Takes none. */
  secondsUntilNext(): number {
    this.#fill();
    return Math.max(0, 1 - this.#tokens) / this.#perSecond;
  }

  /** Returns the unused share of the burst, 0 to 1; negative if callers wait. */
  get level(): number {
    this.#fill();
    return this.#tokens / this.#burst;
  }

  /** Returns the milliseconds since the last call. */
  get idleMs(): number {
    return this.#now() - this.#filledMs;
  }

  /** Waits for a token. Rejects with the signal's reason when it aborts. */
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
