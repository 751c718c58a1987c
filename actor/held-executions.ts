/** The attempts that an actor holds, from their leases to their acknowledgements, and the time that they keep its slots busy. */
import type { longrun } from "../proto/service.ts";
import type { HeldExecution } from "./hand-in.ts";
import { type Attempt, parseAttempt } from "./lease.ts";

const DEFAULT_HELD_PER_SLOT = 16;
const DEFAULT_HELD_BYTES = 1024 ** 3;

export interface HeldLimits {
  slots: number;
  /** Limits on unacknowledged results for each slot, in number and in bytes of submissions. Above them the actor takes no lease. */
  heldPerSlot?: number;
  heldBytes?: number;
}

const keyOf = ({ execution, number, fence }: Attempt): string => `${execution} ${number} ${fence}`;

export class HeldExecutions {
  readonly #limits: HeldLimits;
  readonly #held = new Map<string, HeldExecution>();
  readonly #startedAt = performance.now();
  /** When the programs that run now began. */
  readonly #busySince = new Map<HeldExecution, number>();
  /** Seconds of the programs that have ended. */
  #busySeconds = 0;

  constructor(limits: HeldLimits) {
    this.#limits = limits;
  }

  get all(): HeldExecution[] {
    return [...this.#held.values()];
  }

  get size(): number {
    return this.#held.size;
  }

  /** Returns the number of programs that run now, also of attempts that are no longer held. */
  get running(): number {
    return this.#busySince.size;
  }

  /** Returns how many more attempts the actor can hold. */
  get room(): number {
    const { slots, heldPerSlot = DEFAULT_HELD_PER_SLOT, heldBytes = DEFAULT_HELD_BYTES } = this.#limits;
    let bytes = 0;
    for (const { result } of this.#held.values()) bytes += Number(result?.submission?.info.compressedBytes ?? 0);
    return bytes >= heldBytes ? 0 : Math.max(0, slots * heldPerSlot - this.#held.size);
  }

  /** Returns the held execution of an attempt that the learner names. */
  of(attempt: longrun.v1alpha1.Attempt.$Properties | null | undefined): HeldExecution | undefined {
    const parsed = parseAttempt(attempt);
    return parsed && this.#held.get(keyOf(parsed));
  }

  has(held: HeldExecution): boolean {
    return this.#held.get(keyOf(held.attempt)) === held;
  }

  /** Holds an attempt whose program begins now. */
  begin(attempt: Attempt): HeldExecution {
    const progress = { elapsedSeconds: 0, cpuSeconds: 0, memoryBytes: 0, markers: [] };
    const abort = new AbortController();
    const held = { attempt, abort, progress, damagedUploads: 0, waits: false, refusedForNow: false };
    this.#held.set(keyOf(attempt), held);
    this.#busySince.set(held, performance.now());
    return held;
  }

  /** The program has ended, and its slot is free. */
  end(held: HeldExecution): void {
    this.#busySeconds += (performance.now() - this.#busySince.get(held)!) / 1000;
    this.#busySince.delete(held);
  }

  delete(held: HeldExecution): void {
    this.#held.delete(keyOf(held.attempt));
  }

  heartbeat(): longrun.v1alpha1.Heartbeat.$Properties & { busySeconds: number; aliveSeconds: number } {
    const now = performance.now();
    let busySeconds = this.#busySeconds;
    for (const since of this.#busySince.values()) busySeconds += (now - since) / 1000;
    return {
      // Includes attempts that wait for their acknowledgement: an upload may take longer than a lease.
      running: this.all.map(({ attempt, progress }) => ({ attempt, ...progress })),
      busySeconds,
      aliveSeconds: (this.#limits.slots * (now - this.#startedAt)) / 1000,
    };
  }
}
