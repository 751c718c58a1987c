/** Decides when to write a run's status, and records the events of a change. */
import type { TrainingRunStatus } from "../../../crds/trainingrun.ts";
import { type Look, recordEvent, settle } from "../context.ts";
import { TRAINING_RUN } from "../kube/resources.ts";
import { TokenBucket } from "../kube/token-bucket.ts";
import type { Remembers } from "../memory.ts";
import { isLearnerUp } from "../observe.ts";
import { finalPhase } from "../parts/lifecycle/lifecycle.ts";
import type { StepResult } from "../steps.ts";
import { announcements, findCondition } from "./conditions.ts";
import { evaluationAnnouncements } from "./evaluation-status.ts";
import { changeOf, STATUS_BURST, STATUS_REFILL_SECONDS, statusWaitSeconds } from "./status-writes.ts";

/** Time for which a controller that has just started tries to reach a learner before it reports the learner as absent. */
const HEAR_SECONDS = 15;
/** A learner that is silent for less than this is not reported, because a restarted controller has to connect first. */
const RECONNECT_SECONDS = 10;

interface StatusMemory {
  writtenMs: number;
  /** Remaining budget of status writes; it has a state of its own. */
  tokens: TokenBucket;
  /** Time since which a running learner is not connected. */
  unheardSinceMs: number | undefined;
}

/** The owner of the memory of status writes. */
export const STATUS: Remembers<StatusMemory> = {
  initial: () => ({
    writtenMs: 0,
    tokens: new TokenBucket(1 / STATUS_REFILL_SECONDS, STATUS_BURST),
    unheardSinceMs: undefined,
  }),
};

/** Writes the status if it is due. `status`: the run's status now, whether or not it was written. */
export async function reconcileStatus(
  look: Look<StatusMemory>,
  desired: TrainingRunStatus,
): Promise<{ status: TrainingRunStatus; againSeconds?: number | undefined }> {
  if (isUnheard(look)) return { status: look.observed.run.status ?? {}, againSeconds: HEAR_SECONDS };
  const { due, ...result } = holdStatus(look, desired);
  settle(look, result);
  if (due) {
    await writeStatus(look, desired);
    settle(look, { remember: { writtenMs: look.nowMs } });
  }
  return { status: desired, againSeconds: result.againSeconds };
}

/**
 * Returns whether this process has not heard the learner yet, but the one before it had. The status then stays; otherwise every start of a
 * controller would set each run to not ready and back.
 */
function isUnheard({ observed: { run, link, learnerPod }, nowMs }: Look): boolean {
  const wasThere = findCondition(run.status?.conditions, "LearnerAvailable")?.status === "True";
  if (!wasThere || !isLearnerUp(learnerPod) || link?.status) return false;
  return nowMs - (link?.sinceMs ?? nowMs) < HEAR_SECONDS * 1000;
}

/** `due`: write the status now. `againSeconds`: time until a status that is held back may be written. */
function holdStatus(
  look: Look<StatusMemory>,
  desired: TrainingRunStatus,
): StepResult<StatusMemory> & { due?: boolean } {
  const { observed, memory, context, nowMs } = look;
  const change = changeOf(observed.run.status ?? {}, desired);
  if (change === "none") return {};
  const unheardSinceMs = reconnectingSinceMs(look);
  const remember = { unheardSinceMs };
  const reconnectMs = unheardSinceMs === undefined ? 0 : unheardSinceMs + RECONNECT_SECONDS * 1000 - nowMs;
  if (reconnectMs > 0) return { remember, againSeconds: reconnectMs / 1000 };
  const waitSeconds = statusWaitSeconds(change, {
    sinceSeconds: (nowMs - memory.writtenMs) / 1000,
    ownSeconds: memory.tokens.secondsUntilNext(),
    hasSpare: context.client.hasSpare,
  });
  return waitSeconds > 0 ? { remember, againSeconds: waitSeconds } : { remember, due: true };
}

async function writeStatus(look: Look<StatusMemory>, desired: TrainingRunStatus): Promise<void> {
  const { observed, memory, writes } = look;
  const { run } = observed;
  const before = run.status ?? {};
  memory.tokens.reserveSeconds();
  await writes.applyStatus(TRAINING_RUN, run, desired);
  const told = announcements(desired.conditions ?? [], before.conditions ?? []);
  for (const { reason, message } of [...told, ...evaluationAnnouncements(desired, before)])
    recordEvent(look, reason, message);
}

/** Returns the time since which the controller has been reconnecting to a learner; the learner's last status stays valid for a while. */
function reconnectingSinceMs({ observed, memory, nowMs }: Look<StatusMemory>): number | undefined {
  const { run, link, learnerPod } = observed;
  const available = findCondition(run.status?.conditions, "LearnerAvailable")?.status === "True";
  const goesOn = !run.spec.suspend && finalPhase(observed) === undefined;
  if (!available || !goesOn || !isLearnerUp(learnerPod) || link?.connected) return undefined;
  return memory.unheardSinceMs ?? nowMs;
}
