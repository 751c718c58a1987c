/** The context of a reconcile: caches to read, a client to write, links to learners, a clock. */

import type { Claims } from "./claims/claims.ts";
import type { Run } from "./desired/names.ts";
import { withNewerFields } from "./desired/newer-fields.ts";
import type { Settings } from "./desired/settings.ts";
import type { EventRecorder } from "./kube/runtime/event-recorder.ts";
import { type Memories, type Remembers, type RunMemory, sliceOf } from "./memory.ts";
import { type Observed, observe } from "./observe.ts";
import type { LearnerLinks } from "./parts/learner/learner-link.ts";
import { pinnedImages, pinnedSettings } from "./pin.ts";
import { merged, type Runtime, runtimeOf, runtimeRefusal } from "./runtimes/effective.ts";
import type { Runtimes } from "./runtimes/runtimes.ts";
import { type EventReason, eventOf } from "./status/conditions.ts";
import type { RunMetrics } from "./status/run-metrics.ts";
import type { Call, StepResult } from "./steps.ts";
import type { Expectations } from "./writes/expectations.ts";
import type { Cache } from "./writes/ownership.ts";
import { type Client, Writes } from "./writes/writes.ts";

export interface Context {
  cache: Cache;
  claims: Claims;
  client: Client;
  links: Pick<LearnerLinks, "ensure" | "drop" | "observed" | "drainActors" | "suspend" | "reportTerminations">;
  events: Pick<EventRecorder, "record">;
  expectations: Expectations;
  memories: Memories;
  metrics: RunMetrics;
  runtimes: Pick<Runtimes, "get" | "refusal">;
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

/** One run in one reconcile, as one part sees it. */
export interface Look<Memory = unknown> {
  key: string;
  /** The run as it is stored, without the defaults of its runtime. */
  stored: Run;
  /** The run's TrainingRuntime; undefined: it names none, or there is none of this name. */
  runtime: Runtime | undefined;
  observed: Observed;
  /** The part's slice. It changes whenever a result or a call of the part remembers something. */
  memory: Memory;
  /** Kinds of the calls that have not returned. */
  calls: Set<string>;
  writes: Writes;
  context: Context;
  /** The controller's settings, with the run's own images (pin.ts). */
  settings: Settings;
  nowMs: number;
}

/** Observes a run. The look's memory is the run's; `lookOf` returns the look of a part. */
export function lookAt(key: string, stored: Run, context: Context): Look<RunMemory> {
  const nowMs = context.now();
  const memory = context.memories.of(key, stored);
  const own = withNewerFields(stored);
  const kueue = context.settings.kueue ?? false;
  const seen = observe(own, context.cache, context.links.observed(key), { kueue, nowMs });
  const runtime = runtimeOf(own, context, pinnedImages(seen) !== undefined);
  const run = merged(own, runtime?.spec);
  const observed = { ...seen, run, refusal: runtimeRefusal(own, run, runtime, context, memory) };
  const writes = new Writes(run, { ...context, applied: memory.applied, kept: memory.kept });
  const settings = pinnedSettings(observed, context.settings);
  return { key, stored, runtime, observed, memory, calls: memory.calls, writes, context, settings, nowMs };
}

export function lookOf<Memory extends object>(look: Look<RunMemory>, owner: Remembers<Memory>): Look<Memory> {
  return { ...look, memory: sliceOf(look.memory, owner, look.nowMs) };
}

/** Records an event about the run. */
export function recordEvent({ key, observed, context }: Look, reason: EventReason, note: string): void {
  const event = eventOf(reason);
  context.events.record(observed.run, { ...event, note });
  context.log[event.type === "Warning" ? "warn" : "info"]({ run: key, reason }, note);
}

/** Applies a result: stores the memory's changes, starts the call, then throws the error. No other function changes the memory. */
export function settle<Memory extends object>(look: Look<Memory>, { remember, call, error }: StepResult<Memory>): void {
  Object.assign(look.memory, remember);
  if (call) start(look, call);
  if (error !== undefined) throw error;
}

/** Starts a call in the background, so no worker waits for it. The run is reconciled when the call has returned. */
function start<Memory extends object>(
  { key, memory, calls, context }: Look<Memory>,
  { kind, work }: Call<Memory>,
): void {
  if (calls.has(kind)) return;
  calls.add(kind);
  work()
    .then((changes) => Object.assign(memory, changes))
    .catch((error: Error) =>
      context.log.warn({ run: key, kind, error: error.message }, "a call in the background failed"),
    )
    .finally(() => {
      calls.delete(kind);
      context.wake(key);
    });
}
