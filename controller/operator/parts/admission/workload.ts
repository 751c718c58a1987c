/**
 * The run's Workload. The controller creates it before any other object, deletes it when the run needs no nodes, and sets the
 * conditions that Kueue expects of a Workload's owner: https://kueue.sigs.k8s.io/docs/concepts/workload/
 */
import { type Look, recordEvent } from "../../context.ts";
import { inputsOf } from "../../desired/inputs.ts";
import { digestOf, INPUT_HASH, queueNameOf, SPEC_HASH } from "../../desired/names.ts";
import { PRIORITY_CLASS, WORKLOAD, WORKLOAD_PRIORITY_CLASS } from "../../kube/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { isSeen, pinnedImages } from "../../pin.ts";
import { timeOf } from "../../status/values.ts";
import { readyGenerators } from "../generators/generation.ts";
import type { LifecyclePlan } from "../lifecycle/lifecycle.ts";
import { desiredWorkload, type PriorityClassRef, type Workload, type WorkloadCondition } from "./desired.ts";
import {
  type Admission,
  admissionOf,
  asksFor,
  conditionOf,
  coveredActors,
  isReserved,
  NOT_QUEUED,
  setConditions,
} from "./queue.ts";

/** Kueue's label on a TrainingRun: the WorkloadPriorityClass by which the run is queued. */
const PRIORITY_LABEL = "kueue.x-k8s.io/priority-class";
/** Evictions after which the workload is queued again at once (condition Requeued); after others Kueue or a person does it later. */
const REQUEUED_AT_ONCE = ["Preempted", "NodeFailures"];
const MESSAGE_CHARACTERS = 1024;

/** The desired Workload for one generation, queue and runtime. */
export type Asked = { of: string; desired: Workload };

/** @param known the last result */
export function findAdmission(
  look: Look,
  known: Asked | undefined,
): { queue: Admission; asked: Asked | undefined; workload: Workload | undefined } {
  if (!look.context.settings.kueue) return { queue: NOT_QUEUED, asked: known, workload: undefined };
  const asked = askedOf(look, known);
  const workload = desiredOf(look, asked);
  return { queue: admissionOf(workload, look.observed.workload), asked, workload };
}

/** Returns the desired Workload, computed once for each generation, queue and runtime. */
function askedOf({ stored, runtime, observed: { run }, context }: Look, known: Asked | undefined): Asked | undefined {
  const queueName = queueNameOf(run);
  if (queueName === undefined) return undefined;
  const of = `${run.metadata.generation} ${queueName} ${runtime?.version}`;
  if (known?.of === of) return known;
  const inputs = digestOf([inputsOf(stored), queueName]);
  return { of, desired: marked(desiredWorkload(run, context.settings), { [INPUT_HASH]: inputs }) };
}

/** Returns the desired Workload; an upgrade alone does not change an admitted one. */
function desiredOf(look: Look, asked: Asked | undefined): Workload | undefined {
  const { run, workload } = look.observed;
  const desired = asked?.desired;
  if (!desired) return undefined;
  if (!workload || !isReserved(workload) || !pinnedImages(look.observed)) return desired;
  const { [SPEC_HASH]: made = "", [INPUT_HASH]: inputs } = workload.metadata.annotations ?? {};
  const keeps = inputs === undefined ? isSeen(run) : inputs === desired.metadata.annotations?.[INPUT_HASH];
  return keeps ? marked(desired, { [SPEC_HASH]: made }) : desired;
}

function marked(workload: Workload, annotations: Record<string, string>): Workload {
  const { metadata } = workload;
  return { ...workload, metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } } };
}

/** @throws BlockedError | ApiError */
export async function reconcileWorkload(
  look: Look,
  { stage, learnerReplicas }: LifecyclePlan,
  desired: Workload | undefined,
): Promise<void> {
  const { observed, context, writes } = look;
  if (!context.settings.kueue) return;
  const { workload } = observed;
  const isIdle = learnerReplicas === 0 && !observed.hasPods;
  if (stage === "Ended" || stage === "Ending") {
    if (workload && isIdle) await finish(look, workload);
    return;
  }
  // A run that needs no nodes holds no quota, and queues again when it needs nodes.
  if (desired === undefined || stage === "Suspended" || stage === "Refused") {
    if (workload && (isIdle || desired === undefined)) await writes.remove(WORKLOAD, workload);
    return;
  }
  if (!workload) {
    const made: Workload = { ...desired, spec: { ...desired.spec, ...(await priorityOf(look)) } };
    await writes.apply(WORKLOAD, made);
    const note = `waits in LocalQueue ${desired.spec.queueName} as Workload ${desired.metadata.name}`;
    recordEvent(look, "WorkloadMade", note);
    return;
  }
  if (isReserved(workload)) {
    // longrun 0.2 and earlier stored no digest. This Workload matches the current spec, so it gets the digest.
    if (workload.metadata.annotations?.[INPUT_HASH] === undefined && asksFor(desired, workload)) {
      const { [INPUT_HASH]: inputs } = desired.metadata.annotations!;
      await writes.patch(WORKLOAD, workload, { metadata: { annotations: { [INPUT_HASH]: inputs } } });
      return;
    }
    if (conditionOf(workload, "Evicted")) {
      if (isIdle) await giveBack(look, workload);
    } else if (!asksFor(desired, workload)) {
      if (isIdle) await writes.remove(WORKLOAD, workload);
    } else if (podsAreReady(look, workload)) await sayReady(look, workload);
    return;
  }
  const { priorityClassRef, priority } = workload.spec;
  const kept = { ...(priorityClassRef && { priorityClassRef }), ...(priority !== undefined && { priority }) };
  const asMade: Workload = { ...desired, spec: { ...desired.spec, ...kept } };
  await writes.apply(WORKLOAD, asMade);
}

/** Returns the priority as Kueue's own integrations do: from the label's class, or else from the pods' class. */
async function priorityOf({
  observed: { run },
  context,
}: Look): Promise<Pick<Workload["spec"], "priorityClassRef" | "priority">> {
  const ofQueue = run.metadata.labels?.[PRIORITY_LABEL];
  const name = ofQueue ?? run.spec.learner.podTemplate?.spec?.priorityClassName;
  if (!name) return {};
  const resource = ofQueue ? WORKLOAD_PRIORITY_CLASS : PRIORITY_CLASS;
  const found = await context.client.get<KubeObject & { value?: number }>(resource, { name });
  if (found?.value === undefined) return {}; // Kueue's default is 0
  const ref = { group: resource.group, kind: resource.kind, name } as PriorityClassRef;
  return { priorityClassRef: ref, priority: found.value };
}

function podsAreReady({ observed }: Look, workload: Workload): boolean {
  const { learnerPod, actors } = observed;
  const ready = learnerPod?.status?.containerStatuses?.some(({ name, ready }) => name === "learner" && ready) ?? false;
  const { generation } = observed.run.spec;
  if (generation && readyGenerators(observed) < generation.replicas.min) return false;
  return ready && actors.filter(({ state }) => state === "running").length >= coveredActors(workload);
}

/** Sets the condition for Kueue's `waitForPodsReady`, which evicts a workload without it. */
async function sayReady(look: Look, workload: Workload): Promise<void> {
  if (conditionOf(workload, "PodsReady")) return;
  const message = "the learner, and the generators and actors that the run always has, are ready";
  await setStatus(look, workload, [{ type: "PodsReady", status: "True", reason: "Started", message }]);
}

/** Returns the quota after an eviction, once no pod is left; the workload then queues again. */
async function giveBack(look: Look, workload: Workload): Promise<void> {
  const { reason, message } = conditionOf(workload, "Evicted")!;
  const requeued = REQUEUED_AT_ONCE.includes(reason) ? "True" : "False";
  const changes: Change[] = [
    { type: "QuotaReserved", status: "False", reason: "Pending", message },
    { type: "Admitted", status: "False", reason: "NoReservation", message: "The workload has no reservation" },
    { type: "Requeued", status: requeued, reason, message },
  ];
  if (conditionOf(workload, "PodsReady"))
    changes.push({ type: "PodsReady", status: "False", reason: "WaitForStart", message: "no pod is left" });
  await setStatus(look, workload, changes, { admission: null });
  const note = `no pod is left: Workload ${workload.metadata.name} returned its quota`;
  recordEvent(look, "QuotaReleased", note);
}

async function finish(look: Look, workload: Workload): Promise<void> {
  if (conditionOf(workload, "Finished")) return;
  const succeeded = look.observed.run.status?.conditions?.find(({ type }) => type === "Succeeded");
  const reason = succeeded?.status === "True" ? "Succeeded" : "Failed";
  await setStatus(look, workload, [{ type: "Finished", status: "True", reason, message: succeeded?.message ?? "" }]);
}

type Change = Pick<WorkloadCondition, "type" | "status" | "reason" | "message">;

async function setStatus(look: Look, workload: Workload, changes: Change[], status: object = {}): Promise<void> {
  const now = timeOf(look.nowMs);
  const clipped = changes.map((it) => ({ ...it, message: it.message.slice(0, MESSAGE_CHARACTERS) }));
  const patch = { status: { ...status, conditions: setConditions(workload, clipped, now) } };
  await look.writes.patch(WORKLOAD, workload, patch, { subresource: "status" });
}
