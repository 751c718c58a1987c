/** The conditions of a TrainingRun, and every reason that one can have. */
import type { Condition } from "../../../crds/trainingrun.ts";

export const CONDITION_TYPES = [
  "Ready",
  "Succeeded",
  "Failed",
  "Suspended",
  "LearnerAvailable",
  "ActorsScaled",
  "Progressing",
] as const;
/**
 * A run that is not Ready is either Stalled or Reconciling. Runs with spec.generation have GenerationAvailable, and runs in a queue of Kueue
 * have Admitted. ObjectsApplied is False while the API server refuses an object of the run, and absent otherwise; so is Learning while
 * iterations have nothing to learn from.
 */
export type ConditionType =
  | (typeof CONDITION_TYPES)[number]
  | "Stalled"
  | "Reconciling"
  | "GenerationAvailable"
  | "Admitted"
  | "ObjectsApplied"
  | "Learning"
  | "Contended";

/**
 * The reasons of conditions. `event`: type of the Kubernetes event when a condition takes this reason; absent: no event. `blocks`: a person
 * must act, or wait for somebody. `stalls`: when a run that is blocked so is Stalled; absent: after STALLED_SECONDS.
 */
export const REASONS = {
  // Ready, Progressing
  Starting: {},
  Training: {},
  Generating: {},
  Executing: {},
  Evaluating: {},
  WarmingUp: {},
  Checkpointing: {},
  Finished: {},
  // Succeeded
  InProgress: {},
  Completed: { event: "Normal" },
  RunFailed: { event: "Warning" },
  // Failed: the class of the last failure; RunFailed has the event
  Infrastructure: {},
  Resource: {},
  Fault: {},
  // Suspended
  NotSuspended: {},
  Suspending: { event: "Normal" },
  Suspended: { event: "Normal" },
  Resumed: { event: "Normal" },
  // Admitted
  Admitted: { event: "Normal" },
  Queued: { event: "Normal", blocks: true, stalls: "Never" },
  Evicted: { event: "Warning", blocks: true, stalls: "Never" },
  // Its TrainingRuntime
  RuntimeMissing: { event: "Warning", blocks: true },
  RuntimeRefuses: { event: "Warning", blocks: true, stalls: "AtOnce" },
  // LearnerAvailable
  Connected: { event: "Normal" },
  LearnerNonsense: { event: "Warning" },
  LearnerStarting: {},
  Stopped: {},
  FetchingModel: { event: "Normal" },
  CopyingCheckpoint: { event: "Normal" },
  InvalidConfiguration: { event: "Warning", blocks: true, stalls: "AtOnce" },
  LearnerCrashing: { event: "Warning", blocks: true },
  LearnerOutOfMemory: { event: "Warning", blocks: true },
  VolumeFull: { event: "Warning", blocks: true },
  LearnerNotAnswering: { event: "Warning", blocks: true },
  NodeLost: { event: "Warning", blocks: true },
  VolumeAttachedElsewhere: { event: "Warning", blocks: true },
  ModelFetchFailed: { event: "Warning", blocks: true, stalls: "AtOnce" },
  InitFromFailed: { event: "Warning", blocks: true, stalls: "AtOnce" },
  InitFromMissing: { event: "Warning", blocks: true },
  // ActorsScaled
  AsDesired: {},
  NoWork: {},
  Scaling: {},
  LearnerUnavailable: {},
  ActorsFailing: { event: "Warning", blocks: true },
  // GenerationAvailable
  GeneratorsNotUsed: { event: "Warning", blocks: true },
  // A pod cannot run
  ImagePullFailed: { event: "Warning", blocks: true },
  ContainerConfigError: { event: "Warning", blocks: true },
  Unschedulable: { event: "Warning", blocks: true },
  SchedulingGated: { event: "Normal", blocks: true, stalls: "Never" },
  VolumeNotMounted: { event: "Warning", blocks: true },
  NamesNotResolved: { event: "Warning", blocks: true },
  PodNotCreated: { event: "Warning", blocks: true },
  // The API server refused an object
  QuotaExceeded: { event: "Warning", blocks: true },
  Forbidden: { event: "Warning", blocks: true, stalls: "AtOnce" },
  Refused: { event: "Warning", blocks: true, stalls: "AtOnce" },
  NameTaken: { event: "Warning", blocks: true, stalls: "AtOnce" },
  FieldDropped: { event: "Warning", blocks: true, stalls: "AtOnce" },
  VolumeNotResized: { event: "Warning", blocks: true },
  // Learning
  NothingToLearn: { event: "Warning" },
  // Contended, and an event of the other controller
  OtherController: { event: "Warning" },
  // The learner reports it
  NoResults: { event: "Warning", blocks: true },
} as const satisfies Record<string, { event?: "Normal" | "Warning"; blocks?: true; stalls?: "AtOnce" | "Never" }>;

export type Reason = keyof typeof REASONS;

/**
 * Events that belong to no condition: their type, and what the controller did. README.md explains each of these and each reason above.
 */
export const EVENTS = {
  ScaledUp: ["Normal", "Scale"],
  ScaledDown: ["Normal", "Scale"],
  Draining: ["Normal", "Drain"],
  ActorsDisrupted: ["Normal", "Report"],
  SandboxTerminated: ["Warning", "Report"],
  CheckpointWritten: ["Normal", "Suspend"],
  CheckpointNotWaitedFor: ["Warning", "Suspend"],
  VolumeNameTaken: ["Normal", "CreateVolume"],
  VolumeAdopted: ["Normal", "CreateVolume"],
  VolumeStays: ["Normal", "Delete"],
  VolumeGoes: ["Normal", "Delete"],
  Expired: ["Normal", "Delete"],
  Repaired: ["Normal", "Repair"],
  CertificatesRenewed: ["Normal", "Renew"],
  PodForceDeleted: ["Warning", "ForceDelete"],
  ResultsNotPushed: ["Warning", "Push"],
  Evaluated: ["Normal", "Reconcile"],
  WebhookDelivered: ["Normal", "Notify"],
  WebhookGivenUp: ["Warning", "Notify"],
  WorkloadMade: ["Normal", "Queue"],
  QuotaReleased: ["Normal", "Queue"],
} as const satisfies Record<string, ["Normal" | "Warning", action: string]>;

export type EventReason = Reason | keyof typeof EVENTS;

/** Returns the fields of the event with this reason. */
export function eventOf(reason: EventReason): { type: "Normal" | "Warning"; reason: EventReason; action: string } {
  const ofCondition: { event?: "Normal" | "Warning" } | undefined = REASONS[reason as Reason];
  const [type, action] = EVENTS[reason as keyof typeof EVENTS] ?? [ofCondition?.event ?? "Normal", "Reconcile"];
  return { type, reason, action };
}

export interface Finding {
  reason: Reason;
  /** One sentence for people: the fault and the remedy. It has no number that changes by itself. */
  message: string;
}

export function isBlocker(reason: string): boolean {
  return "blocks" in (REASONS[reason as Reason] ?? {});
}

export function condition(
  type: ConditionType,
  status: boolean | "Unknown",
  { reason, message }: Finding,
): NewCondition {
  return { type, status: status === "Unknown" ? status : status ? "True" : "False", reason, message: clip(message) };
}

export type NewCondition = Required<Pick<Condition, "status">> &
  Omit<Condition, "status" | "lastTransitionTime" | "observedGeneration"> & { type: ConditionType; reason: Reason };

const MESSAGE_CHARACTERS = 1024;

/**
 * Returns the message cut to the schema's limit. Half of a surrogate pair becomes U+FFFD, because the API server would store U+FFFD
 * and the stored status would then always differ from the desired one.
 */
export function clip(message: string): string {
  const cut = message.length > MESSAGE_CHARACTERS ? `${message.slice(0, MESSAGE_CHARACTERS - 1)}…` : message;
  return cut.toWellFormed();
}

/**
 * Returns the conditions with their times: `lastTransitionTime` changes only with the status. A run with a new spec begins to reconcile
 * anew, so the new spec has all of STALLED_SECONDS.
 */
export function stamp(
  conditions: NewCondition[],
  before: Condition[],
  { generation, now }: { generation: number; now: string },
): Condition[] {
  return conditions.map((it) => {
    const old = before.find(({ type }) => type === it.type);
    const isAnew = it.type === "Reconciling" && old?.observedGeneration !== generation;
    const since = old && old.status === it.status && !isAnew ? old.lastTransitionTime : now;
    return { ...it, lastTransitionTime: since, observedGeneration: generation };
  });
}

/** Returns the events for a change of the conditions. */
export function announcements(after: Condition[], before: Condition[]): Finding[] {
  const told = new Set<string>();
  return after.flatMap(({ type, reason, message }) => {
    const old = before.find((it) => it.type === type);
    const entry: { event?: "Normal" | "Warning" } | undefined = REASONS[reason as Reason];
    if (!entry?.event || (old?.reason === reason && old.message === message)) return [];
    if (old?.reason !== reason || isBlocker(reason)) {
      if (told.has(`${reason} ${message}`)) return []; // two conditions with one cause
      told.add(`${reason} ${message}`);
      return [{ reason: reason as Reason, message }];
    }
    return [];
  });
}

export function findCondition(conditions: Condition[] | undefined, type: ConditionType): Condition | undefined {
  return conditions?.find((it) => it.type === type);
}

/** Refusals of a run's objects by the API server. */
export interface RefusedChildren {
  /** Why the learner can be neither started nor changed. */
  blocked?: Finding | undefined;
  /** Why another object, which the learner does not need, was not applied. */
  other?: Finding | undefined;
}
