import type { StatusReceived } from "./status.ts";
import { phaseName } from "./status.ts";

/** An iteration takes so many times as long as its generation: 57 to 80 s to 27 to 39 s (SmolLM2-135M on two cores, November 2026). */
const ITERATION_BY_GENERATION = 2;
/** Shorter iterations need no estimate. */
const WORTH_SECONDS = 60;

/** Says once, when half of the first responses have ended, how long an iteration will take. */
export class FirstEstimate {
  readonly #now: () => number;
  #sinceMs: number | undefined;
  #isOver = false;

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the estimate in seconds, once. */
  take(status: Pick<StatusReceived, "iteration" | "phase" | "phaseDone" | "phaseTotal">): number | undefined {
    const { iteration, phaseDone, phaseTotal } = status;
    if (this.#isOver || phaseName(status as StatusReceived) !== "GENERATING") return undefined;
    this.#isOver = iteration > 1;
    this.#sinceMs ??= this.#now();
    if (this.#isOver || phaseTotal === 0 || phaseDone < phaseTotal / 2) return undefined;
    this.#isOver = true;
    const half = (this.#now() - this.#sinceMs) / 1000;
    const seconds = half * (phaseTotal / phaseDone) * ITERATION_BY_GENERATION;
    return seconds >= WORTH_SECONDS ? seconds : undefined;
  }
}
