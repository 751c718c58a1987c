/** Asks the learner for a last checkpoint before it is removed, and limits the wait. */

import { type Look, recordEvent } from "../../context.ts";
import { learnerPhase } from "../../observe.ts";
import type { Finding } from "../../status/conditions.ts";
import type { StepResult } from "../../steps.ts";
import { drainSeconds } from "../actors/scale.ts";
import type { Admission } from "../admission/queue.ts";
import type { Derived } from "./derived.ts";
import { hasLearner, type Suspension } from "./lifecycle.ts";

export interface LifecycleMemory {
  suspension?: Suspension | undefined;
  /** Time since which the learner has stopped without being asked to. */
  stoppedSinceMs?: number | undefined;
  derived?: Derived | undefined;
}

/** Time for the Deployment to replace a learner that stopped unasked; after it no replacement is expected. */
const STOPPED_SECONDS = 20;

/** Waits for the checkpoint. `againSeconds` is the time until the end of the wait. */
export function suspend(look: Look<LifecycleMemory>, queue: Admission): StepResult<LifecycleMemory> {
  const { observed, memory, nowMs } = look;
  const { run, deployment } = observed;
  const running = (deployment?.spec?.replicas ?? 0) > 0;
  // If an earlier controller process began the suspension, only the learner knows of it.
  const stopped = running && !run.spec.suspend && learnerPhase(observed.link) === "STOPPED";
  const stoppedSinceMs = stopped ? (memory.stoppedSinceMs ?? nowMs) : undefined;
  const forLong = stoppedSinceMs !== undefined && nowMs - stoppedSinceMs >= STOPPED_SECONDS * 1000;
  const evicted = running && queue.state === "waiting" ? queue.finding : undefined;
  if (!run.spec.suspend && !evicted && !(memory.suspension && hasLearner(observed)) && !forLong) {
    const remember = { stoppedSinceMs, suspension: undefined };
    return { remember, againSeconds: stopped ? STOPPED_SECONDS : undefined };
  }
  const result = suspendLearner(look, suspensionOptions(look, evicted));
  return { ...result, remember: { stoppedSinceMs, ...result.remember } };
}

interface SuspensionOptions {
  reason: string;
  /** Start of the limited wait, in Unix milliseconds. */
  fromMs: number;
  /** Time for running executions to end. */
  drainSeconds: number;
}

/** @param evicted the nodes are needed elsewhere, so running executions are not waited for and run again */
function suspensionOptions({ observed: { run }, nowMs }: Look, evicted?: Finding): SuspensionOptions {
  if (evicted && !run.spec.suspend) return { reason: evicted.message, fromMs: nowMs, drainSeconds: 0 };
  return { reason: "spec.suspend is true", fromMs: nowMs, drainSeconds: drainSeconds(run) };
}

/** Asks the learner to stop, once it can be reached. @returns no `againSeconds` if the learner can be removed */
export function suspendLearner(
  look: Look<LifecycleMemory>,
  { reason, fromMs, drainSeconds }: SuspensionOptions,
): StepResult<LifecycleMemory> {
  const { key, observed, memory, context, nowMs } = look;
  const { checkpoint } = observed.run.spec.learner;
  const waitSeconds = drainSeconds + checkpoint.waitSeconds;
  const suspension = memory.suspension ?? {
    startedMs: fromMs,
    deadlineMs: fromMs + waitSeconds * 1000,
    done: false,
  };
  if (suspension.done) return {};
  const done = { remember: { suspension: { ...suspension, done: true } } };
  if (!learnerRuns(look)) return done;
  if (nowMs >= suspension.deadlineMs) {
    const note = `the learner has not written a checkpoint within ${waitSeconds} s (actors.drainSeconds and learner.checkpoint.waitSeconds) and is stopped; a resume continues from its newest checkpoint`;
    recordEvent(look, "CheckpointNotWaitedFor", note);
    return done;
  }
  const work = async (): Promise<LifecycleMemory> => {
    const { checkpoint: written, running } = await context.links.suspend(key, { reason, drainSeconds });
    const left = running ? `; ${running} executions did not end in time and are run again` : "";
    const where = written
      ? `the checkpoint of iteration ${written.iteration} is on the volume`
      : "no iteration was finished";
    recordEvent(look, "CheckpointWritten", `${where}${left}`);
    // Another suspension may have begun meanwhile.
    if (memory.suspension?.startedMs !== suspension.startedMs) return {};
    return { suspension: { ...memory.suspension, done: true, ...(written && { checkpoint: written }) } };
  };
  return {
    remember: { suspension },
    call: observed.link?.connected ? { kind: "suspend", work } : undefined,
    againSeconds: (suspension.deadlineMs - nowMs) / 1000,
  };
}

/** Whether there is a learner process to ask. */
function learnerRuns({ observed: { deployment, learnerPod } }: Look): boolean {
  if ((deployment?.spec?.replicas ?? 0) === 0) return false;
  return learnerPod?.status?.containerStatuses?.some(({ state }) => state?.running) ?? false;
}
