/** A last checkpoint before the learner goes: asked for, waited for, but not for ever. */
import type { Finding } from "./conditions.ts";
import { call, type Pass, tell } from "./context.ts";
import { drainSeconds } from "./scale.ts";

export interface SuspensionOptions {
  reason: string;
  /** Unix milliseconds from which the bounded wait counts. */
  fromMs: number;
  /** What running executions are given. */
  drainSeconds: number;
}

/** @param evicted somebody waits for the nodes: what runs is not waited for, and is run again */
export function suspensionOptions({ observed: { run }, nowMs }: Pass, evicted?: Finding): SuspensionOptions {
  if (evicted && !run.spec.suspend) return { reason: evicted.message, fromMs: nowMs, drainSeconds: 0 };
  return { reason: "spec.suspend is true", fromMs: nowMs, drainSeconds: drainSeconds(run) };
}

/**
 * Asks the learner to stop, once it can be reached, and remembers how it went in `memory.suspension`.
 *
 * @returns the seconds until the wait is over; 0: the learner may go
 */
export function suspendLearner(pass: Pass, { reason, fromMs, drainSeconds }: SuspensionOptions): number {
  const { key, observed, memory, context, nowMs } = pass;
  const { checkpoint } = observed.run.spec.learner;
  memory.suspension ??= {
    startedMs: fromMs,
    deadlineMs: fromMs + (drainSeconds + checkpoint.waitSeconds) * 1000,
    calling: false,
    done: false,
  };
  const suspension = memory.suspension;
  if (suspension.done) return 0;
  if (!learnerRuns(pass)) {
    suspension.done = true;
    return 0;
  }
  if (nowMs >= suspension.deadlineMs) {
    suspension.done = true;
    tell(
      pass,
      "Warning",
      "CheckpointNotWaitedFor",
      `the learner has not written a checkpoint within ${drainSeconds + checkpoint.waitSeconds} s (actors.drainSeconds and learner.checkpoint.waitSeconds) and is stopped; a resume goes on from its newest one`,
      "Suspend",
    );
    return 0;
  }
  if (observed.link?.connected && !suspension.calling) {
    suspension.calling = true;
    call(pass, "suspend", async () => {
      try {
        const { checkpoint: written, running } = await context.links.suspend(key, { reason, drainSeconds });
        suspension.done = true;
        if (written) suspension.checkpoint = written;
        const left = running ? `; ${running} executions did not end in time and are run again` : "";
        const where = written
          ? `the checkpoint of iteration ${written.iteration} is on the volume`
          : "no iteration was finished";
        tell(pass, "Normal", "CheckpointWritten", `${where}${left}`, "Suspend");
      } finally {
        suspension.calling = false;
      }
    });
  }
  return (suspension.deadlineMs - nowMs) / 1000;
}

/** Whether there is a process to ask. */
function learnerRuns({ observed: { deployment, learnerPod } }: Pass): boolean {
  if ((deployment?.spec?.replicas ?? 0) === 0) return false;
  return learnerPod?.status?.containerStatuses?.some(({ state }) => state?.running) ?? false;
}
