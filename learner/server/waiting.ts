/** Waits for results: reports the obstacle and since when, and gives up if the wait cannot end by itself. */
import type { Store } from "../store/store.ts";
import type { KnownActor } from "./actor-states.ts";
import { ServerError } from "./errors.ts";

export interface Blocked {
  /** Stable, for metrics and conditions. */
  reason: "NoActors" | "NoFreeSlots" | "Executing" | "Draining" | "NothingInFlight";
  /** For people. */
  message: string;
}

const some = (n: number, noun: string) => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** Returns why no further result has arrived yet. */
export function whatBlocks(
  { queued, running }: { queued: number; running: number },
  actors: readonly Pick<KnownActor, "connected" | "draining" | "slots">[],
): Blocked {
  const flight = `${some(queued, "execution")} queued, ${running} running`;
  if (queued + running === 0) return { reason: "NothingInFlight", message: "no execution is queued or running" };
  const connected = actors.filter((actor) => actor.connected);
  const serving = connected.filter((actor) => !actor.draining);
  if (connected.length === 0) {
    const then = running > 0 ? "; those that run are queued again when their leases end" : "";
    return { reason: "NoActors", message: `no actor is connected: ${flight}${then}` };
  }
  const total = serving.reduce((sum, actor) => sum + actor.slots, 0);
  const slots = some(total, "slot");
  if (running > 0)
    return { reason: "Executing", message: `programs run on ${some(connected.length, "actor")}, ${slots}: ${flight}` };
  if (serving.length === 0)
    return { reason: "Draining", message: `every connected actor (${connected.length}) is draining: ${flight}` };
  return { reason: "NoFreeSlots", message: `${some(serving.length, "actor")}, ${slots}, take no execution: ${flight}` };
}

export interface WaitOptions {
  /** `learner.stallSeconds`: gives up this long after a lease should have ended, because that is a fault of the learner. [300] */
  stallSeconds?: number;
  /** Gives up when no execution has run for this long. Infinity, because actors may take days to be created. [Infinity] */
  idleSeconds?: number;
  /** Interval of calls of `onBlocked`. [30] */
  reportSeconds?: number;
  /** `sinceMs`: Unix time since which this blocks. */
  onBlocked?: (blocked: Blocked, sinceMs: number) => void;
  signal?: AbortSignal;
  /** Another promise that ends the wait; its error is thrown. */
  other?: Promise<unknown>;
}

/** Interval between checks of the obstacle. */
const LOOK_SECONDS = 1;

/**
 * Resolves at the next lease, result, lost attempt or discarded execution, or when `other` does.
 * @throws ServerError `stalled` that names the obstacle; StoreError if the store fails; the reason of `signal` if it aborts
 */
export async function waitForChange(
  store: Store,
  actors: () => readonly KnownActor[],
  { stallSeconds = 300, idleSeconds = Infinity, reportSeconds = 30, onBlocked, signal, other }: WaitOptions,
): Promise<void> {
  signal?.throwIfAborted();
  const changed = Promise.withResolvers<void>();
  let blocked: Blocked | undefined;
  let sinceMs = Date.now();
  /** Since when no execution runs, and when `onBlocked` was last called, in milliseconds of `performance.now`. */
  let idleFrom = performance.now();
  let reportedAt = idleFrom;
  const look = () => {
    const now = performance.now();
    try {
      const counts = store.totals();
      const next = whatBlocks(counts, actors());
      if (blocked && next.reason !== blocked.reason) sinceMs = Date.now();
      blocked = next;
      if (counts.running > 0) idleFrom = now;
      if (now - reportedAt >= reportSeconds * 1000) {
        reportedAt = now;
        // With `other`, work is in progress that needs no execution.
        if (blocked.reason !== "NothingInFlight" || other === undefined) onBlocked?.(blocked, sinceMs);
      }
      const overdue = store.leases.overdueSeconds();
      const idle = (now - idleFrom) / 1000;
      const late = overdue >= stallSeconds ? `${Math.round(overdue)} s after the end of a lease` : undefined;
      const alone = idle >= idleSeconds ? `for ${Math.round(idle)} s` : undefined;
      if (late ?? alone) throw new ServerError("stalled", `no result ${late ?? alone}: ${blocked.message}`);
    } catch (error) {
      changed.reject(error);
    }
  };
  const looks = setInterval(look, 1000 * Math.min(LOOK_SECONDS, reportSeconds, stallSeconds, idleSeconds));
  const stop = () => changed.reject(signal?.reason);
  signal?.addEventListener("abort", stop);
  store.events.on("failed", changed.reject);
  const events = ["leased", "finished", "attemptLost", "revoked"] as const;
  const resolve = () => changed.resolve();
  other?.then(resolve, changed.reject);
  for (const event of events) store.events.on(event, resolve);
  try {
    await changed.promise;
  } finally {
    clearInterval(looks);
    signal?.removeEventListener("abort", stop);
    store.events.off("failed", changed.reject);
    for (const event of events) store.events.off(event, resolve);
  }
}
