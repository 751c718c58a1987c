/** Counts and reports why generators were not used. */
import type { Logger } from "pino";
import type { RemoteGenerator } from "./remote.ts";

/** Reasons why a generator was not used. */
export type Fault = "lost" | "oldVersion" | "logProbs";

export interface GenerationCounts {
  faults: Record<Fault, number>;
  /** Rows that moved from the generator that got them first to another one. */
  movedRows: number;
  /** Rows whose generator could not be compared with the learner, because the learner had newer weights by then. */
  uncheckedRows: number;
}

const noCounts = (): GenerationCounts => ({
  faults: { lost: 0, oldVersion: 0, logProbs: 0 },
  movedRows: 0,
  uncheckedRows: 0,
});

export class Faults {
  /** Counts since the last line of metrics. */
  counts = noCounts();
  readonly #log: Logger;
  readonly #onChange: () => void;

  constructor(log: Logger, onChange: () => void) {
    this.#log = log;
    this.#onChange = onChange;
  }

  /** Returns the counts since the last call, and resets them. */
  take(): GenerationCounts {
    const { counts } = this;
    this.counts = noCounts();
    return counts;
  }

  report(generator: RemoteGenerator, fault: Fault, why: string): void {
    this.counts.faults[fault]++;
    this.#log.warn({ generator: generator.name, fault }, `${generator.name} is not used: ${why}`);
    this.#onChange();
  }

  /** Records that the generator is lost until it answers again. */
  lose(generator: RemoteGenerator, why: string): void {
    generator.lose(why);
    this.report(generator, "lost", why);
  }
}
