/** What keeps the learner from being there, or that nothing does. Pure. */
import {
  deploymentBlocker,
  eventBlocker,
  isSilent,
  LEARNER_ANSWER_SECONDS,
  NO_POD_SECONDS,
  podBlocker,
} from "./blockers.ts";
import type { Finding } from "./conditions.ts";
import { childName, GRPC_PORT } from "./desired/names.ts";
import type { Pod } from "./kube/resources.ts";
import type { LearnerStatus } from "./learner-status.ts";
import { type LifecyclePlan, lastTermination, lastWords } from "./lifecycle.ts";
import { jobState, type Observed } from "./observe.ts";

/** The newest warning about an object that does not come on, asked for where it says nothing itself. */
export type Warning = { reason?: string; note?: string };

export interface LearnerState extends Finding {
  available: boolean;
  /** Seconds until time alone may change it. */
  againSeconds?: number;
}

export interface LearnerFacts {
  observed: Observed;
  lifecycle: LifecyclePlan;
  /** What the API server refused in this reconcile. */
  refused: Finding | undefined;
  warning: Warning | undefined;
  /** Since when its Deployment is to have a pod and has none. */
  podlessSinceMs: number | undefined;
  nowMs: number;
}

/** Exit statuses above it are signals, by shells' and container runtimes' habit. */
const SIGNALLED = 128;
/** How often what is not there yet is looked at, where no event would tell. */
const LOOK_SECONDS = 5;

export function learnerState(facts: LearnerFacts): LearnerState {
  const { observed, lifecycle, refused } = facts;
  const { link } = observed;
  const away = (finding: Finding, againSeconds = LOOK_SECONDS): LearnerState => ({
    available: false,
    ...finding,
    againSeconds,
  });
  if (refused) return away(refused);
  switch (lifecycle.stage) {
    case "Refused":
      return { available: false, ...lifecycle.refusal! };
    case "Ending":
    case "Ended":
      return { available: false, reason: "Stopped", message: "the run is over: it needs no learner" };
    case "Suspended":
      return { available: false, reason: "Stopped", message: "the run is suspended: it has no learner" };
    case "Queued":
      return { available: false, ...lifecycle.admission!.finding };
    case "Initialising":
      return away(initState(observed));
  }
  if (link?.connected && link.status) return { available: true, ...answering(link.status) };
  return away(absence(facts));
}

function answering({ nonsense }: LearnerStatus): Finding {
  if (nonsense === undefined) return { reason: "Connected", message: "the learner answers" };
  return {
    reason: "LearnerNonsense",
    message: `the learner answers, and says what makes no sense here: ${nonsense}; such a field is left out of the status: check that spec.learner.image is longrun's, of the controller's version`,
  };
}

function absence({ observed, warning, podlessSinceMs, nowMs }: LearnerFacts): Finding {
  const { deployment, learnerPod: pod, link, run } = observed;
  const starting = (message: string): Finding => ({ reason: "LearnerStarting", message });
  if (!deployment) return starting("the learner is being made");
  if (!pod) {
    const refused = deploymentBlocker(deployment) ?? (observed.leavingPod && leaving(observed.leavingPod, nowMs));
    if (refused) return refused;
    return nowMs - (podlessSinceMs ?? nowMs) > NO_POD_SECONDS * 1000
      ? {
          reason: "PodNotCreated",
          message: `Deployment ${deployment.metadata.name} has no pod: kubectl describe it, and check that kube-controller-manager runs`,
        }
      : starting("the learner's pod is being made");
  }
  const blocker = podBlocker(pod, "learner", observed.volume);
  if (blocker) return blocker;
  const crash = crashOf(pod, observed);
  if (crash) return crash;
  if (warning && isSilent(pod, nowMs)) return eventBlocker(warning, "learner");
  const container = pod.status?.containerStatuses?.find(({ name }) => name === "learner");
  const running = container?.state?.running;
  if (!container || !running) return starting("the learner's pod is starting");
  if (nowMs - Date.parse(running.startedAt ?? "") < LEARNER_ANSWER_SECONDS * 1000)
    return starting("the learner loads its weights");
  const log = `see kubectl logs deployment/${childName(run, "learner")}`;
  const message = container.ready
    ? `the learner is ready and cannot be reached (${link?.error ?? "not dialled"}): check that network policies let the controller reach port ${GRPC_PORT}; ${log}`
    : `the learner runs and is not ready, it loads large weights or hangs: ${log}; it is started anew after learner.startSeconds`;
  return { reason: "LearnerNotAnswering", message };
}

/** The next one comes when this one is gone, which takes its grace period, or a person where its node is lost. */
function leaving({ metadata: { name, deletionTimestamp } }: Pod, nowMs: number): Finding {
  const late = nowMs - Date.parse(deletionTimestamp ?? "") > NO_POD_SECONDS * 1000;
  return late
    ? {
        reason: "PodNotCreated",
        message: `pod ${name} does not end: if its node is gone for good, kubectl delete pod ${name} --force`,
      }
    : { reason: "LearnerStarting", message: "the pod of the learner before is ending" };
}

/** A container that ended and is not running now, or not for long. */
function crashOf(pod: Pod, { run }: Observed): Finding | undefined {
  const container = pod.status?.containerStatuses?.find(({ name }) => name === "learner");
  const ended = lastTermination(pod);
  if (!ended || container?.state?.running) return undefined;
  if (ended.reason === "OOMKilled")
    return {
      reason: "LearnerOutOfMemory",
      message:
        "the learner was killed for memory and starts again from its newest checkpoint: raise spec.learner.resources.limits.memory",
    };
  const log = `kubectl logs deployment/${childName(run, "learner")} --previous`;
  // Whoever is killed has said nothing of it.
  const end =
    ended.exitCode > SIGNALLED
      ? `was killed by signal ${ended.exitCode - SIGNALLED}`
      : `ended with status ${ended.exitCode} (${lastWords(ended.message)})`;
  return {
    reason: "LearnerCrashing",
    message: `the learner ${end} and starts again from its newest checkpoint: see ${log}`,
  };
}

function initState({ init, initPod, run, volume }: Observed): Finding {
  const source = run.spec.initFrom?.run;
  const blocker = initPod && podBlocker(initPod, "learner", volume);
  if (blocker) return blocker;
  if (init && jobState(init) === "failed")
    return {
      reason: "InitFromFailed",
      message: `the checkpoint of run ${source} could not be copied: see kubectl logs job/${init.metadata.name}; delete the Job to try again`,
    };
  return { reason: "CopyingCheckpoint", message: `a checkpoint of run ${source} is being copied` };
}
