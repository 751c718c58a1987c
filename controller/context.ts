/** What a reconcile works with: caches to read, a client to write, links to learners, a clock. */
import type { EventReason } from "./conditions.ts";
import type { Settings } from "./desired/settings.ts";
import type { Expectations } from "./expectations.ts";
import type { EventRecorder } from "./kube/event-recorder.ts";
import type { LearnerLinks } from "./learner-link.ts";
import type { Memories, RunMemory } from "./memory.ts";
import type { Observed } from "./observe.ts";
import type { Cache } from "./ownership.ts";
import type { RunMetrics } from "./run-metrics.ts";
import type { Client, Writes } from "./writes.ts";

export interface Context {
  cache: Cache;
  client: Client;
  links: Pick<LearnerLinks, "ensure" | "drop" | "observed" | "drainActors" | "suspend" | "reportTerminations">;
  events: Pick<EventRecorder, "record">;
  expectations: Expectations;
  memories: Memories;
  metrics: RunMetrics;
  settings: Settings;
  log: Log;
  /** Reconciles a run again: a call to its learner has come back. */
  wake: (key: string) => void;
  /** Unix milliseconds. */
  now: () => number;
}

export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** One run in one reconcile. */
export interface Pass {
  key: string;
  observed: Observed;
  memory: RunMemory;
  writes: Writes;
  context: Context;
  /** The controller's, with the run's own images (pin.ts). */
  settings: Settings;
  nowMs: number;
}

/** An event about the run of this pass. */
export function tell(
  { key, observed, context }: Pass,
  type: "Normal" | "Warning",
  reason: EventReason,
  note: string,
  action = "Reconcile",
): void {
  context.events.record(observed.run, { type, reason, note, action });
  context.log[type === "Warning" ? "warn" : "info"]({ run: key, reason }, note);
}

/**
 * A call to the learner, or to a webhook, in the background: no worker waits for it. One of each kind at a time; the run is
 * reconciled when it has come back.
 */
export function call({ key, memory, context }: Pass, kind: string, work: () => Promise<void>): void {
  if (memory.calls.has(kind)) return;
  memory.calls.add(kind);
  work()
    .catch((error: Error) =>
      context.log.warn({ run: key, kind, error: error.message }, "a call in the background failed"),
    )
    .finally(() => {
      memory.calls.delete(kind);
      context.wake(key);
    });
}
