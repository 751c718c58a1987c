/** The context of a reconcile: caches to read, a client to write, links to learners, a clock. */

import type { Settings } from "./desired/settings.ts";
import type { EventRecorder } from "./kube/runtime/event-recorder.ts";
import { type Memories, type RunMemory, remember } from "./memory.ts";
import type { Observed } from "./observe.ts";
import type { LearnerLinks } from "./parts/learner/learner-link.ts";
import type { EventReason } from "./status/conditions.ts";
import type { RunMetrics } from "./status/run-metrics.ts";
import type { Call, StepResult } from "./steps.ts";
import type { Expectations } from "./writes/expectations.ts";
import type { Cache } from "./writes/ownership.ts";
import type { Client, Writes } from "./writes/writes.ts";

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
  /** Reconciles a run again because a call to its learner has returned. */
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
export interface Look {
  key: string;
  observed: Observed;
  /** The current memory. It changes whenever a step or a call remembers something. */
  memory: RunMemory;
  writes: Writes;
  context: Context;
  /** The controller's settings, with the run's own images (pin.ts). */
  settings: Settings;
  nowMs: number;
}

/** Records an event about the run. */
export function tell(
  { key, observed, context }: Look,
  type: "Normal" | "Warning",
  reason: EventReason,
  note: string,
  action = "Reconcile",
): void {
  context.events.record(observed.run, { type, reason, note, action });
  context.log[type === "Warning" ? "warn" : "info"]({ run: key, reason }, note);
}

/** Applies a step's result: stores the memory's changes, starts the call, then throws the error. No other function changes the memory. */
export function settle(look: Look, { remember: changes, call, error }: StepResult): void {
  if (changes) remember(look.memory, changes);
  if (call) start(look, call);
  if (error !== undefined) throw error;
}

/** Starts a call in the background, so no worker waits for it. The run is reconciled when the call has returned. */
function start({ key, memory, context }: Look, { kind, work }: Call): void {
  if (memory.calls.has(kind)) return;
  remember(memory, { calls: new Set([...memory.calls, kind]) });
  work()
    .then((changes) => remember(memory, changes))
    .catch((error: Error) =>
      context.log.warn({ run: key, kind, error: error.message }, "a call in the background failed"),
    )
    .finally(() => {
      remember(memory, { calls: new Set([...memory.calls].filter((it) => it !== kind)) });
      context.wake(key);
    });
}
