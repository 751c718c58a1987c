/** Waiting for results: what blocks is named, with the time since which it does, and what does not end by itself ends the wait. */
import type { Store } from "../store/store.ts";
import { ServerError } from "./errors.ts";

export interface Blocked {
  /** Stable, for metrics and conditions. */
  reason: "NoActors" | "NoFreeSlots" | "Executing" | "Draining" | "NothingInFlight";
  /** For a person. */
  message: string;
}

export interface ActorView {
  name: string;
  connected: boolean;
  draining: boolean;
  slots: number;
  running: number;
}

const some = (n: number, noun: string) => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** Why no further result is there yet. */
export function whatBlocks(counts: { queued: number; running: number }, actors: readonly ActorView[]): Blocked {
  const { queued, running } = counts;
  const flight = `${some(queued, "execution")} queued, ${running} running`;
  if (queued + running === 0) return { reason: "NothingInFlight", message: "no execution is queued or running" };
  const connected = actors.filter((actor) => actor.connected);
  const serving = connected.filter((actor) => !actor.draining);
  if (connected.length === 0) {
    const then = running > 0 ? "; those that run are queued again when their leases end" : "";
    return { reason: "NoActors", message: `no actor is connected: ${flight}${then}` };
  }
  const slots = some(
    serving.reduce((sum, actor) => sum + actor.slots, 0),
    "slot",
  );
  if (running > 0)
    return { reason: "Executing", message: `programs run on ${some(connected.length, "actor")}, ${slots}: ${flight}` };
  if (serving.length === 0)
    return { reason: "Draining", message: `every connected actor (${connected.length}) is draining: ${flight}` };
  return { reason: "NoFreeSlots", message: `${some(serving.length, "actor")}, ${slots}, take no execution: ${flight}` };
}

export interface WaitOptions {
  /**
   * `learner.stallSeconds`: gives up when an attempt has been overdue for so long, its lease over and not ended. The server
   * ends such leases every second, so that this is a fault of ours. [300]
   */
  stallSeconds?: number;
  /** Gives up when no execution has run for so long. Infinity: actors are made by somebody who may take days. [Infinity] */
  idleSeconds?: number;
  /** Says what blocks after this long, and each time it has passed again. [30] */
  reportSeconds?: number;
  /** `sinceMs`: Unix time since which this blocks. */
  onBlocked?: (blocked: Blocked, sinceMs: number) => void;
  signal?: AbortSignal;
}

/** How often a wait looks at what blocks it. */
const LOOK_SECONDS = 1;

/**
 * Resolves at the next result, lost attempt or discarded execution.
 * @throws ServerError `stalled` naming what blocks; StoreError if the store fails; the reason of `signal` if it fires
 */
export async function waitForChange(
  store: Store,
  actors: () => readonly ActorView[],
  { stallSeconds = 300, idleSeconds = Infinity, reportSeconds = 30, onBlocked, signal }: WaitOptions,
): Promise<void> {
  signal?.throwIfAborted();
  const changed = Promise.withResolvers<void>();
  let blocked = whatBlocks(store.totals(), actors());
  let sinceMs = Date.now();
  /** Since when no execution runs, and when was last told what blocks; `performance.now`. */
  let idleFrom = performance.now();
  let reportedAt = performance.now();
  const look = () => {
    const now = performance.now();
    try {
      const counts = store.totals();
      const next = whatBlocks(counts, actors());
      if (next.reason !== blocked.reason) sinceMs = Date.now();
      blocked = next;
      if (counts.running > 0) idleFrom = now;
      if (now - reportedAt >= reportSeconds * 1000) {
        reportedAt = now;
        onBlocked?.(blocked, sinceMs);
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
  const events = ["finished", "attemptLost", "revoked"] as const;
  for (const event of events) store.events.on(event, changed.resolve as () => void);
  try {
    await changed.promise;
  } finally {
    clearInterval(looks);
    signal?.removeEventListener("abort", stop);
    store.events.off("failed", changed.reject);
    for (const event of events) store.events.off(event, changed.resolve as () => void);
  }
}
