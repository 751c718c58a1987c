/** Decides when to write a run's status, and records the events of a change. */
import type { TrainingRunStatus } from "../../../crds/trainingrun.ts";
import { type Look, tell } from "../context.ts";
import { TRAINING_RUN } from "../kube/resources.ts";
import { finalPhase } from "../lifecycle.ts";
import { isLearnerUp } from "../observe.ts";
import type { StepResult } from "../steps.ts";
import { announcements, findCondition } from "./conditions.ts";
import { evaluationAnnouncements } from "./evaluation-status.ts";
import { changeOf, statusWaitSeconds } from "./status-writes.ts";

/** Time for which a controller that has just started tries to reach a learner before it reports the learner as absent. */
export const HEAR_SECONDS = 15;
/** A learner that is silent for less than this is not reported, because a restarted controller has to connect first. */
const RECONNECT_SECONDS = 10;

/**
 * Returns whether this process has not heard the learner yet, but the one before it had. The status then stays; otherwise every start of a
 * controller would set each run to not ready and back.
 */
export function isUnheard({ observed: { run, link, learnerPod }, nowMs }: Look): boolean {
  const wasThere = findCondition(run.status?.conditions, "LearnerAvailable")?.status === "True";
  if (!wasThere || !isLearnerUp(learnerPod) || link?.status) return false;
  return nowMs - (link?.sinceMs ?? nowMs) < HEAR_SECONDS * 1000;
}

/** `due`: write the status now. `againSeconds`: time until a status that is held back may be written. */
export function holdStatus(look: Look, desired: TrainingRunStatus): StepResult & { due?: boolean } {
  const { observed, memory, context, nowMs } = look;
  const change = changeOf(observed.run.status ?? {}, desired);
  if (change === "none") return {};
  const unheardSinceMs = reconnectingSinceMs(look);
  const remember = { unheardSinceMs };
  const reconnectMs = unheardSinceMs === undefined ? 0 : unheardSinceMs + RECONNECT_SECONDS * 1000 - nowMs;
  if (reconnectMs > 0) return { remember, againSeconds: reconnectMs / 1000 };
  const waitSeconds = statusWaitSeconds(change, {
    sinceSeconds: (nowMs - memory.statusWrittenMs) / 1000,
    ownSeconds: memory.statusTokens.secondsUntilNext(),
    hasSpare: context.client.hasSpare,
  });
  return waitSeconds > 0 ? { remember, againSeconds: waitSeconds } : { remember, due: true };
}

export async function writeStatus(look: Look, desired: TrainingRunStatus): Promise<StepResult> {
  const { observed, memory, writes, nowMs } = look;
  const { run } = observed;
  const before = run.status ?? {};
  memory.statusTokens.reserveSeconds();
  await writes.applyStatus(TRAINING_RUN, run, desired);
  const told = announcements(desired.conditions ?? [], before.conditions ?? []);
  for (const { type, reason, message } of [...told, ...evaluationAnnouncements(desired, before)])
    tell(look, type, reason, message);
  return { remember: { statusWrittenMs: nowMs } };
}

/** Returns the time since which the controller has been reconnecting to a learner; the learner's last status stays valid for a while. */
function reconnectingSinceMs({ observed, memory, nowMs }: Look): number | undefined {
  const { run, link, learnerPod } = observed;
  const available = findCondition(run.status?.conditions, "LearnerAvailable")?.status === "True";
  const goesOn = !run.spec.suspend && finalPhase(observed) === undefined;
  if (!available || !goesOn || !isLearnerUp(learnerPod) || link?.connected) return undefined;
  return memory.unheardSinceMs ?? nowMs;
}
