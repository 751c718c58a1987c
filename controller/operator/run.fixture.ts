/** A TrainingRun as the API server has it, with every default, and what else tests of pure functions observe. */
import { stringify } from "yaml";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { messages, type StatusMessage, type StatusReceived } from "../../proto/service.ts";
import { labelsOf, podLabels, RUN_UID, type Run, SPEC_HASH } from "./desired/names.ts";
import type { Job, Pod } from "./kube/resources.ts";
import type { Observed, ObservedActor } from "./observe.ts";
import type { LearnerObserved } from "./parts/learner/learner-link.ts";
import { parseLearnerStatus } from "./parts/learner/learner-status.ts";

/** 2026-01-01. */
export const NOW_MS = Date.UTC(2026, 0, 1);

export function runOf(spec: object = {}, status: object = {}, metadata: object = {}): Run {
  const run = parseTrainingRun(
    stringify({
      apiVersion: "longrun.dev/v1alpha1",
      kind: "TrainingRun",
      metadata: { name: "quick" },
      spec: { tasks: [{ name: "diamonds" }], model: { policy: "quickstart" }, ...spec },
    }),
    "fixture",
  );
  const stored = {
    namespace: "team",
    uid: "11111111-2222-3333-4444-555555555555",
    resourceVersion: "1",
    generation: 1,
  };
  return { ...run, status, metadata: { name: "quick", ...stored, ...metadata } } as Run;
}

export function observedOf(run: Run, change: Partial<Observed> = {}): Observed {
  return {
    ...{ run, deployment: undefined, config: undefined, volume: undefined, secrets: {}, init: undefined },
    ...{ initPod: undefined, model: undefined, modelPod: undefined },
    generators: { deployment: undefined, pods: [], secret: undefined },
    ...{ actors: [], learnerPod: undefined, leavingPod: undefined, link: undefined },
    ...{ workload: undefined, hasPods: false, nextLossMs: undefined },
    ...change,
  };
}

export function deploymentOf(replicas: number, hash = "h"): NonNullable<Observed["deployment"]> {
  const metadata = { name: "quick-learner", annotations: { [SPEC_HASH]: hash }, creationTimestamp: at(-3600) };
  return { metadata, spec: { replicas, selector: {}, template: {} } } as never;
}

/** Returns the observation of a connected learner with this status. */
export function linkOf(status: StatusMessage): LearnerObserved {
  const received = messages.Status.decode(messages.Status.encode(status).finish()) as StatusReceived;
  return { connected: true, sinceMs: NOW_MS, status: parseLearnerStatus(received) };
}

/** RFC 3339, `seconds` after NOW_MS. */
export function at(seconds: number): string {
  return new Date(NOW_MS + seconds * 1000).toISOString().replace(".000Z", "Z");
}

export function podOf(run: Run, component: "learner" | "actor", status: object, hash = "h"): Pod {
  const metadata = {
    name: "pod",
    namespace: "team",
    uid: "pod-uid",
    labels: { ...podLabels(run, component), [RUN_UID]: run.metadata.uid },
    annotations: { [SPEC_HASH]: hash },
    creationTimestamp: at(-3600),
  };
  return { metadata, spec: { nodeName: "n1" }, status } as unknown as Pod;
}

export function actorOf(
  run: Run,
  index: number,
  change: Partial<ObservedActor> & { job?: object } = {},
): ObservedActor {
  const { job = {}, ...rest } = change;
  const name = `quick-actor-${index}-${change.generation ?? 0}`;
  const metadata = { name, namespace: "team", labels: labelsOf(run, "actor"), creationTimestamp: at(index - 600) };
  return {
    job: { metadata, ...job } as Job,
    name,
    index,
    generation: 0,
    hash: "now",
    state: "running",
    pod: undefined,
    secret: undefined,
    ...{ connected: true, draining: false, executions: 0 },
    ...rest,
  };
}
