/**
 * Which lost attempts the programs themselves brought about: what actors lost, matched with what Kubernetes says of
 * their sandboxes' containers. Either may come first.
 *
 * The kernel can kill a sandbox for memory before its own watch does. The actor then only sees that the sandbox is gone
 * and reports LOST; the container's termination says `OOMKilled`. Every termination explains at most one loss, of the
 * same actor and slot, of an attempt that ran when the container ended.
 */
import type { longrun } from "../../proto/service.ts";
import type { AttemptKey } from "../store/types.ts";

export interface Termination {
  actor: string;
  slot: number;
  /** As Kubernetes gives it. */
  reason: string;
  exitCode: number;
  /** Unix milliseconds, by the node's clock, whole seconds. */
  finishedAtMs: number;
}

export interface Loss {
  actor: string;
  slot: number;
  attempt: AttemptKey;
  /** What the actor reported; its outcome is LOST. */
  header: longrun.v1alpha1.ResultHeader.$Properties;
  /** Unix milliseconds, by the learner's clock. */
  leasedAtMs: number;
  lostAtMs: number;
}

export interface TerminationsOptions {
  /** A loss and a termination further apart have nothing to do with each other. [120] */
  matchSeconds?: number;
  /** How far the clocks of node and learner may differ. [5] */
  clockSkewSeconds?: number;
  /** Of each kind, so many are remembered; the oldest go first. [1000] */
  remembered?: number;
}

/** What Kubernetes calls a container that the kernel killed for memory. */
const OUT_OF_MEMORY = "OOMKilled";
export const isOutOfMemory = ({ reason }: Termination): boolean => reason === OUT_OF_MEMORY;

export class Terminations {
  readonly #options: Required<TerminationsOptions>;
  #losses: Loss[] = [];
  #terminations: Termination[] = [];
  /** Of all that were reported: the controller repeats itself. */
  readonly #seen = new Set<string>();

  constructor(options: TerminationsOptions = {}) {
    this.#options = { matchSeconds: 120, clockSkewSeconds: 5, remembered: 1000, ...options };
  }

  /** An attempt was lost. @returns what ended its sandbox, if that is known already; else the loss is remembered */
  lost(loss: Loss): Termination | undefined {
    const cause = closest(this.#terminations, (it) => this.#distanceMs(loss, it));
    if (cause === undefined) this.#losses = [...this.#losses, loss].slice(-this.#options.remembered);
    else this.#terminations = this.#terminations.filter((it) => it !== cause);
    return cause;
  }

  /** A container ended. @returns the loss that this explains, if that is known already; else it is remembered */
  reported(termination: Termination): Loss | undefined {
    const { actor, slot, finishedAtMs } = termination;
    const key = `${actor} ${slot} ${finishedAtMs}`;
    if (this.#seen.has(key)) return undefined;
    this.#seen.add(key);
    for (const oldest of this.#seen) {
      if (this.#seen.size <= 4 * this.#options.remembered) break;
      this.#seen.delete(oldest);
    }
    const loss = closest(this.#losses, (it) => this.#distanceMs(it, termination));
    if (loss === undefined) this.#terminations = [...this.#terminations, termination].slice(-this.#options.remembered);
    else this.#losses = this.#losses.filter((it) => it !== loss);
    return loss;
  }

  /** Undefined if the one cannot be the other's cause. */
  #distanceMs(loss: Loss, termination: Termination): number | undefined {
    if (loss.actor !== termination.actor || loss.slot !== termination.slot) return undefined;
    const { matchSeconds, clockSkewSeconds } = this.#options;
    const startedLater = loss.leasedAtMs > termination.finishedAtMs + 1000 * (1 + clockSkewSeconds);
    const distanceMs = Math.abs(loss.lostAtMs - termination.finishedAtMs);
    return startedLater || distanceMs > 1000 * matchSeconds ? undefined : distanceMs;
  }
}

function closest<T>(items: readonly T[], distance: (item: T) => number | undefined): T | undefined {
  let best: { item: T; distance: number } | undefined;
  for (const item of items) {
    const d = distance(item);
    if (d !== undefined && d < (best?.distance ?? Number.POSITIVE_INFINITY)) best = { item, distance: d };
  }
  return best?.item;
}
