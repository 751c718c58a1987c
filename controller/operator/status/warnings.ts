/** Warnings from Kubernetes' events about an object that is not created or ready and whose status does not say why. */

import type { Look } from "../context.ts";
import { EVENT, type Job, type Pod } from "../kube/resources.ts";
import type { KubeObject } from "../kube/types.ts";
import type { Remembers } from "../memory.ts";
import { createdMs } from "../observe.ts";
import type { Stuck } from "../part.ts";
import { jobState } from "../parts/actors/actor-state.ts";
import type { Warning } from "../parts/learner/learner-state.ts";
import type { StepResult } from "../steps.ts";
import { isSilent, NO_POD_SECONDS } from "./blockers.ts";

/** Time between two requests for the events of an object that makes no progress. */
const WARNING_SECONDS = 15;

interface WarningMemory {
  /** The newest warning about an object that makes no progress. */
  warning?: { uid: string; atMs: number; warning: Warning | undefined };
}

/** The owner of the memory of warnings. */
export const WARNINGS: Remembers<WarningMemory> = {};

/** Returns a pod that makes no progress. */
export function stuckPod(pod: Pod | undefined, nowMs: number): Pod | undefined {
  return pod && isSilent(pod, nowMs) ? pod : undefined;
}

/** Returns a Job's pod that makes no progress, or the Job if it has no pod for long. */
export function stuckJob(job: Job | undefined, pod: Pod | undefined, nowMs: number): Stuck {
  const podless = job && !pod && jobState(job) === undefined ? job : undefined;
  const overdue = podless && nowMs - createdMs(podless) > NO_POD_SECONDS * 1000 ? podless : undefined;
  return { subject: stuckPod(pod, nowMs) ?? overdue, waiting: podless !== undefined };
}

/** Returns the newest warning about the first part's object that makes no progress. `index`: the part's. */
export async function findWarning(
  look: Look<WarningMemory>,
  parts: Stuck[],
): Promise<StepResult<WarningMemory> & { index?: number; warning?: Warning | undefined }> {
  const { memory, nowMs } = look;
  const index = parts.findIndex(({ subject }) => subject);
  if (index === -1) return parts.some(({ waiting }) => waiting) ? { againSeconds: WARNING_SECONDS } : {};
  const uid = parts[index]!.subject!.metadata.uid!;
  const known = memory.warning;
  const isFresh = known?.uid === uid && nowMs - known.atMs < WARNING_SECONDS * 1000;
  const found = isFresh ? known : { uid, atMs: nowMs, warning: await newestWarning(look, uid) };
  return { index, warning: found.warning, remember: { warning: found }, againSeconds: WARNING_SECONDS };
}

async function newestWarning({ observed: { run }, context }: Look, uid: string): Promise<Warning | undefined> {
  const { items } = await context.client.list<KubeObject & Warning & { type?: string }>(EVENT, {
    namespace: run.metadata.namespace,
    fieldSelector: `regarding.uid=${uid},type=Warning`,
    limit: 50,
  });
  // The pod's conditions already hold the scheduler's message, and its warning events outlive their cause.
  const told = items.filter(({ reason }) => reason !== "FailedScheduling");
  const newest = told.toSorted((a, b) => createdMs(b) - createdMs(a));
  // The kubelet only reports that it waits for a volume; the attach controller reports why.
  const warning = newest.find(({ note = "" }) => !/timed out waiting/.test(note)) ?? newest[0];
  return warning && { reason: warning.reason ?? "", note: warning.note ?? "" };
}
