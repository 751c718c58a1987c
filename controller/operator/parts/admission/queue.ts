/** Determines from a run's Workload whether Kueue allows its pods. Pure. */

import { SPEC_HASH } from "../../desired/names.ts";
import type { Finding } from "../../status/conditions.ts";
import { ACTORS_SET, type Workload, type WorkloadCondition } from "./desired.ts";

export type Admission =
  /** The run names no queue, or the controller does not use Kueue. */
  | { state: "notQueued" }
  /** The run must have no pod, or must give up its pods. `reason` is Evicted after an admission. */
  | { state: "waiting"; finding: Finding }
  | { state: "admitted"; finding: Finding };

export const NOT_QUEUED: Admission = { state: "notQueued" };

/** @param desired see desiredWorkload; undefined: the run names no queue */
export function admissionOf(desired: Workload | undefined, workload: Workload | undefined): Admission {
  if (desired === undefined) return NOT_QUEUED;
  const queue = `LocalQueue ${desired.spec.queueName}`;
  const waiting = (message: string): Admission => ({
    state: "waiting",
    finding: { reason: "Queued", message: `${queue}: ${message}` },
  });
  if (!workload) return waiting("the run is being queued");
  const { name } = workload.metadata;
  if (workload.spec.active === false)
    return waiting(
      `Workload ${name} is deactivated; kubectl patch workload ${name} --type merge -p '{"spec":{"active":true}}' activates it`,
    );
  const eviction = conditionOf(workload, "Evicted");
  if (eviction)
    return {
      state: "waiting",
      finding: { reason: "Evicted", message: `${queue}: ${evictionText(workload, eviction)}` },
    };
  if (isReserved(workload) && !asksFor(desired, workload))
    return waiting("its pods' requests have changed since its admission: it is queued again");
  if (!conditionOf(workload, "Admitted")) return waiting(whatItWaitsFor(workload));
  const by = workload.status?.admission?.clusterQueue;
  return {
    state: "admitted",
    finding: { reason: "Admitted", message: `${queue}: ClusterQueue ${by} admitted the run` },
  };
}

function evictionText(workload: Workload, { reason, message }: WorkloadCondition): string {
  const waits = isReserved(workload) ? "" : `; ${whatItWaitsFor(workload)}`;
  return `Kueue has evicted the run (${reason}: ${oneLine(message)})${waits}`;
}

function whatItWaitsFor(workload: Workload): string {
  const { conditions = [], admissionChecks = [] } = workload.status ?? {};
  const quota = conditions.find(({ type }) => type === "QuotaReserved");
  if (quota?.status === "True") {
    const open = admissionChecks.filter(({ state }) => state !== "Ready");
    const checks = open.map(
      ({ name, state, message }) => `${name} is ${state}${message ? ` (${oneLine(message)})` : ""}`,
    );
    return `quota is reserved; it waits for the admission checks: ${checks.join(", ") || "their result"}`;
  }
  if (quota) return `${oneLine(quota.message)} (${quota.reason})`;
  return `Kueue has not handled Workload ${workload.metadata.name} yet: check that Kueue runs and that there is such a LocalQueue`;
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();

/** Returns the condition if it is True. */
export function conditionOf({ status }: Workload, type: string): WorkloadCondition | undefined {
  return status?.conditions?.find((it) => it.type === type && it.status === "True");
}

/** Returns whether the Workload holds quota of a ClusterQueue; Kueue then rejects changes of its pod sets. */
export function isReserved(workload: Workload): boolean {
  return conditionOf(workload, "QuotaReserved") !== undefined;
}

/** Returns whether the Workload has the desired queue and pods, whatever the number of actors. */
export function asksFor(desired: Workload, workload: Workload): boolean {
  return workload.metadata.annotations?.[SPEC_HASH] === desired.metadata.annotations?.[SPEC_HASH];
}

/** Returns how many actors the Workload covers; others queue by themselves. */
export function coveredActors(workload: Workload | undefined): number {
  const assigned = workload?.status?.admission?.podSetAssignments?.find(({ name }) => name === ACTORS_SET);
  return assigned?.count ?? workload?.spec.podSets.find(({ name }) => name === ACTORS_SET)?.count ?? 0;
}

/** Returns the conditions with some replaced. `lastTransitionTime` only changes with the status. */
export function setConditions(
  workload: Workload,
  changes: Pick<WorkloadCondition, "type" | "status" | "reason" | "message">[],
  now: string,
): WorkloadCondition[] {
  const before = workload.status?.conditions ?? [];
  const { generation } = workload.metadata;
  const changed = changes.map((change) => {
    const old = before.find(({ type }) => type === change.type);
    const since = old?.status === change.status ? old.lastTransitionTime : now;
    return {
      ...change,
      lastTransitionTime: since,
      ...(generation !== undefined && { observedGeneration: generation }),
    };
  });
  return [...before.filter(({ type }) => !changes.some((it) => it.type === type)), ...changed];
}
