/** The attempts that run, with their deadlines, in memory: a heartbeat costs no write. By fence and by actor. */
import type { AttemptKey, HeldAttempt } from "./types.ts";

export interface Lease extends HeldAttempt {
  /** Unix milliseconds. */
  leasedAt: number;
  /** Unix milliseconds; heartbeats move it on, to `endAt` at most. */
  deadline: number;
  endAt: number;
  /** As of the newest heartbeat. */
  elapsedSeconds?: number;
}

export class RunningAttempts {
  readonly #byFence = new Map<string, Lease>();
  /** With a thousand actors nobody's can be looked for among all. */
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

  has(fence: string): boolean {
    return this.#byFence.has(fence);
  }

  get(fence: string): Lease | undefined {
    return this.#byFence.get(fence);
  }

  /** The lease of exactly this attempt by this actor. */
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

  countOf(actor: string): number {
    return this.#byActor.get(actor)?.size ?? 0;
  }
}
