/** The stage of a run, and whether its learner should run. Pure. */
import { hasItsGpu } from "../../../../crds/gpu.ts";
import type { TrainingRunStatus } from "../../../../crds/trainingrun.ts";
import { EXIT_STATUS } from "../../../../proto/exit-status.ts";
import { SPEC_HASH } from "../../desired/names.ts";
import { learnerPhase, type Observed } from "../../observe.ts";
import type { Finding } from "../../status/conditions.ts";
import { findCondition } from "../../status/conditions.ts";
import { isOver as isPodOver, jobState } from "../actors/actor-state.ts";
import { type Admission, NOT_QUEUED } from "../admission/queue.ts";
import { exhaustion, lastTermination, lastWords } from "../learner/learner-failures.ts";

const NO_GPU =
  "learner.device CUDA needs a GPU, and neither the run nor its runtime gives the learner one: set learner.resources.limits nvidia.com/gpu to 1 or more or learner.resources.claims, here or in the TrainingRuntime (chart: gpu.enabled), then suspend and resume the run";

export type Stage =
  /** `NAME-model` fetches the model, or `NAME-init` copies another run's checkpoint. */
  | "Initialising"
  | "Running"
  /** The controller asks the learner for a checkpoint. */
  | "Suspending"
  | "Suspended"
  /** Kueue has not admitted the run, or has evicted it. */
  | "Queued"
  /** The learner cannot use its input; a person has to change it. */
  | "Refused"
  /** The end is known but not yet in the status. */
  | "Ending"
  | "Ended";

export interface LifecyclePlan {
  stage: Stage;
  learnerReplicas: 0 | 1;
  /** For Refused. */
  refusal?: Finding;
  /** For runs that wait or waited in a queue. */
  admission?: Exclude<Admission, { state: "notQueued" }>;
}

/** The progress of a suspension. Only this process remembers it; the learner lets a second Suspend call join the first. */
export interface Suspension {
  /** Unix milliseconds. */
  startedMs: number;
  /** When the controller stops waiting, in Unix milliseconds. */
  deadlineMs: number;
  done: boolean;
  /** The learner's answer, because its last status may not arrive. */
  checkpoint?: TrainingRunStatus["checkpoint"];
}

/** @param learnerHash hash of the learner's pod as it would be created now; a refusal of a pod with another spec does not count */
export function planLifecycle(
  observed: Observed,
  suspension: Suspension | undefined,
  learnerHash: string,
  admission: Admission = NOT_QUEUED,
): LifecyclePlan {
  const plan = planStage(observed, suspension, learnerHash, admission);
  return admission.state === "notQueued" ? plan : { ...plan, admission };
}

function planStage(
  observed: Observed,
  suspension: Suspension | undefined,
  learnerHash: string,
  admission: Admission,
): LifecyclePlan {
  const { run, deployment } = observed;
  const running = (deployment?.spec?.replicas ?? 0) > 0;
  if (hasEnded(observed)) return { stage: "Ended", learnerReplicas: 0 };
  if (finalPhase(observed) || exhaustion(observed)) return { stage: "Ending", learnerReplicas: running ? 1 : 0 };
  // A learner that was told to stop trains no more, even if the spec changes: the stop is completed.
  const waits = admission.state === "waiting";
  if (run.spec.suspend || (running && waits) || (suspension && hasLearner(observed)))
    return !running || suspension?.done
      ? { stage: run.spec.suspend || !waits ? "Suspended" : "Queued", learnerReplicas: 0 }
      : { stage: "Suspending", learnerReplicas: 1 };
  const refusal = refusalOf(observed, learnerHash);
  // The refusal is recorded first. Then the learner is removed, until the spec changes.
  if (refusal) return { stage: "Refused", learnerReplicas: refusal.recorded ? 0 : 1, refusal: refusal.finding };
  if (waits) return { stage: "Queued", learnerReplicas: 0 };
  if (needsModel(observed) || needsInit(observed)) return { stage: "Initialising", learnerReplicas: 0 };
  return { stage: "Running", learnerReplicas: 1 };
}

/**
 * Returns whether the Deployment wants a learner, or has a pod that was not told to end. A Deployment that is scaled to 0 and back to 1 at
 * once keeps its pod, so a learner that has stopped would stay.
 */
export function hasLearner({ deployment, learnerPod }: Observed): boolean {
  return (deployment?.spec?.replicas ?? 0) > 0 || (learnerPod !== undefined && !isPodOver(learnerPod));
}

/** Whether the status says that the run is over. A failed run that is suspended is not over, because it can be resumed. */
export function hasEnded({ run }: Observed): boolean {
  const succeeded = findCondition(run.status?.conditions, "Succeeded");
  if (succeeded?.status === "True") return true;
  return succeeded?.status === "False" && succeeded.reason === "RunFailed" && !run.spec.suspend;
}

export function isOver(stage: Stage): boolean {
  return stage === "Ended" || stage === "Ending";
}

/** FAILED_RUN comes from learners up to 0.2. Later learners end instead, and `exhaustion` decides. */
export function finalPhase({ run, link }: Observed): "SUCCEEDED" | "FAILED_RUN" | undefined {
  const phase = learnerPhase(link);
  if (phase === "FAILED_RUN") return run.spec.suspend ? undefined : phase;
  return phase === "SUCCEEDED" ? phase : undefined;
}

/** Returns whether the run still has to fetch its model; a learner that was reached once has its model. */
export function needsModel({ run, model }: Observed): boolean {
  return (
    run.spec.model.source !== undefined &&
    run.status?.startTime === undefined &&
    !(model && jobState(model) === "succeeded")
  );
}

/** Returns whether the run still has to copy `initFrom.run`; a learner that was reached once has its own run folder. */
function needsInit({ run, init }: Observed): boolean {
  return (
    run.spec.initFrom?.run !== undefined &&
    run.status?.startTime === undefined &&
    !(init && jobState(init) === "succeeded")
  );
}

function refusalOf(observed: Observed, learnerHash: string): { finding: Finding; recorded: boolean } | undefined {
  const { run, learnerPod } = observed;
  // A learner that runs goes on as it is; parts/admission keeps everything from being changed.
  if (observed.refusal && !hasLearner(observed)) return { finding: observed.refusal, recorded: true };
  const { generation } = run.metadata;
  const recorded = findCondition(run.status?.conditions, "LearnerAvailable");
  if (recorded?.reason === "InvalidConfiguration" && recorded.observedGeneration === generation)
    return { finding: { reason: "InvalidConfiguration", message: recorded.message }, recorded: true };
  const path = localPathOf(run);
  if (path !== undefined)
    return {
      finding: {
        reason: "InvalidConfiguration",
        message: `${path} is a folder of one machine: give a persistentVolumeClaim or an image`,
      },
      recorded: true,
    };
  // A run in progress has its GPU, even if the runtime changes.
  if (!hasItsGpu(run.spec) && (observed.deployment?.spec?.replicas ?? 0) === 0)
    return { finding: { reason: "InvalidConfiguration", message: NO_GPU }, recorded: true };
  const ended = learnerPod && lastTermination(learnerPod);
  const current = learnerPod?.metadata.annotations?.[SPEC_HASH] === learnerHash;
  if (ended?.exitCode !== EXIT_STATUS.input || !current) return undefined;
  return {
    finding: {
      reason: "InvalidConfiguration",
      message: `the learner cannot use its input: ${lastWords(ended.message)}; change the spec, or remove the cause, then suspend and resume the run`,
    },
    recorded: false,
  };
}

function localPathOf({ spec }: Observed["run"]): string | undefined {
  for (const [index, task] of spec.tasks.entries())
    for (const field of ["publicData", "privateData"] as const)
      if (task[field]?.path !== undefined) return `spec.tasks[${index}].${field}.path`;
  if (spec.warmStart?.data.path !== undefined) return "spec.warmStart.data.path";
  return spec.initFrom?.path === undefined ? undefined : "spec.initFrom.path";
}
