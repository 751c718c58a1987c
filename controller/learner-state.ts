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
import { describeEnd, isVolumeFull, lastTermination, learnerFailures } from "./learner-failures.ts";
import type { LifecyclePlan } from "./lifecycle.ts";
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
  if (link?.connected && link.status) return { available: true, reason: "Connected", message: "the learner answers" };
  return away(absence(facts));
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
  const crash = crashOf(pod, observed, nowMs);
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
function crashOf(pod: Pod, observed: Observed, nowMs: number): Finding | undefined {
  const { run } = observed;
  const ended = lastTermination(pod);
  const running = pod.status?.containerStatuses?.find(({ name }) => name === "learner")?.state?.running;
  if (!ended) return undefined;
  // It is started again every few minutes, and ends in seconds while there is no room.
  const justStarted = running && nowMs - Date.parse(running.startedAt ?? "") < LEARNER_ANSWER_SECONDS * 1000;
  if (isVolumeFull(pod) && (!running || justStarted)) {
    return { reason: "VolumeFull", message: volumeFull(observed) };
  }
  if (running) return undefined;
  const { count = 0 } = learnerFailures(observed) ?? {};
  const { retries } = run.spec.failurePolicy;
  const which =
    count > 0
      ? `, failure ${count} of the ${retries} that spec.failurePolicy.retries allows without a finished iteration`
      : "";
  if (ended.reason === "OOMKilled")
    return {
      reason: "LearnerOutOfMemory",
      message: `the learner was killed for memory and starts again from its newest checkpoint${which}: raise spec.learner.resources.limits.memory`,
    };
  const log = `kubectl logs deployment/${childName(run, "learner")} --previous`;
  return {
    reason: "LearnerCrashing",
    message: `the learner ${describeEnd(ended)} and starts again from its newest checkpoint${which}: see ${log}`,
  };
}

/** It has grown in the meantime, or it has not: what is left to do differs. */
function volumeFull({ run, volume }: Observed): string {
  const name = volume?.metadata.name ?? childName(run, "data");
  const size = volume?.status?.capacity?.storage ?? volume?.spec?.resources?.requests?.storage;
  const full = `volume ${name} (${size ?? run.spec.learner.storage.size}) is full`;
  const pending = volume?.status?.conditions?.some(({ type }) => type === "FileSystemResizePending");
  if (pending)
    return `${full} and grows when its pod is started anew: suspend the run, and resume it once it is Suspended`;
  return `${full}: raise spec.learner.storage.size, which needs a StorageClass that allows expansion; where a volume grows only while nobody uses it, suspend the run first. The learner goes on by itself within 5 minutes of there being room`;
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
