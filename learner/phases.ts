import type { RunContext } from "./context.ts";
import { Phase } from "./server/status.ts";

/** What the learner spends time on: keys of `secondsByPhase`, and the status's phase of each. */
const PHASES = {
  generate: Phase.GENERATING,
  execute: Phase.EXECUTING,
  evaluate: Phase.EVALUATING,
  train: Phase.TRAINING,
  checkpoint: Phase.CHECKPOINTING,
  evaluatePolicy: Phase.FINAL_EVALUATION,
};
type TimedPhase = keyof typeof PHASES;

/** An update that has begun is finished: until it ends, the weights belong to no iteration. */
const UPDATE: readonly TimedPhase[] = ["evaluate", "train", "checkpoint"];

/** What the learner does now: shows it in the status, counts its seconds, and says where the run can be stopped. */
export class Phases {
  readonly #run: Pick<RunContext, "status" | "progress">;
  /** Stops the run anywhere. */
  readonly #signal: AbortSignal;
  /** Ends the loop between two updates. */
  readonly stop: AbortSignal;
  #now: TimedPhase | undefined;
  #sinceMs = 0;
  #seconds: Partial<Record<TimedPhase, number>> = {};

  /** @param signal stops the run anywhere @param suspended stops it where the weights belong to a finished iteration */
  constructor(run: Pick<RunContext, "status" | "progress">, signal: AbortSignal, suspended: AbortSignal) {
    this.#run = run;
    this.#signal = signal;
    this.stop = AbortSignal.any([signal, suspended]);
  }

  /** Begins an iteration: seconds count from here. @throws the reason of the signal that stops the run */
  reset(): void {
    this.stop.throwIfAborted();
    this.end();
    this.#seconds = {};
  }

  /** Begins a phase, or says how far it is. @throws the reason of the signal that stops the run */
  enter(name: TimedPhase, total = 0, done = 0): void {
    (UPDATE.includes(name) ? this.#signal : this.stop).throwIfAborted();
    if (name !== this.#now) this.#go(name);
    const { status, progress } = this.#run;
    const iteration = progress.state.iteration + 1;
    status.update({ phase: PHASES[name], iteration, phaseTotal: total, phaseDone: done });
  }

  /** Says how far the current phase is, and what it works on. */
  show(done: number, message: string): void {
    this.#run.status.update({ phaseDone: done, message });
  }

  end(): void {
    this.#go(undefined);
  }

  /** Seconds of the phases that ended since `reset`. */
  get seconds(): Partial<Record<TimedPhase, number>> {
    return { ...this.#seconds };
  }

  /** Whether the weights are those of the newest finished iteration: always, except during an update. */
  get isBetweenUpdates(): boolean {
    return this.#now === undefined || !UPDATE.includes(this.#now);
  }

  #go(next: TimedPhase | undefined): void {
    const nowMs = performance.now();
    if (this.#now !== undefined)
      this.#seconds[this.#now] = (this.#seconds[this.#now] ?? 0) + (nowMs - this.#sinceMs) / 1000;
    this.#now = next;
    this.#sinceMs = nowMs;
  }
}
