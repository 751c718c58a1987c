import type { RunProgress } from "./progress.ts";
import { Phase, type StatusBoard } from "./server/status.ts";

/** What the learner's time goes to; keys of `secondsByPhase`. */
const PHASES = {
  generate: Phase.GENERATING,
  execute: Phase.EXECUTING,
  evaluate: Phase.EVALUATING,
  train: Phase.TRAINING,
  checkpoint: Phase.CHECKPOINTING,
  evaluatePolicy: Phase.FINAL_EVALUATION,
};
export type PhaseName = keyof typeof PHASES;

/** Once begun, an update is carried through: its weights are no iteration's before it has ended. */
const UPDATE: readonly PhaseName[] = ["evaluate", "train", "checkpoint"];

export interface PhasesOptions {
  status: StatusBoard;
  progress: RunProgress;
  /** Stops the run wherever it is. */
  signal: AbortSignal;
  /** Stops it where the weights are those of a finished iteration. */
  suspended: AbortSignal;
}

/** What the learner does now: the status shows it, its seconds are counted, and it decides where the run can be stopped. */
export class Phases {
  readonly #options: PhasesOptions;
  /** Ends the loop between two updates. */
  readonly stop: AbortSignal;
  #now: PhaseName | undefined;
  #sinceMs = 0;
  #seconds: Partial<Record<PhaseName, number>> = {};

  constructor(options: PhasesOptions) {
    this.#options = options;
    this.stop = AbortSignal.any([options.signal, options.suspended]);
  }

  /** An iteration begins: seconds count from here. */
  reset(): void {
    this.stop.throwIfAborted();
    this.end();
    this.#seconds = {};
  }

  /** Begins a phase, or says how far it is. @throws whatever the signal aborts with */
  enter(name: PhaseName, total = 0, done = 0): void {
    const { status, progress, signal } = this.#options;
    (UPDATE.includes(name) ? signal : this.stop).throwIfAborted();
    if (name !== this.#now) this.#go(name);
    const iteration = progress.state.iteration + 1;
    status.update({ phase: PHASES[name], iteration, phaseTotal: total, phaseDone: done });
  }

  /** Says how far the phase is that the last call of `enter` began, and what it works on. */
  show(done: number, message: string): void {
    this.#options.status.update({ phaseDone: done, message });
  }

  end(): void {
    this.#go(undefined);
  }

  /** Of the phases that ended since `reset`. */
  get seconds(): Partial<Record<PhaseName, number>> {
    return { ...this.#seconds };
  }

  /** Whether the weights are those of the newest finished iteration, as they are but while an update changes them. */
  get isBetweenUpdates(): boolean {
    return this.#now === undefined || !UPDATE.includes(this.#now);
  }

  #go(next: PhaseName | undefined): void {
    const nowMs = performance.now();
    if (this.#now !== undefined)
      this.#seconds[this.#now] = (this.#seconds[this.#now] ?? 0) + (nowMs - this.#sinceMs) / 1000;
    this.#now = next;
    this.#sinceMs = nowMs;
  }
}
