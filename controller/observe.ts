/** What is known of one run: the TrainingRun, its children as the caches have them, and what its learner says. */

import {
  COMPONENT,
  type Component,
  childName,
  parseActorName,
  RUN_UID,
  type Run,
  SPEC_HASH,
  tlsSecret,
} from "./desired/names.ts";
import type { Workload } from "./desired/workload.ts";
import { controllerUid } from "./kube/owner-index.ts";
import {
  CONFIG_MAP,
  type ConfigMap,
  DEPLOYMENT,
  type Deployment,
  JOB,
  type Job,
  PERSISTENT_VOLUME_CLAIM,
  type PersistentVolumeClaim,
  POD,
  type Pod,
  SECRET,
  type Secret,
  WORKLOAD,
} from "./kube/resources.ts";
import type { KubeObject, Resource } from "./kube/types.ts";
import type { LearnerObserved } from "./learner-link.ts";
import type { PhaseName } from "./learner-status.ts";

/** Children in memory, fed by watches. */
export interface Cache {
  trainingRun(key: string): Run | undefined;
  /** `key`: `namespace/name`. */
  get<T extends KubeObject>(resource: Resource, key: string): T | undefined;
  /** All of one kind that carry this run's uid in their label. */
  childrenOf<T extends KubeObject>(resource: Resource, runUid: string): T[];
}

export interface Observed {
  run: Run;
  deployment: Deployment | undefined;
  config: ConfigMap | undefined;
  volume: PersistentVolumeClaim | undefined;
  secrets: { authority?: Secret; learner?: Secret };
  /** `NAME-init`, and its newest pod. */
  init: Job | undefined;
  initPod: Pod | undefined;
  actors: ObservedActor[];
  /** The newest that is not on its way out. */
  learnerPod: Pod | undefined;
  /** One that is on its way out and keeps the next from coming. */
  leavingPod: Pod | undefined;
  link: LearnerObserved | undefined;
  /** What Kueue has of the run, where the controller works with Kueue. */
  workload: Workload | undefined;
  /** Whether a pod of it takes part of a node: one that has ended does not. */
  hasPods: boolean;
}

/** An actor's Job with its newest pod and what the learner says of it. */
export interface ObservedActor {
  job: Job;
  name: string;
  index: number;
  generation: number;
  hash: string | undefined;
  state: "starting" | "running" | "succeeded" | "failed" | "deleting";
  pod: Pod | undefined;
  /** With its certificate. */
  secret: Secret | undefined;
  /** Of the learner's status; absent: not connected. */
  connected: boolean;
  /** The learner has told it to take no more. */
  draining: boolean;
  /** Executions that it runs, by the learner's count. */
  executions: number;
}

/** Whether the API server's object is this run's and no earlier one's of the same name. */
export function belongsTo(run: Run, object: KubeObject): boolean {
  const owner = controllerUid(object);
  return owner === run.metadata.uid || (owner === undefined && object.metadata.labels?.[RUN_UID] === run.metadata.uid);
}

export function observe(run: Run, cache: Cache, link: LearnerObserved | undefined, kueue = false): Observed {
  const { namespace, uid } = run.metadata;
  const named = <T extends KubeObject>(resource: Resource, name: string): T | undefined => {
    const found = cache.get<T>(resource, `${namespace}/${name}`);
    return found && belongsTo(run, found) ? found : undefined;
  };
  const child = <T extends KubeObject>(resource: Resource, suffix: string) =>
    named<T>(resource, childName(run, suffix));
  const pods = cache.childrenOf<Pod>(POD, uid);
  const ofComponent = (component: Component) => pods.filter((pod) => pod.metadata.labels?.[COMPONENT] === component);
  const jobs = cache.childrenOf<Job>(JOB, uid).filter((job) => belongsTo(run, job));
  const [authority, learner] = ["ca", "learner-tls"].map((it) => child<Secret>(SECRET, it));
  return {
    run,
    deployment: child(DEPLOYMENT, "learner"),
    config: child(CONFIG_MAP, "config"),
    volume: cache
      .childrenOf<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, uid)
      .find((claim) => belongsTo(run, claim)),
    secrets: { ...(authority && { authority }), ...(learner && { learner }) },
    init: child(JOB, "init"),
    initPod: newest(ofComponent("init")),
    actors: observeActors(run, jobs, ofComponent("actor"), link, (name) => named(SECRET, tlsSecret(name))),
    learnerPod: newest(ofComponent("learner").filter((pod) => !pod.metadata.deletionTimestamp)),
    leavingPod: newest(ofComponent("learner").filter((pod) => pod.metadata.deletionTimestamp)),
    link,
    workload: kueue ? child(WORKLOAD, "workload") : undefined,
    hasPods: pods.some(({ status }) => status?.phase !== "Succeeded" && status?.phase !== "Failed"),
  };
}

function observeActors(
  run: Run,
  jobs: Job[],
  pods: Pod[],
  link: LearnerObserved | undefined,
  secretOf: (actor: string) => Secret | undefined,
): ObservedActor[] {
  const podsOf = Map.groupBy(pods, (pod) => pod.metadata.labels?.["batch.kubernetes.io/job-name"] ?? "");
  const said = new Map((link?.connected ? (link.status?.actors ?? []) : []).map((actor) => [actor.name, actor]));
  return jobs
    .flatMap((job): ObservedActor[] => {
      const { name, annotations } = job.metadata;
      const place = parseActorName(run, name);
      if (!place) return [];
      const pod = newest(podsOf.get(name) ?? []);
      const { connected, draining, running } = said.get(name) ?? {};
      const active = connected || pod?.status?.phase === "Running" ? "running" : "starting";
      const state = job.metadata.deletionTimestamp ? "deleting" : (jobState(job) ?? active);
      return [
        {
          ...{ job, name, ...place, hash: annotations?.[SPEC_HASH], state, pod, secret: secretOf(name) },
          ...{ connected: connected ?? false, draining: draining ?? false, executions: running ?? 0 },
        },
      ];
    })
    .sort((a, b) => a.index - b.index || a.generation - b.generation);
}

/** @returns undefined while the Job is not finished */
export function jobState({ status }: Job): "succeeded" | "failed" | undefined {
  const holds = (type: string) => status?.conditions?.some((it) => it.type === type && it.status === "True");
  if (holds("Complete") || holds("SuccessCriteriaMet")) return "succeeded";
  return holds("Failed") || holds("FailureTarget") ? "failed" : undefined;
}

export function isActive({ state }: ObservedActor): boolean {
  return state === "starting" || state === "running";
}

function newest(pods: Pod[]): Pod | undefined {
  return pods.reduce<Pod | undefined>(
    (best, pod) => (best && createdMs(best) >= createdMs(pod) ? best : pod),
    undefined,
  );
}

/** Unix milliseconds, whole seconds. */
export function createdMs({ metadata }: KubeObject): number {
  return Date.parse(metadata.creationTimestamp ?? "");
}

/** What the learner does, from the newest status that was heard; undefined before the first, and where it is unknown. */
export function learnerPhase(link: LearnerObserved | undefined): PhaseName | undefined {
  return link?.status?.phase;
}

/**
 * What a cache keeps of a pod: what reconcile reads. A pod is 5-20 KB, of this about 2 KB remain, and there is one for
 * each actor.
 */
export function slimPod(pod: Pod): Pod {
  const { name, namespace, uid, resourceVersion, labels, annotations, creationTimestamp, deletionTimestamp } =
    pod.metadata;
  const hash = annotations?.[SPEC_HASH];
  const { phase, reason, message, conditions, startTime } = pod.status ?? {};
  type Statuses = NonNullable<Pod["status"]>["containerStatuses"];
  const slim = (statuses: Statuses) =>
    statuses?.map(({ name, ready, restartCount, state, lastState, image, started }) => ({
      ...{ name, ready, restartCount, image, imageID: "" },
      ...(started !== undefined && { started }),
      ...(state && { state }),
      ...(lastState && { lastState }),
    }));
  return {
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(labels && { labels: Object.fromEntries(Object.entries(labels).filter(([label]) => KEPT_LABELS.has(label))) }),
      ...(hash !== undefined && { annotations: { [SPEC_HASH]: hash } }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
    status: {
      ...(phase !== undefined && { phase }),
      ...(reason !== undefined && { reason }),
      ...(message !== undefined && { message }),
      ...(startTime !== undefined && { startTime }),
      conditions: (conditions ?? []).filter(({ type, status }) => status !== "True" || type === "DisruptionTarget"),
      initContainerStatuses: slim(pod.status?.initContainerStatuses) ?? [],
      containerStatuses: slim(pod.status?.containerStatuses) ?? [],
    },
  };
}

const KEPT_LABELS = new Set([COMPONENT, RUN_UID, "longrun.dev/run", "batch.kubernetes.io/job-name"]);

/** Of a Job all but its pod template, which cannot change and is in every one. */
export function slimJob(job: Job): Job {
  const { template: _, ...spec } = job.spec!;
  return { ...job, spec: spec as NonNullable<Job["spec"]> };
}
