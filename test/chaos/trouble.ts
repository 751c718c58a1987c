/** Troubles, the worlds that they strike, and the seeded schedule: the seed alone decides the order and times of the troubles. */

/** Deterministic random numbers (mulberry32): the same seed gives the same numbers. */
export class Random {
  #state: number;

  /** @param seed a whole number */
  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** Returns a number from 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns a number from `least` to below `most`. */
  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  /** Returns one of the items, of which there is at least one. */
  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.next() * items.length)]!;
  }

  /** Returns an independent generator: drawing from it does not change the numbers of this one. */
  fork(): Random {
    return new Random(Math.floor(this.next() * 2 ** 32));
  }
}

export interface Trouble {
  readonly name: string;
  /** Its frequency, relative to the others. */
  readonly weight: number;
  /**
   * Causes the trouble and ends it. @returns the target and its state afterwards, e.g. "learner 123, back after 1.2 s"; undefined if there
   * is no target now
   */
  strike(random: Random): Promise<string | undefined>;
}

/** The place of small runs: this machine, or a node. */
export interface World {
  /** Mean seconds between the beginnings of two troubles. */
  readonly gapSeconds: number;
  /** Most troubles at the same time. */
  readonly atOnce: number;
  /** Seconds of a run after which no trouble begins, and seconds that the run may then take to end. */
  readonly strikeSeconds: number;
  readonly calmSeconds: number;
  /** Starts the next small run; `troubles` strike until `ended` settles. A rejection of `ended` is a finding. */
  begin(seed: number): Promise<{ troubles: readonly Trouble[]; ended: Promise<void> }>;
  /** Checks everything after a run. Returns findings, and numbers that are added up over the runs. */
  check(): Promise<{ findings: string[]; counts: Record<string, number> }>;
  /** Ends all processes of the world and removes its files. `keep`: files that help to explain a finding stay. */
  stop(keep: boolean): Promise<void>;
}

export interface Planned {
  waitSeconds: number;
  trouble: Trouble;
  /** The trouble's own choices. */
  random: Random;
}

/** Yields troubles for ever: by weight, at random times with a mean distance of `gapSeconds`. */
export function* schedule(troubles: readonly Trouble[], seed: number, gapSeconds: number): Generator<Planned> {
  const random = new Random(seed);
  const total = troubles.reduce((sum, { weight }) => sum + weight, 0);
  for (;;) {
    const waitSeconds = random.between(0.1, 1.9) * gapSeconds;
    const at = random.next() * total;
    let passed = 0;
    const trouble = troubles.find(({ weight }) => {
      passed += weight;
      return at < passed;
    })!;
    yield { waitSeconds, trouble, random: random.fork() };
  }
}
