/** Gives queued executions to actors' free slots. */
import type { Leases } from "../store/leases.ts";
import type { LeasedExecution } from "../store/types.ts";

/** An actor's stream, as far as leases go to it. */
export interface Taker {
  readonly actor: string;
  readonly freeSlots: number;
  lease(execution: LeasedExecution): void;
}

/** Leases that are committed together: a commit waits for the disk, and the first of many actors for the last. */
const LEASES_PER_COMMIT = 64;

/** One at a time to whoever has most slots free. */
export function deal(leases: Leases, takers: Iterable<Taker>): void {
  if (!leases.attempts.hasQueued()) return;
  const places: { taker: Taker; room: number }[] = [];
  for (const taker of takers) for (let room = taker.freeSlots; room > 0; room--) places.push({ taker, room });
  places.sort((a, b) => b.room - a.room);
  for (let from = 0; from < places.length; from += LEASES_PER_COMMIT) {
    const some = places.slice(from, from + LEASES_PER_COMMIT);
    const leased = leases.takeAll(some.map(({ taker }) => taker.actor));
    for (const [index, execution] of leased.entries()) some[index]!.taker.lease(execution);
    if (leased.length < some.length) return;
  }
}
