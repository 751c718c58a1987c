/**
 * Finds lost attempts that the programs themselves caused. The kernel can kill a sandbox for memory before the sandbox's own watch does:
 * the actor then only sees that the sandbox has ended and reports LOST, while the container's termination says `OOMKilled`. Either may
 * arrive first. A termination explains at most one loss: of the same actor and slot, of an attempt that ran when the container ended.
 */
import type { AttemptKey } from "../store/types.ts";
import type { ResultHeader } from "./messages.ts";

export interface Termination {
  actor: string;
  slot: number;
  /** Kubernetes' reason, e.g. `OOMKilled`. */
  reason: string;
  exitCode: number;
  /** Unix milliseconds, by the node's clock, whole seconds. */
  finishedAtMs: number;
}

export interface LostAttempt {
  actor: string;
  slot: number;
  attempt: AttemptKey;
  /** The actor's report; its outcome is LOST. */
  header: ResultHeader;
  /** Unix milliseconds, by the learner's clock. */
  leasedAtMs: number;
  lostAtMs: number;
}

/** A loss and a termination that are further apart are unrelated. */
const MATCH_SECONDS = 120;
/** Largest assumed difference between the clocks of node and learner. */
const CLOCK_SKEW_SECONDS = 5;

export const isOutOfMemory = ({ reason }: Termination): boolean => reason === "OOMKilled";

export class Terminations {
  /** How many losses, and how many terminations, are remembered; the oldest are forgotten first. */
  readonly #remembered: number;
  #losses: LostAttempt[] = [];
  #terminations: Termination[] = [];
  /** Keys of all reported terminations, because the controller repeats its reports. */
  readonly #seen = new Set<string>();

  constructor({ remembered = 1000 } = {}) {
    this.#remembered = remembered;
  }

  /** Handles a lost attempt. @returns the termination of its sandbox; undefined if none is known yet */
  lost(loss: LostAttempt): Termination | undefined {
    const cause = closest(this.#terminations, (it) => this.#distanceMs(loss, it));
    if (cause === undefined) this.#losses = [...this.#losses, loss].slice(-this.#remembered);
    else this.#terminations = this.#terminations.filter((it) => it !== cause);
    return cause;
  }

  /** Handles a container's termination. @returns the loss that it explains; undefined if none is known yet */
  reported(termination: Termination): LostAttempt | undefined {
    const { actor, slot, finishedAtMs } = termination;
    const key = `${actor} ${slot} ${finishedAtMs}`;
    if (this.#seen.has(key)) return undefined;
    this.#seen.add(key);
    for (const oldest of this.#seen) {
      if (this.#seen.size <= 4 * this.#remembered) break;
      this.#seen.delete(oldest);
    }
    const loss = closest(this.#losses, (it) => this.#distanceMs(it, termination));
    if (loss === undefined) this.#terminations = [...this.#terminations, termination].slice(-this.#remembered);
    else this.#losses = this.#losses.filter((it) => it !== loss);
    return loss;
  }

  /** Returns the milliseconds between the two; infinity if the termination cannot have caused the loss. */
  #distanceMs(loss: LostAttempt, termination: Termination): number {
    if (loss.actor !== termination.actor || loss.slot !== termination.slot) return Infinity;
    const startedLater = loss.leasedAtMs > termination.finishedAtMs + 1000 * (1 + CLOCK_SKEW_SECONDS);
    const distanceMs = Math.abs(loss.lostAtMs - termination.finishedAtMs);
    return startedLater || distanceMs > 1000 * MATCH_SECONDS ? Infinity : distanceMs;
  }
}

function closest<T>(items: readonly T[], distance: (item: T) => number): T | undefined {
  const possible = items.filter((item) => distance(item) < Infinity);
  return possible.sort((a, b) => distance(a) - distance(b))[0];
}
