import type { DEFAULTS } from "./options.ts";

type FloodLimits = Pick<typeof DEFAULTS, "messagesPerSecond" | "floodSeconds">;

/**
 * Finds a stream that sends more messages than any actor has to send. A token bucket: `messagesPerSecond` on average
 * over `floodSeconds`. An actor sends two messages for each program and at most four for a submission of 1 MiB, so that
 * 5000 messages a second are 800 programs a second, on one actor.
 */
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

  /** Counts `cost` messages. @returns whether that is too many */
  exceeds(nowMs: number, cost: number): boolean {
    const { messagesPerSecond, floodSeconds } = this.#limits;
    const gained = ((nowMs - this.#atMs) / 1000) * messagesPerSecond;
    this.#left = Math.min(messagesPerSecond * floodSeconds, this.#left + gained) - cost;
    this.#atMs = nowMs;
    return this.#left < 0;
  }
}
