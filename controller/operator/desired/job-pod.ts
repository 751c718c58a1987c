/** Pods of the Jobs that fetch, copy and push: they get what the run gives its learner's pod. */

import type { V1PodSpec, V1PodTemplateSpec, V1Volume, V1VolumeMount } from "@kubernetes/client-node";
import { mergeStrategically } from "../../../crds/strategic-merge.ts";
import { withEnvironment } from "./environment.ts";
import { type Component, childName, podMetadata, type Run } from "./names.ts";
import { overlay } from "./pod.ts";

/**
 * Fields of `learner.podTemplate` that these pods do not have. A gate is removed by its owner, who may know the learner's pod alone.
 * Devices are for the networks. The template's container and volumes are merged below.
 */
const LEFT_OUT = ["schedulingGates", "resourceClaims", "containers", "volumes"];

/**
 * Returns the pod with the learner's labels, annotations, environment, placement, DNS, user, and the volumes of its podTemplate; with no
 * claim, because a claim may allow only one pod. The first pod that mounts a new volume decides where the volume is created
 * (`WaitForFirstConsumer`), so it is placed as the learner is.
 */
export function jobPod(run: Run, component: Component, pod: V1PodSpec): V1PodTemplateSpec {
  const { metadata, spec = {} } = run.spec.learner.podTemplate ?? {};
  const followed = Object.fromEntries(Object.entries(spec).filter(([field]) => !LEFT_OUT.includes(field)));
  const template = {
    metadata: { name: childName(run, component), ...podMetadata(run, component) },
    spec: withEnvironment(withLearnersMounts(pod, run), withLearnersEnv(run)),
  };
  return overlay<V1PodTemplateSpec>(template, { ...(metadata && { metadata }), spec: followed });
}

/** Returns the run with variables of the template's container `learner`, which come before the run's own, as in the learner's pod. */
function withLearnersEnv(run: Run): Run {
  const { env = [] } = run.spec.learner.podTemplate?.spec?.containers?.[0] ?? {};
  return { ...run, spec: { ...run.spec, env: mergeStrategically(run.spec.env ?? [], env, "env") as never } };
}

/** Adds mounts of the template's container `learner` to the pod's container, and the volumes that they need. */
function withLearnersMounts(pod: V1PodSpec, { spec: { learner } }: Run): V1PodSpec {
  const { containers = [], volumes = [] } = learner.podTemplate?.spec ?? {};
  const { volumeMounts = [] } = containers[0] ?? {};
  const has = (name: string) => pod.volumes?.some((it) => it.name === name);
  const shared = volumes.filter((it) => !it.persistentVolumeClaim && !has(it.name));
  const mounts = volumeMounts.filter(({ name }) => shared.some((it) => it.name === name));
  const needed = shared.filter(({ name }) => mounts.some((it) => it.name === name));
  if (mounts.length === 0) return pod;
  return {
    ...pod,
    containers: pod.containers.map((container) => ({
      ...container,
      volumeMounts: [...container.volumeMounts!, ...(mounts as V1VolumeMount[])],
    })),
    volumes: [...(pod.volumes ?? []), ...(needed as V1Volume[])],
  };
}
