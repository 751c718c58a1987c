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

/** Why `wanted` finished samples are not there yet. */
export function whatBlocks(
  counts: { queued: number; running: number; completedUnconsumed: number; lost: number },
  actors: readonly ActorView[],
  wanted: number,
): Blocked {
  const { queued, running, completedUnconsumed, lost } = counts;
  const so = `${completedUnconsumed} of ${wanted} finished, ${queued} queued, ${running} running`;
  const connected = actors.filter((actor) => actor.connected);
  const serving = connected.filter((actor) => !actor.draining);
  if (queued + running === 0)
    return { reason: "NothingInFlight", message: `nothing is queued or running (${so}, ${lost} lost)` };
  if (connected.length === 0) {
    const then = running > 0 ? "; those that run go back to the queue when their leases end" : "";
    return { reason: "NoActors", message: `no actor is connected (${so})${then}` };
  }
  if (serving.length === 0 && running === 0)
    return { reason: "Draining", message: `all ${connected.length} connected actors are draining (${so})` };
  const slots = serving.reduce((sum, actor) => sum + actor.slots, 0);
  if (running === 0)
    return {
      reason: "NoFreeSlots",
      message: `${serving.length} actors with ${slots} slots take no executions (${so})`,
    };
  return { reason: "Executing", message: `programs run on ${connected.length} actors with ${slots} slots (${so})` };
}

export interface WaitOptions {
  /** Samples of this purpose are waited for. */
  purpose?: string;
  /** Only samples that iteration `since` or later wrote. */
  since?: number;
  /**
   * Deadline: gives up when for this long no execution finished, no attempt was lost and none was started. Longer than
   * the longest execution may take.
   */
  stallSeconds: number;
  /** Says what blocks after this long without progress, and again each time it has passed. */
  reportSeconds?: number;
  onBlocked?: (blocked: Blocked, seconds: number) => void;
  signal?: AbortSignal;
}

/**
 * Resolves when `wanted` finished, unused samples can be drawn, or as soon as nothing is left in flight that could
 * become one (lost executions): then with fewer.
 * @returns how many can be drawn
 * @throws ServerError `stalled` naming what blocks; `stopped` if the signal fires
 */
export function waitForFinished(
  store: Store,
  actors: () => readonly ActorView[],
  wanted: number,
  options: WaitOptions,
): Promise<number> {
  const { purpose = "training", since = 0, stallSeconds, reportSeconds = 30, onBlocked, signal } = options;
  return new Promise((resolve, reject) => {
    let progressAt = performance.now();
    let reports = 0;
    let mark = "";
    const finish = (settle: () => void) => {
      clearInterval(timer);
      store.events.off("finished", check);
      store.events.off("attemptLost", check);
      store.events.off("revoked", check);
      signal?.removeEventListener("abort", stop);
      settle();
    };
    const stop = () =>
      finish(() => reject(new ServerError("stopped", "the learner stops: the wait for results is over")));
    const check = () => {
      let there: number;
      let counts: ReturnType<Store["counts"]>;
      try {
        there = store.takeable({ purpose, since });
        counts = store.counts(purpose);
      } catch (error) {
        finish(() => reject(error));
        return;
      }
      if (there >= wanted || counts.queued + counts.running === 0) {
        finish(() => resolve(there));
        return;
      }
      const newMark = [there, counts.queued, counts.running, counts.lost, counts.retried, counts.discarded].join();
      if (newMark !== mark) {
        mark = newMark;
        progressAt = performance.now();
        reports = 0;
      }
      const seconds = (performance.now() - progressAt) / 1000;
      if (seconds < Math.min(stallSeconds, (reports + 1) * reportSeconds)) return;
      const blocked = whatBlocks({ ...counts, completedUnconsumed: there }, actors(), wanted);
      reports++;
      onBlocked?.(blocked, seconds);
      if (seconds < stallSeconds) return;
      const message = `no progress for ${Math.round(seconds)} s: ${blocked.message}`;
      finish(() => reject(new ServerError("stalled", message)));
    };
    const timer = setInterval(check, Math.min(1, stallSeconds / 4, reportSeconds / 4) * 1000);
    store.events.on("finished", check);
    store.events.on("attemptLost", check);
    store.events.on("revoked", check);
    signal?.addEventListener("abort", stop);
    if (signal?.aborted) stop();
    else check();
  });
}
