/**
 * Whether a stream says more than any actor has to say. A token bucket: `messagesPerSecond` on average, over `floodSeconds`.
 *
 * An actor with 256 slots sends two messages for each program and four at most for a submission of 1 MiB; so 5000 a
 * second are 800 programs a second, on one actor.
 */
export interface FloodLimits {
  messagesPerSecond: number;
  floodSeconds: number;
}

export class Flood {
  readonly #limits: FloodLimits;
  #left: number;
  #atMs: number;

  /** @param nowMs monotonic milliseconds */
  constructor(limits: FloodLimits, nowMs: number) {
    this.#limits = limits;
    this.#left = limits.messagesPerSecond * limits.floodSeconds;
    this.#atMs = nowMs;
  }

  /** Counts a message as `cost` of them. @returns whether that is too many */
  exceeds(nowMs: number, cost: number): boolean {
    const { messagesPerSecond, floodSeconds } = this.#limits;
    const gained = ((nowMs - this.#atMs) / 1000) * messagesPerSecond;
    this.#left = Math.min(messagesPerSecond * floodSeconds, this.#left + gained) - cost;
    this.#atMs = nowMs;
    return this.#left < 0;
  }
}
