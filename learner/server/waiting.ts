/** Waiting for results without waiting for ever: what blocks is named, and so is the end. */
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
   * The deadline: gives up after this long without a change. Longer than the longest execution may take, and than new
   * actors may take to start. [3600]
   */
  stallSeconds?: number;
  /** Says what blocks after this long, and each time it has passed again. [30] */
  reportSeconds?: number;
  onBlocked?: (blocked: Blocked, seconds: number) => void;
  signal?: AbortSignal;
}

/**
 * Resolves at the next result, lost attempt or discarded execution.
 * @throws ServerError `stalled` naming what blocks; StoreError if the store fails; the reason of `signal` if it fires
 */
export async function waitForChange(
  store: Store,
  actors: () => readonly ActorView[],
  { stallSeconds = 3600, reportSeconds = 30, onBlocked, signal }: WaitOptions,
): Promise<void> {
  signal?.throwIfAborted();
  const changed = Promise.withResolvers<void>();
  const since = performance.now();
  const look = () => {
    const seconds = (performance.now() - since) / 1000;
    try {
      const blocked = whatBlocks(store.totals(), actors());
      onBlocked?.(blocked, seconds);
      if (seconds >= stallSeconds)
        throw new ServerError("stalled", `no result for ${Math.round(seconds)} s: ${blocked.message}`);
    } catch (error) {
      changed.reject(error);
    }
  };
  const reports = setInterval(look, reportSeconds * 1000);
  const deadline = setTimeout(look, stallSeconds * 1000);
  const stop = () => changed.reject(signal?.reason);
  signal?.addEventListener("abort", stop);
  store.events.on("failed", changed.reject);
  const events = ["finished", "attemptLost", "revoked"] as const;
  for (const event of events) store.events.on(event, changed.resolve as () => void);
  try {
    await changed.promise;
  } finally {
    clearInterval(reports);
    clearTimeout(deadline);
    signal?.removeEventListener("abort", stop);
    store.events.off("failed", changed.reject);
    for (const event of events) store.events.off(event, changed.resolve as () => void);
  }
}
