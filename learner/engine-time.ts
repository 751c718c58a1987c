import type { EngineSeconds } from "../proto/engine-seconds.ts";

export type EngineUse = keyof EngineSeconds;

/** Accounts each second of the engine to one use. */
export class EngineTime {
  #use: EngineUse = "idleOther";
  #sinceMs = 0;
  #seconds = nothing();
  readonly #now: () => number;

  /** @param now returns milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#sinceMs = now();
  }

  /** Starts to count from now. */
  restart(): void {
    this.is(this.#use);
    this.#seconds = nothing();
  }

  /** Sets the engine's use from now on. */
  is(use: EngineUse): void {
    const nowMs = this.#now();
    this.#seconds[this.#use] += (nowMs - this.#sinceMs) / 1000;
    this.#use = use;
    this.#sinceMs = nowMs;
  }

  /** Returns the seconds of each use since `restart`; their sum is the time since then. */
  get seconds(): EngineSeconds {
    this.is(this.#use);
    return { ...this.#seconds };
  }
}

const nothing = (): Record<EngineUse, number> => ({
  generating: 0,
  updating: 0,
  idleActors: 0,
  idlePrograms: 0,
  idleStaleness: 0,
  idleOther: 0,
});
