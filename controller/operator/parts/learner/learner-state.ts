/** Finds the reason why the learner is not available, if there is one. Pure. */
import { volumeWanted } from "../../../../proto/volume.ts";
import { childName, GRPC_PORT } from "../../desired/names.ts";
import type { Pod } from "../../kube/resources.ts";
import { livingLearner, type Observed } from "../../observe.ts";
import {
  deploymentBlocker,
  eventBlocker,
  isSilent,
  LEARNER_ANSWER_SECONDS,
  MODEL_SOURCE,
  multiAttachNote,
  NO_POD_SECONDS,
  podBlocker,
  volumeWait,
  withNames,
} from "../../status/blockers.ts";
import type { Finding } from "../../status/conditions.ts";
import { suspendedFinding } from "../../writes/resume-job.ts";
import { jobState } from "../actors/actor-state.ts";
import { sourceName } from "../inputs/model.ts";
import { type LifecyclePlan, needsModel } from "../lifecycle/lifecycle.ts";
import { DEFAULT_SIZE } from "../volume/desired.ts";
import { nodeLossFinding, OVERDUE_SECONDS, overdueSeconds } from "../volume/node-loss.ts";
import { describeEnd, isVolumeFull, lastTermination, lastWords, learnerFailures } from "./learner-failures.ts";
import type { LearnerStatus } from "./learner-status.ts";

/** The newest warning about an object that makes no progress; used if the object's own status gives no reason. */
export type Warning = { reason?: string; note?: string };

interface LearnerState extends Finding {
  available: boolean;
  /** Seconds until time alone may change it. */
  againSeconds?: number;
}

export interface LearnerFacts {
  observed: Observed;
  lifecycle: LifecyclePlan;
  /** The API server's refusal in this reconcile. */
  refused: Finding | undefined;
  warning: Warning | undefined;
  /** Time since which its Deployment should have a pod and has none. */
  podlessSinceMs: number | undefined;
  nowMs: number;
}

/** Time between two checks for a missing object whose creation causes no event. */
const LOOK_SECONDS = 5;

export function learnerState(facts: LearnerFacts): LearnerState {
  const { observed, lifecycle, refused } = facts;
  const { link } = observed;
  const away = (finding: Finding, againSeconds = LOOK_SECONDS): LearnerState => ({
    available: false,
    ...finding,
    againSeconds,
  });
  const answers = link?.connected && link.status && lifecycle.learnerReplicas === 1;
  if (refused && !answers && lifecycle.stage !== "Refused") return away(refused);
  switch (lifecycle.stage) {
    case "Refused":
      return { available: false, ...lifecycle.refusal! };
    case "Ending":
    case "Ended":
      return { available: false, reason: "Stopped", message: "the run is over: it needs no learner" };
    case "Suspended": {
      const pod = livingLearner(observed);
      return pod
        ? away(
            nodeLossFinding(observed, facts.nowMs) ?? {
              reason: "Stopped",
              message: observed.run.spec.suspend
                ? `the run is suspended: the learner's pod ${pod.metadata.name} ends`
                : resumes(pod),
            },
          )
        : { available: false, reason: "Stopped", message: "the run is suspended: it has no learner" };
    }
    case "Queued":
      return { available: false, ...lifecycle.admission!.finding };
    case "Initialising":
      return away(initState(facts));
  }
  if (link?.connected && link.status) return { available: true, ...answering(link.status) };
  return away(absence(facts));
}

/** Returns the message while a resume waits for the end of the pod of the stopped learner. */
export function resumes({ metadata: { name } }: Pod): string {
  return `the run resumes when the deletion of the stopped learner's pod ${name} has begun; if this takes long, check that kube-controller-manager runs`;
}

function answering({ nonsense }: LearnerStatus): Finding {
  if (nonsense === undefined) return { reason: "Connected", message: "the learner answers" };
  return {
    reason: "LearnerNonsense",
    message: `the learner answers, but its status has an invalid field, which is left out: ${nonsense}; check that spec.learner.image is longrun's, of the controller's version`,
  };
}

function absence(facts: LearnerFacts): Finding {
  const { observed, warning, podlessSinceMs, nowMs } = facts;
  const { deployment, learnerPod: pod, link, run } = observed;
  const starting = (message: string): Finding => ({ reason: "LearnerStarting", message });
  if (!deployment) return starting("the learner is being created");
  const lost = nodeLossFinding(observed, nowMs);
  if (lost) return lost;
  if (!pod) {
    const refused = deploymentBlocker(deployment) ?? (observed.leavingPod && leaving(observed.leavingPod, nowMs));
    if (refused) return refused;
    return nowMs - (podlessSinceMs ?? nowMs) > NO_POD_SECONDS * 1000
      ? {
          reason: "PodNotCreated",
          message: `Deployment ${deployment.metadata.name} has no pod: kubectl describe it, and check that kube-controller-manager runs`,
        }
      : starting("the learner's pod is being created");
  }
  const multiAttach = isSilent(pod, nowMs) && multiAttachNote(warning);
  if (multiAttach) return attached(pod, multiAttach, facts);
  const blocker =
    volumeWait(pod, { warning, claim: observed.volume, nowMs }) ?? podBlocker(pod, "learner", observed.volume);
  if (blocker) return blocker;
  const crash = crashOf(pod, observed, nowMs);
  if (crash) return crash;
  if (warning && isSilent(pod, nowMs)) return eventBlocker(warning, LEARNER_POD);
  const container = pod.status?.containerStatuses?.find(({ name }) => name === "learner");
  const running = container?.state?.running;
  if (!container || !running) return starting("the learner's pod is starting");
  if (nowMs - Date.parse(running.startedAt ?? "") < LEARNER_ANSWER_SECONDS * 1000)
    return starting("the learner loads its weights");
  const log = `see kubectl logs deployment/${childName(run, "learner")}`;
  const message = container.ready
    ? `the learner is ready and cannot be reached (${link?.error ?? "not dialled"}): check that network policies let the controller reach port ${GRPC_PORT}; ${log}`
    : `the learner runs but is not ready: it loads large weights or hangs: ${log}; it is restarted after learner.startSeconds`;
  return withNames({ reason: "LearnerNotAnswering", message });
}

type Seen = Pick<LearnerFacts, "observed" | "nowMs">;

/** Returns the finding for a run's volume that is still attached to the node of an earlier pod. */
function attached(pod: Pod, note: string, { observed: { leavingPod, volume }, nowMs }: Seen): Finding {
  const claim = volume?.metadata.name ?? "";
  const before = leavingPod && `pod ${leavingPod.metadata.name} on node ${leavingPod.spec?.nodeName}`;
  if (leavingPod && overdueSeconds(leavingPod, nowMs) <= OVERDUE_SECONDS)
    return { reason: "LearnerStarting", message: `the volume of claim ${claim} is freed when ${before} has ended` };
  const wait = before ? undefined : volumeWait(pod, { warning: { reason: "FailedAttachVolume", note }, nowMs });
  if (wait) return wait;
  const remedy = before
    ? `${before} has it and must end first`
    : "Kubernetes detaches it when no pod is left there, from a node that does not answer after 6 minutes, or at once with kubectl taint nodes NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
  return {
    reason: "VolumeAttachedElsewhere",
    message: `the volume of claim ${claim} is still attached to another node (${note}): ${remedy}`,
  };
}

/** Returns the finding for a volume of `initFrom.run` that is attached to another node; undefined if the warning names the run's own. */
function sourceAttached(pod: Pod, note: string, facts: Seen): Finding {
  const { volume, run } = facts.observed;
  const own = volume?.spec?.volumeName;
  if (own && note.includes(`"${own}"`)) return attached(pod, note, facts);
  const source = run.spec.initFrom?.run;
  return {
    reason: "VolumeAttachedElsewhere",
    message: `the volume of run ${source} (spec.initFrom.run) is attached to another node (${note}): suspend that run until the checkpoint is copied, or wait for its end`,
  };
}

/** Returns the finding for a pod that is ending: the next pod starts after its grace period. */
function leaving(pod: Pod, nowMs: number): Finding {
  const { name } = pod.metadata;
  return overdueSeconds(pod, nowMs) > OVERDUE_SECONDS
    ? {
        reason: "PodNotCreated",
        message: `pod ${name} does not end: kubectl describe pod ${name} shows the reason; if its node is gone for good, kubectl delete pod ${name} --force`,
      }
    : { reason: "LearnerStarting", message: "the pod of the previous learner is ending" };
}

/** Returns the finding for a container that has ended and does not run now, or has just started again. */
function crashOf(pod: Pod, observed: Observed, nowMs: number): Finding | undefined {
  const { run } = observed;
  const ended = lastTermination(pod);
  const running = pod.status?.containerStatuses?.find(({ name }) => name === "learner")?.state?.running;
  if (!ended) return undefined;
  // The kubelet restarts it every few minutes, and it ends within seconds while the volume is full.
  const justStarted = running && nowMs - Date.parse(running.startedAt ?? "") < LEARNER_ANSWER_SECONDS * 1000;
  if (isVolumeFull(pod) && (!running || justStarted)) {
    return { reason: "VolumeFull", message: volumeFull(observed, ended.message) };
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
  return withNames({
    reason: "LearnerCrashing",
    message: `the learner ${describeEnd(ended)} and starts again from its newest checkpoint${which}: see ${log}`,
  });
}

/** Returns the message for a full volume; the remedy depends on whether the volume has grown. @param said the learner's last message */
function volumeFull({ run, volume }: Observed, said: string | undefined): string {
  const name = volume?.metadata.name ?? childName(run, "data");
  const capacity = volume?.status?.capacity?.storage ?? volume?.spec?.resources?.requests?.storage;
  const isSmall = volumeWanted(said) !== undefined;
  const full = `volume ${name} (${capacity ?? run.spec.learner.storage.size ?? DEFAULT_SIZE}) is ${isSmall ? "too small" : "full"}`;
  const pending = volume?.status?.conditions?.some(({ type }) => type === "FileSystemResizePending");
  if (pending)
    return `${full} and grows when its pod is restarted: suspend the run, and resume it once it is Suspended`;
  const what = isSmall ? lastWords(said) : "raise spec.learner.storage.size";
  return `${full}: ${what}, which needs a StorageClass that allows expansion; if a volume grows only while unused, suspend the run first. The learner continues within 5 minutes after the volume has room`;
}

function initState(facts: LearnerFacts): Finding {
  const { observed } = facts;
  if (needsModel(observed)) return modelState(facts);
  const { init, initPod, run } = observed;
  const source = run.spec.initFrom?.run;
  const waits = suspendedFinding(init) ?? jobPodWait(initPod, LEARNER_POD, sourceAttached, facts);
  if (waits) return waits;
  if (init && jobState(init) === "failed")
    return {
      reason: "InitFromFailed",
      message: `the checkpoint of run ${source} could not be copied: see kubectl logs job/${init.metadata.name}; delete the Job to try again`,
    };
  return { reason: "CopyingCheckpoint", message: `a checkpoint of run ${source} is being copied` };
}

function modelState(facts: LearnerFacts): Finding {
  const { run, model, modelPod } = facts.observed;
  const what = `model ${sourceName(run.spec.model.source!)} (spec.model.source)`;
  const name = childName(run, "model");
  const waits = suspendedFinding(model) ?? jobPodWait(modelPod, MODEL_SOURCE, attached, facts);
  if (waits) return waits;
  const ended = modelPod?.status?.containerStatuses?.[0]?.state?.terminated;
  const why = ended && ended.exitCode !== 0 ? lastWords(ended.message) : undefined;
  if (model && jobState(model) === "failed")
    return withNames({
      reason: "ModelFetchFailed",
      message: `${what} could not be fetched: ${why ?? `see kubectl logs job/${name}`}. Remove the cause (room: spec.learner.storage.size, credentials: secretRef), then kubectl delete job ${name}; fetched parts stay`,
    });
  const again = why === undefined ? "" : `; the last try failed: ${why}`;
  return withNames({
    reason: "FetchingModel",
    message: `${what} is fetched onto the run's volume: kubectl logs -f job/${name} shows the progress${again}`,
  });
}

const LEARNER_POD = "spec.learner.podTemplate";

/** Returns why the pod of a Job before the learner does not run, or why the Job has no pod. */
function jobPodWait(
  pod: Pod | undefined,
  field: string,
  attachedElsewhere: (pod: Pod, note: string, facts: Seen) => Finding,
  { observed, warning, nowMs }: LearnerFacts,
): Finding | undefined {
  if (!pod) return warning && eventBlocker(warning, field);
  const multiAttach = isSilent(pod, nowMs) && multiAttachNote(warning);
  if (multiAttach) return attachedElsewhere(pod, multiAttach, { observed, nowMs });
  const blocker =
    volumeWait(pod, { warning, claim: observed.volume, nowMs }) ?? podBlocker(pod, "learner", observed.volume);
  if (blocker) return blocker;
  return warning && isSilent(pod, nowMs) ? eventBlocker(warning, field) : undefined;
}
