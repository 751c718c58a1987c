/** Parts that the pods of learners, actors and generators share: the `restricted` pod security level, data volumes, overlays. */
import type {
  V1PodSecurityContext,
  V1PodTemplateSpec,
  V1SecurityContext,
  V1Volume,
  V1VolumeMount,
} from "@kubernetes/client-node";
import { hasDevices } from "../../../crds/gpu.ts";
import { mergeStrategically } from "../../../crds/strategic-merge.ts";
import type {
  ConfigMapSource,
  ImageVolumeSource,
  PersistentVolumeClaim,
  PodTemplate,
  Resources,
} from "../../../crds/trainingrun.ts";

import { isOwnLabel } from "./names.ts";

/** User of learner and supervisor. Programs run as another user, who can signal neither. */
export const USER = 10001;
export const SANDBOX_USER = 10002;

/** Group that may read the answers of bundled tasks in the image; learners are in it, supervisors with the same image are not. */
export const ANSWERS_GROUP = 10003;

/** Paths of the app and of the bundled tasks in the images. */
export const APP = "/opt/longrun";
export const BUNDLED_TASKS = "/opt/longrun-tasks";
export const PYTHON = "/opt/python/bin/python";
/** Mount path of custom tasks. */
export const CUSTOM_TASKS = "/tasks";

export const POD_SECURITY: V1PodSecurityContext = {
  runAsNonRoot: true,
  runAsUser: USER,
  runAsGroup: USER,
  fsGroup: USER,
  fsGroupChangePolicy: "OnRootMismatch",
  seccompProfile: { type: "RuntimeDefault" },
};

export const CONTAINER_SECURITY: V1SecurityContext = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
  readOnlyRootFilesystem: true,
};

/** A volume's source: a claim, an image, or a ConfigMap. */
interface DataSource {
  persistentVolumeClaim?: PersistentVolumeClaim;
  image?: ImageVolumeSource;
  configMap?: ConfigMapSource;
}

/** Returns a read-only volume of the user's data, and its mount at `mountPath`. */
export function dataVolume(
  name: string,
  { persistentVolumeClaim: claim, image, configMap }: DataSource,
  mountPath: string,
): { volume: V1Volume; mount: V1VolumeMount } {
  const mount: V1VolumeMount = { name, mountPath, readOnly: true };
  if (claim?.subPath) mount.subPath = claim.subPath;
  return {
    volume: {
      name,
      ...(claim && { persistentVolumeClaim: { claimName: claim.claimName, readOnly: true } }),
      ...(image && { image: { reference: image.reference } }),
      ...(configMap && { configMap: { name: configMap.name } }),
    },
    mount,
  };
}

/** Size of /dev/shm if the container has a GPU and the spec has no size. Container runtimes give 64 MiB. */
const SHARED_MEMORY = "1Gi";

/**
 * Returns the volume for `/dev/shm` in memory, with the size in the spec. @returns undefined if the container runtime's size is enough
 *
 * @param always whether the container needs more than the runtime's size, whatever its resources
 */
export function sharedMemory(
  { sharedMemory: size, resources }: { sharedMemory?: string; resources: Resources },
  always = false,
): { volume: V1Volume; mount: V1VolumeMount } | undefined {
  const sizeLimit = size ?? (always || hasDevices(resources) ? SHARED_MEMORY : undefined);
  if (sizeLimit === undefined) return undefined;
  const name = "shared-memory";
  return { volume: { name, emptyDir: { medium: "Memory", sizeLimit } }, mount: { name, mountPath: "/dev/shm" } };
}

/** Merges the user's podTemplate into a pod template. longrun's own labels win, because selectors need them. No container is added. */
export function overlay<Template extends V1PodTemplateSpec>(
  template: Template,
  podTemplate: PodTemplate | undefined,
): Template {
  if (podTemplate === undefined) return template;
  const { containers: additions = [], ...spec } = podTemplate.spec ?? {};
  const changed = (["initContainers", "containers"] as const).flatMap((list) => {
    const own = template.spec?.[list]?.map(({ name }) => name) ?? [];
    const additionsToOwn = additions.filter(({ name }) => own.includes(name));
    return additionsToOwn.length > 0 ? [[list, additionsToOwn]] : [];
  });
  const merged = mergeStrategically(template, {
    ...podTemplate,
    spec: { ...spec, ...Object.fromEntries(changed) },
  }) as Template;
  const own = Object.entries(template.metadata?.labels ?? {}).filter(([key]) => isOwnLabel(key));
  return {
    ...merged,
    metadata: { ...merged.metadata, labels: { ...merged.metadata?.labels, ...Object.fromEntries(own) } },
  };
}
