/** Asks the learner for a last checkpoint before it is removed, and limits the wait. */

import { type Look, tell } from "../../context.ts";
import type { Changes } from "../../memory.ts";
import type { Finding } from "../../status/conditions.ts";
import type { StepResult } from "../../steps.ts";
import { drainSeconds } from "../actors/scale.ts";

export interface SuspensionOptions {
  reason: string;
  /** Start of the limited wait, in Unix milliseconds. */
  fromMs: number;
  /** Time for running executions to end. */
  drainSeconds: number;
}

/** @param evicted the nodes are needed elsewhere, so running executions are not waited for and run again */
export function suspensionOptions({ observed: { run }, nowMs }: Look, evicted?: Finding): SuspensionOptions {
  if (evicted && !run.spec.suspend) return { reason: evicted.message, fromMs: nowMs, drainSeconds: 0 };
  return { reason: "spec.suspend is true", fromMs: nowMs, drainSeconds: drainSeconds(run) };
}

/** Asks the learner to stop, once it can be reached. @returns no `againSeconds` if the learner can be removed */
export function suspendLearner(look: Look, { reason, fromMs, drainSeconds }: SuspensionOptions): StepResult {
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
    tell(
      look,
      "Warning",
      "CheckpointNotWaitedFor",
      `the learner has not written a checkpoint within ${waitSeconds} s (actors.drainSeconds and learner.checkpoint.waitSeconds) and is stopped; a resume continues from its newest checkpoint`,
      "Suspend",
    );
    return done;
  }
  const work = async (): Promise<Changes> => {
    const { checkpoint: written, running } = await context.links.suspend(key, { reason, drainSeconds });
    const left = running ? `; ${running} executions did not end in time and are run again` : "";
    const where = written
      ? `the checkpoint of iteration ${written.iteration} is on the volume`
      : "no iteration was finished";
    tell(look, "Normal", "CheckpointWritten", `${where}${left}`, "Suspend");
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
