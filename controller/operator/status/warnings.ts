/** Warnings from Kubernetes' events about an object that is not created or ready and whose status does not say why. */

import type { Look } from "../context.ts";
import { EVENT } from "../kube/resources.ts";
import type { KubeObject } from "../kube/types.ts";
import { createdMs } from "../observe.ts";
import { jobState } from "../parts/actors/actor-state.ts";
import type { Warning } from "../parts/learner/learner-state.ts";
import type { StepResult } from "../steps.ts";
import { isSilent, NO_POD_SECONDS } from "./blockers.ts";

/** Time between two requests for the events of an object that makes no progress. */
const WARNING_SECONDS = 15;

/**
 * Returns the newest warnings about a learner, the Jobs before it, an actor, a generator or the Job that copies results, if it makes no
 * progress and its own status has no reason.
 */
export async function findWarning(
  look: Look,
): Promise<StepResult & { learner?: Warning; actors?: Warning; generators?: Warning; results?: Warning }> {
  const { observed, memory, nowMs } = look;
  const { learnerPod, init, initPod, model, modelPod, results, resultsPod, actors, generators } = observed;
  const stuck = actors.find(
    ({ state, pod, job }) =>
      state === "starting" && (pod ? isSilent(pod, nowMs) : nowMs - createdMs(job) > NO_POD_SECONDS * 1000),
  );
  const podless = [[init, initPod] as const, [model, modelPod] as const, [results, resultsPod] as const].flatMap(
    ([job, pod]) => (job && !pod && jobState(job) === undefined ? [job] : []),
  );
  const overdue = podless.filter((job) => nowMs - createdMs(job) > NO_POD_SECONDS * 1000);
  const ownStuck =
    [learnerPod, initPod, modelPod].find((pod) => pod && isSilent(pod, nowMs)) ??
    overdue.find((job) => job !== results);
  const stuckResults = resultsPod && isSilent(resultsPod, nowMs) ? resultsPod : overdue.find((job) => job === results);
  const stuckActor = stuck?.pod ?? stuck?.job;
  const pending = generators.pods.filter(({ status }) => status?.phase === "Pending");
  const stuckGenerator = pending.find((pod) => isSilent(pod, nowMs));
  const subject = ownStuck ?? stuckActor ?? stuckGenerator ?? stuckResults;
  const waiting = podless.length > 0 || pending.length > 0 || actors.some(({ state }) => state === "starting");
  if (!subject) return waiting ? { againSeconds: WARNING_SECONDS } : {};
  const uid = subject.metadata.uid!;
  const known = memory.warning;
  const isFresh = known?.uid === uid && nowMs - known.atMs < WARNING_SECONDS * 1000;
  const found = isFresh ? known : { uid, atMs: nowMs, warning: await newestWarning(look, uid) };
  return {
    ...(found.warning && { [partOf({ ownStuck, stuckActor, stuckGenerator })]: found.warning }),
    remember: { warning: found },
    againSeconds: WARNING_SECONDS,
  };
}

function partOf({ ownStuck, stuckActor, stuckGenerator }: Partial<Record<string, KubeObject>>) {
  if (ownStuck) return "learner";
  if (stuckActor) return "actors";
  return stuckGenerator ? "generators" : "results";
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
