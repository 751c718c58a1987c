/** Computes the Workload for Kueue: the learner, its generators and the minimum of actors. */
import type { V1Container, V1PodSpec, V1PodTemplateSpec, V1Toleration } from "@kubernetes/client-node";
import type { GenerationReplicas } from "../../../../crds/trainingrun.ts";
import { childMetadata, digestOf, queueNameOf, type Run, SPEC_HASH } from "../../desired/names.ts";
import type { Settings } from "../../desired/settings.ts";
import type { KubeObject, Raw } from "../../kube/types.ts";
import { desiredActor } from "../actors/desired.ts";
import { desiredGenerators } from "../generators/desired.ts";
import { desiredLearner } from "../learner/desired.ts";

/** Kueue's Workload: https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/ */
export interface Workload extends KubeObject {
  spec: {
    queueName?: string;
    podSets: PodSet[];
    priorityClassRef?: PriorityClassRef;
    priority?: number;
    /** False: a person has taken the Workload out of the queue. */
    active?: boolean;
  };
  status?: {
    conditions?: WorkloadCondition[];
    admission?: {
      clusterQueue?: string;
      /** `flavors`: by resource, the name of a ResourceFlavor. */
      podSetAssignments?: { name: string; count?: number; flavors?: Record<string, string> }[];
    };
    admissionChecks?: {
      name: string;
      state: string;
      message?: string;
      podSetUpdates?: ({ name: string } & NodeChoice)[];
    }[];
  };
}

export interface WorkloadCondition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message: string;
  lastTransitionTime: string;
  observedGeneration?: number;
}

export interface PriorityClassRef {
  group: "kueue.x-k8s.io" | "scheduling.k8s.io";
  kind: "WorkloadPriorityClass" | "PriorityClass";
  name: string;
}

/** Fields to add to the pods of a pod set. */
export interface NodeChoice {
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  nodeSelector?: Record<string, string>;
  tolerations?: V1Toleration[];
}

interface PodSet {
  name: string;
  count: number;
  /** Kueue may admit as few as this, if there is no quota for `count`. */
  minCount?: number;
  template: Raw<V1PodTemplateSpec>;
}

/** Names of its pod sets. */
export const LEARNER_SET = "learner";
export const ACTORS_SET = "actors";
export const GENERATORS_SET = "generators";

/**
 * Returns the run's Workload. Its pod sets have only the fields that decide which nodes the pods fit on, so that a run can change its
 * computation without queueing again. The hash leaves out the numbers of pods too: further actors queue one by one, and a run never has
 * more generators than were admitted.
 */
export function desiredWorkload(
  run: Run,
  settings: Settings,
  priority: Pick<Workload["spec"], "priorityClassRef" | "priority"> = {},
): Workload {
  const learner = desiredLearner(run, { configHash: "", claimName: "", replicas: 1, settings });
  const podSets: PodSet[] = [
    { name: LEARNER_SET, count: 1, template: whatDecides(learner.spec!.template) },
    {
      name: ACTORS_SET,
      count: run.spec.actors.min,
      template: whatDecides(desiredActor(run, 0, 0, settings).spec!.template),
    },
  ];
  if (run.spec.generation) podSets.push(generatorSet(run, run.spec.generation.replicas, settings));
  const queueName = queueNameOf(run)!;
  const templates = podSets.map(({ template }) => template);
  return {
    apiVersion: "kueue.x-k8s.io/v1beta2",
    kind: "Workload",
    metadata: childMetadata(run, "workload", "run", { [SPEC_HASH]: digestOf({ queueName, templates }) }),
    spec: { queueName, podSets, ...priority },
  };
}

/** Only one pod set of a Workload may have a `minCount`. */
function generatorSet(run: Run, { min, max }: GenerationReplicas, settings: Settings): PodSet {
  const { template } = desiredGenerators(run, { replicas: max, settings }).spec!;
  return {
    name: GENERATORS_SET,
    count: max,
    ...(min < max && { minCount: min }),
    template: whatDecides(template),
  };
}

/** Returns the requests and the constraints on nodes. */
function whatDecides({ spec }: { spec?: unknown }): Raw<V1PodTemplateSpec> {
  const { containers, initContainers, nodeSelector, affinity, tolerations, ...pod } = spec as Raw<V1PodSpec>;
  const { priorityClassName, runtimeClassName, topologySpreadConstraints } = pod;
  const asked = (list: Raw<V1Container>[]) =>
    list.map(({ name, resources, restartPolicy }) => dropUndefined({ name, resources, restartPolicy }));
  return {
    spec: dropUndefined({
      containers: asked(containers),
      initContainers: initContainers && asked(initContainers),
      nodeSelector,
      affinity,
      tolerations,
      priorityClassName,
      runtimeClassName,
      topologySpreadConstraints,
    }),
  } as Raw<V1PodTemplateSpec>;
}

function dropUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, it]) => it !== undefined)) as T;
}
