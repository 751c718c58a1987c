import type { EngineSeconds } from "../proto/engine-seconds.ts";
import type { RunContext } from "./context.ts";
import { EngineTime, type EngineUse } from "./engine-time.ts";
import { Phase } from "./server/status.ts";

/**
 * The learner's phases: keys of `secondsByPhase`, with the status's phase and the engine's use in each. Programs run in every phase.
 * `generate`: the engine generates. `execute`: the engine is idle, and the learner waits for programs.
 */
const PHASES = {
  warmUp: { status: Phase.WARMING_UP, engine: "updating" },
  generate: { status: Phase.GENERATING, engine: "generating" },
  execute: { status: Phase.EXECUTING, engine: "idlePrograms" },
  evaluate: { status: Phase.EVALUATING, engine: "updating" },
  train: { status: Phase.TRAINING, engine: "updating" },
  checkpoint: { status: Phase.CHECKPOINTING, engine: "idleOther" },
  evaluatePolicy: { status: Phase.FINAL_EVALUATION, engine: "idleOther" },
} as const satisfies Record<string, { status: number; engine: EngineUse }>;
type TimedPhase = keyof typeof PHASES;

/** Why the engine is idle in the phase `execute`. */
export type Idle = "idleActors" | "idlePrograms" | "idleStaleness";

/** Phases of an update, which is always finished: until it ends, the weights belong to no iteration. */
const UPDATE: readonly TimedPhase[] = ["evaluate", "train", "checkpoint"];

/** The learner's current phase: shows it in the status, counts its seconds, and knows where the run can be stopped. */
export class Phases {
  readonly #run: Pick<RunContext, "status" | "progress">;
  /** Stops the run anywhere. */
  readonly #signal: AbortSignal;
  /** Ends the loop between two updates. */
  readonly stop: AbortSignal;
  #now: TimedPhase | undefined;
  #sinceMs = 0;
  #seconds: Partial<Record<TimedPhase, number>> = {};
  readonly #engineTime = new EngineTime();

  /** @param signal stops the run anywhere @param suspended stops it where the weights belong to a finished iteration */
  constructor(run: Pick<RunContext, "status" | "progress">, signal: AbortSignal, suspended: AbortSignal) {
    this.#run = run;
    this.#signal = signal;
    this.stop = AbortSignal.any([signal, suspended]);
  }

  /** Starts an iteration: seconds count from here. @throws the reason of the signal that stops the run */
  reset(): void {
    this.stop.throwIfAborted();
    this.end();
    this.#seconds = {};
    this.#engineTime.restart();
  }

  /**
   * Starts a phase, or reports its progress. @param idle why the engine is idle, in the phase `execute`
   * @throws the reason of the signal that stops the run
   */
  enter(name: TimedPhase, total = 0, done = 0, idle?: Idle): void {
    (UPDATE.includes(name) ? this.#signal : this.stop).throwIfAborted();
    if (name !== this.#now) this.#go(name);
    this.#engineTime.is(idle ?? PHASES[name].engine);
    const { status, progress } = this.#run;
    const iteration = progress.state.iteration + 1;
    status.update({ phase: PHASES[name].status, iteration, phaseTotal: total, phaseDone: done });
  }

  /** Reports the progress of the current phase and its current work. */
  show(done: number, message: string): void {
    this.#run.status.update({ phaseDone: done, message });
  }

  end(): void {
    this.#go(undefined);
    this.#engineTime.is("idleOther");
  }

  /** Seconds of the phases that ended since `reset`. */
  get seconds(): Partial<Record<TimedPhase, number>> {
    return { ...this.#seconds };
  }

  /** Seconds of each use of the engine since `reset`. */
  get engineSeconds(): EngineSeconds {
    return this.#engineTime.seconds;
  }

  /** Whether the weights belong to the newest finished iteration: always, except during an update. */
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
