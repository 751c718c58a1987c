/** Gives queued executions to actors' free slots. */
import type { Leases } from "../store/leases.ts";
import type { LeasedExecution } from "../store/types.ts";

/** The part of an actor's stream that takes leases. */
export interface Taker {
  readonly actor: string;
  readonly freeSlots: number;
  lease(execution: LeasedExecution): void;
}

/** So many leases go into one commit. More would save commits, but the first actor waits until all are on disk. */
const LEASES_PER_COMMIT = 64;

/** Leases one execution at a time to the actor with the most free slots. */
export function deal(leases: Leases, takers: Iterable<Taker>): void {
  if (!leases.attempts.hasQueued()) return;
  const places: { taker: Taker; room: number }[] = [];
  for (const taker of takers) for (let room = taker.freeSlots; room > 0; room--) places.push({ taker, room });
  places.sort((a, b) => b.room - a.room);
  for (let from = 0; from < places.length; from += LEASES_PER_COMMIT) {
    const some = places.slice(from, from + LEASES_PER_COMMIT);
    const leased = leases.takeAll(some.map(({ taker }) => taker.actor));
    for (const [index, execution] of leased.entries()) some[index].taker.lease(execution);
    if (leased.length < some.length) return;
  }
}
