/** The running attempts with their deadlines, in memory, so that a heartbeat costs no write. */
import type { AttemptKey, HeldAttempt } from "./types.ts";

export interface Lease extends HeldAttempt {
  /** Unix milliseconds. */
  leasedAt: number;
  /** Unix milliseconds. Heartbeats move it, to at most `endAt`. */
  deadline: number;
  endAt: number;
  /** How long the program had run at the last heartbeat. */
  elapsedSeconds?: number;
}

export class RunningAttempts {
  readonly #byFence = new Map<string, Lease>();
  /** Leases by actor: with a thousand actors a search among all leases would be slow. */
  readonly #byActor = new Map<string, Set<Lease>>();

  add(lease: Lease): void {
    this.delete(lease.fence);
    this.#byFence.set(lease.fence, lease);
    const own = this.#byActor.get(lease.actor) ?? new Set();
    this.#byActor.set(lease.actor, own.add(lease));
  }

  delete(fence: string): void {
    const lease = this.#byFence.get(fence);
    if (lease === undefined) return;
    this.#byFence.delete(fence);
    const own = this.#byActor.get(lease.actor)!;
    own.delete(lease);
    if (own.size === 0) this.#byActor.delete(lease.actor);
  }

  get(fence: string): Lease | undefined {
    return this.#byFence.get(fence);
  }

  find(actor: string, { fence, execution, number }: AttemptKey): Lease | undefined {
    const lease = this.#byFence.get(fence);
    return lease?.actor === actor && lease.execution === execution && lease.number === number ? lease : undefined;
  }

  all(): Lease[] {
    return [...this.#byFence.values()];
  }

  of(actor: string): Lease[] {
    return [...(this.#byActor.get(actor) ?? [])];
  }
}
