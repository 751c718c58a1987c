/** Parts that the pods of learners, actors and generators share: the `restricted` pod security level, data volumes, overlays. */
import type {
  V1PodSecurityContext,
  V1PodTemplateSpec,
  V1SecurityContext,
  V1Volume,
  V1VolumeMount,
} from "@kubernetes/client-node";
import { hasDevices } from "../../../crds/gpu.ts";
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

/** Lists that strategic merge joins by a key; other lists are replaced whole, as in Kubernetes. */
const MERGE_KEYS: Record<string, string[]> = {
  containers: ["name"],
  initContainers: ["name"],
  volumes: ["name"],
  env: ["name"],
  volumeMounts: ["mountPath"],
  imagePullSecrets: ["name"],
  resourceClaims: ["name"],
  topologySpreadConstraints: ["topologyKey", "whenUnsatisfiable"],
  hostAliases: ["ip"],
  tolerations: ["key", "operator", "value", "effect"],
};

/** Lists whose items are replaced whole, because a volume has one source and a variable one origin. */
const WHOLE_ITEMS = ["volumes", "env", "volumeMounts", "resourceClaims"];
/** Lists of numbers that are joined, so the pod's own groups stay. */
const JOINED = ["supplementalGroups"];

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  value !== null && typeof value === "object" && !Array.isArray(value);

/** Returns the strategic merge of `patch` over `base`; null removes a field. Neither argument is changed. */
export function mergeStrategically(base: unknown, patch: unknown, field = ""): unknown {
  const keys = MERGE_KEYS[field];
  if (Array.isArray(base) && Array.isArray(patch) && keys) {
    const same = (a: Json, b: Json) => keys.every((key) => a[key] === b[key]);
    const merged = (base as Json[]).map((item) => {
      const over = (patch as Json[]).find((other) => same(item, other));
      if (over && WHOLE_ITEMS.includes(field)) return over;
      return over ? mergeStrategically(item, over) : item;
    });
    return merged.concat((patch as Json[]).filter((item) => !(base as Json[]).some((other) => same(item, other))));
  }
  if (Array.isArray(base) && Array.isArray(patch) && JOINED.includes(field)) return [...new Set([...base, ...patch])];
  if (!isObject(base) || !isObject(patch)) return patch;
  const result: Json = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = key in base ? mergeStrategically(base[key], value, key) : value;
  }
  return result;
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
