/**
 * Waiting times that double from `firstSeconds` to `maxSeconds` with each failure. Each is lengthened at random by a share of at most
 * `jitter`.
 */
export class Backoff {
  readonly #firstSeconds: number;
  readonly #maxSeconds: number;
  readonly #jitter: number;
  readonly #random: () => number;
  #failures = 0;

  constructor(options: { firstSeconds: number; maxSeconds: number; jitter?: number; random?: () => number }) {
    this.#firstSeconds = options.firstSeconds;
    this.#maxSeconds = options.maxSeconds;
    this.#jitter = options.jitter ?? 0.5;
    this.#random = options.random ?? Math.random;
  }

  get failures(): number {
    return this.#failures;
  }

  /** @returns the seconds to wait after another failure */
  nextSeconds(): number {
    const seconds = Math.min(this.#maxSeconds, this.#firstSeconds * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    return seconds * (1 + this.#jitter * this.#random());
  }

  reset(): void {
    this.#failures = 0;
  }
}
