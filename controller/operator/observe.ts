/** Observed state of one run: the TrainingRun, its children from the caches, and its learner's status. */

import type { PhaseName } from "../../proto/service.ts";
import {
  COMPONENT,
  childName,
  GENERATORS,
  parseActorName,
  RUN_UID,
  type Run,
  SPEC_HASH,
  tlsSecret,
} from "./desired/names.ts";
import {
  CONFIG_MAP,
  type ConfigMap,
  DEPLOYMENT,
  type Deployment,
  JOB,
  type Job,
  type PersistentVolumeClaim,
  POD,
  type Pod,
  type ReplicaSet,
  SECRET,
  type Secret,
  WORKLOAD,
} from "./kube/resources.ts";
import type { KubeObject, Resource } from "./kube/types.ts";
import { type ActorState, actorState, isOver, pastGraceAtMs, takesRoom } from "./parts/actors/actor-state.ts";
import type { Workload } from "./parts/admission/desired.ts";
import type { LearnerObserved } from "./parts/learner/learner-link.ts";
import type { Finding } from "./status/conditions.ts";
import { type Cache, childOf, isChildOf, isOrphanOf, learnerPodsOf, podsOf, volumeOf } from "./writes/ownership.ts";

export interface Observed {
  /** With the defaults of its runtime. */
  run: Run;
  /** Why no child of it may be written: its runtime is missing, or refuses it. */
  refusal?: Finding | undefined;
  deployment: Deployment | undefined;
  config: ConfigMap | undefined;
  volume: PersistentVolumeClaim | undefined;
  secrets: { authority?: Secret; learner?: Secret };
  /** `NAME-init`, and its newest pod. */
  init: Job | undefined;
  initPod: Pod | undefined;
  /** `NAME-model`, and its newest pod. */
  model: Job | undefined;
  modelPod: Pod | undefined;
  actors: ObservedActor[];
  /** Their Deployment, its pods, and the Secret with their certificate. */
  generators: { deployment: Deployment | undefined; pods: Pod[]; secret: Secret | undefined };
  /** The newest pod that is not being deleted. */
  learnerPod: Pod | undefined;
  /** A pod that is being deleted and keeps the next one from starting. */
  leavingPod: Pod | undefined;
  link: LearnerObserved | undefined;
  /** The run's Workload, if the controller works with Kueue. */
  workload: Workload | undefined;
  /**
   * Whether a pod of the run occupies resources of a node: ended pods and pods on a lost node do not. Pods of `NAME-results` do not count:
   * they have no GPU, the Workload does not ask for them, and the quota does not wait for a copy into a bucket.
   */
  hasPods: boolean;
  /** Unix milliseconds at which the next pod that is being deleted counts as a pod on a lost node. */
  nextLossMs: number | undefined;
}

/** An actor's Job with its newest pod and its state in the learner's status. */
export interface ObservedActor {
  job: Job;
  name: string;
  index: number;
  generation: number;
  hash: string | undefined;
  state: ActorState;
  pod: Pod | undefined;
  /** The Secret with its certificate. */
  secret: Secret | undefined;
  /** Whether the actor is connected, by the learner's status. */
  connected: boolean;
  /** The learner has told it to take no more executions. */
  draining: boolean;
  /** Executions that it runs, by the learner's count. */
  executions: number;
}

export function observe(
  run: Run,
  cache: Cache,
  link: LearnerObserved | undefined,
  { kueue, nowMs }: { kueue: boolean; nowMs: number },
): Observed {
  const { namespace, uid } = run.metadata;
  const child = <T extends KubeObject>(resource: Resource, suffix: string) => childOf<T>(run, cache, resource, suffix);
  const podsOfJob = (job: Job) => cache.ownedBy<Pod>(POD, namespace, job.metadata.uid!);
  const jobs = cache.ownedBy<Job>(JOB, namespace, uid);
  const orphans = cache.labelledJobs<Job>(run).filter((job) => isOrphanOf(run, job));
  const learnerPods = learnerPodsOf(run, cache);
  const present = learnerPods.filter((pod) => !pod.metadata.deletionTimestamp);
  const [init, model] = ["init", "model"].map((it) => child<Job>(JOB, it));
  const generators = child<Deployment>(DEPLOYMENT, GENERATORS);
  const generatorPods = podsOf(generators, run, cache);
  const others = jobs.filter(({ metadata: { name } }) => name !== childName(run, "results"));
  const pods = [...learnerPods, ...generatorPods, ...others.flatMap(podsOfJob)];
  const [authority, learner] = ["ca", "learner-tls"].map((it) => child<Secret>(SECRET, it));
  return {
    run,
    deployment: child(DEPLOYMENT, "learner"),
    config: child(CONFIG_MAP, "config"),
    volume: volumeOf(run, cache),
    secrets: { ...(authority && { authority }), ...(learner && { learner }) },
    init,
    initPod: newest(init ? podsOfJob(init) : []),
    model,
    modelPod: newest(model ? podsOfJob(model) : []),
    actors: observeActors(run, [...jobs, ...orphans], link, podsOfJob, cache, nowMs),
    generators: { deployment: generators, pods: generatorPods, secret: child(SECRET, `${GENERATORS}-tls`) },
    // A pod that the kubelet refused is not removed, and may have been created in the same second as the pod that runs.
    learnerPod: newest(present.filter((pod) => !isOver(pod))) ?? newest(present),
    leavingPod: newest(learnerPods.filter((pod) => pod.metadata.deletionTimestamp)),
    link,
    workload: kueue ? child(WORKLOAD, "workload") : undefined,
    hasPods: pods.some((pod) => takesRoom(pod, nowMs)),
    nextLossMs: earliest(pods.map(pastGraceAtMs).filter((atMs) => atMs !== undefined && atMs > nowMs)),
  };
}

function observeActors(
  run: Run,
  jobs: Job[],
  link: LearnerObserved | undefined,
  podsOfJob: (job: Job) => Pod[],
  cache: Cache,
  nowMs: number,
): ObservedActor[] {
  const said = new Map((link?.connected ? (link.status?.actors ?? []) : []).map((actor) => [actor.name, actor]));
  return jobs
    .flatMap((job): ObservedActor[] => {
      const { name, annotations } = job.metadata;
      const place = parseActorName(run, name);
      if (!place) return [];
      const pod = newest(podsOfJob(job));
      const { connected, draining, running } = said.get(name) ?? {};
      const state = isChildOf(run, job) ? actorState(job, pod, connected ?? false, nowMs) : orphanState(job);
      return [
        {
          job,
          name,
          ...place,
          hash: annotations?.[SPEC_HASH],
          state,
          pod,
          secret: secretOf(job, cache),
          connected: connected ?? false,
          draining: draining ?? false,
          executions: running ?? 0,
        },
      ];
    })
    .sort((a, b) => a.index - b.index || a.generation - b.generation);
}

/** Returns the Secret with the actor's certificate if the Job owns it; a Secret of an earlier Job with that name is replaced. */
function secretOf({ metadata: { namespace, name, uid } }: Job, cache: Cache): Secret | undefined {
  const secret = cache.get<Secret>(SECRET, `${namespace}/${tlsSecret(name)}`);
  return secret?.metadata.ownerReferences?.some((owner) => owner.uid === uid) ? secret : undefined;
}

/** A Job with the run's label and an actor's name, and without an owner, does not count and is removed. */
function orphanState({ metadata }: Job): ActorState {
  return metadata.deletionTimestamp ? "deleting" : "orphaned";
}

const earliest = (times: (number | undefined)[]): number | undefined =>
  times.reduce(
    (first, atMs) => Math.min(first ?? Number.POSITIVE_INFINITY, atMs ?? Number.POSITIVE_INFINITY),
    undefined,
  );

export function isActive({ state }: ObservedActor): boolean {
  return state === "starting" || state === "running";
}

/** Returns whether a pod of the learner still has its node, its GPU and its volume. */
export function livingLearner({ learnerPod, leavingPod }: Observed): Pod | undefined {
  return [learnerPod, leavingPod].find((pod) => pod && !isOver(pod));
}

export function newest(pods: Pod[]): Pod | undefined {
  return pods.reduce<Pod | undefined>(
    (best, pod) => (best && createdMs(best) >= createdMs(pod) ? best : pod),
    undefined,
  );
}

/** Unix milliseconds, whole seconds. */
export function createdMs({ metadata }: KubeObject): number {
  return Date.parse(metadata.creationTimestamp ?? "");
}

/** Returns the learner's phase from its newest status; undefined before the first status, or if the phase is unknown. */
export function learnerPhase(link: LearnerObserved | undefined): PhaseName | undefined {
  return link?.status?.phase;
}

/**
 * Returns the part of a pod that reconcile reads, for the cache. A pod has 5-20 KB, of which about 2 KB remain, and every actor
 * has a pod.
 */
export function slimPod(pod: Pod): Pod {
  const { name, namespace, uid, resourceVersion, labels, annotations, creationTimestamp, deletionTimestamp } =
    pod.metadata;
  const owners = pod.metadata.ownerReferences?.filter(({ controller }) => controller);
  const hash = annotations?.[SPEC_HASH];
  const { phase, reason, message, conditions, startTime } = pod.status ?? {};
  type Statuses = NonNullable<Pod["status"]>["containerStatuses"];
  const slim = (statuses: Statuses) =>
    statuses?.map(({ name, ready, restartCount, state, lastState, image, started }) => ({
      name,
      ready,
      restartCount,
      image,
      imageID: "",
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
      ...(owners?.length && { ownerReferences: owners }),
    },
    // The type requires containers, but no code reads them.
    ...(pod.spec?.nodeName !== undefined && { spec: { nodeName: pod.spec.nodeName } as NonNullable<Pod["spec"]> }),
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

/** Returns a ReplicaSet's metadata, which names the Deployment that owns it. The ReplicaSet's pods are the learner's. */
export function slimReplicaSet({ metadata: { annotations: _, ...metadata } }: ReplicaSet): ReplicaSet {
  return { metadata };
}

/** Returns a Job without its pod template, which cannot change and would be stored for every Job. */
export function slimJob(job: Job): Job {
  const { template: _, ...spec } = job.spec!;
  return { ...job, spec: spec as NonNullable<Job["spec"]> };
}

/** Whether the learner's container runs. */
export function isLearnerUp(pod: Observed["learnerPod"]): boolean {
  return pod?.status?.containerStatuses?.some(({ name, state }) => name === "learner" && state?.running) ?? false;
}
