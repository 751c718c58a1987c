/** How many solutions are asked for ahead, so that no slot waits for a writer. */

/** Part of the slots for which a program waits besides, because writing and running take uneven times. */
const SPARE = 0.25;
/** Weight of the newest duration in the running means. */
const NEWEST = 1 / 16;

export interface Flow {
  /** Solutions that are being written. */
  writing: number;
  /** Programs that wait or run. */
  executing: number;
  /** Solutions that may still be begun. */
  left: number;
}

/**
 * Knows how long solutions take to write (w) and to run (r). By Little's law slots that are never idle need slots · w / r solutions that are
 * being written; a quarter of the slots is spare. With one slot nothing is asked ahead: each choice then knows every result.
 */
export class Pace {
  readonly #slots: number;
  readonly #writers: number;
  #writeSeconds: number | undefined;
  #runSeconds: number | undefined;

  /** @param writers solutions that can be written side by side */
  constructor(slots: number, writers: number) {
    this.#slots = slots;
    this.#writers = writers;
  }

  wrote(seconds: number): void {
    this.#writeSeconds = mixed(this.#writeSeconds, seconds);
  }

  ran(seconds: number): void {
    this.#runSeconds = mixed(this.#runSeconds, seconds);
  }

  /** Returns how many solutions to begin now. */
  wanted({ writing, executing, left }: Flow): number {
    const room = this.#slots + this.#ahead - writing - executing;
    return Math.max(0, Math.min(left, this.#writers - writing, room));
  }

  get #ahead(): number {
    if (this.#slots === 1) return 0;
    const spare = Math.ceil(this.#slots * SPARE);
    if (this.#writeSeconds === undefined || this.#runSeconds === undefined) return this.#slots;
    const writing = Math.ceil((this.#slots * this.#writeSeconds) / Math.max(this.#runSeconds, Number.MIN_VALUE));
    return Math.min(writing, this.#writers) + spare;
  }
}

const mixed = (mean: number | undefined, newest: number): number =>
  mean === undefined ? newest : mean + NEWEST * (newest - mean);
