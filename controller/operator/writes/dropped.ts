/**
 * Fields of a child that the API server does not store. It answers 200 all the same: it drops a field that it does not know, or whose
 * feature gate is off. An admission webhook can remove a field, too.
 */
import type { KubeObject, Resource } from "../kube/types.ts";
import type { Finding } from "../status/conditions.ts";
import { isEmpty, isObject, type Json } from "./compare.ts";

export interface DroppedField {
  /** E.g. `spec.template.spec.volumes[model]`. */
  path: string;
  /** What was asked for. */
  value: unknown;
  /**
   * Whether a pod without it runs something else than its run asks for: a whole item of a list (a container, a mount), or part of a
   * volume or a claim.
   */
  isEssential: boolean;
}

/** Fields that tell the items of a list apart, the first one that an item has. One volume may have several mounts. */
const KEYS = ["mountPath", "name", "containerPort", "key", "uid"];

/** Returns the fields of `desired` that `stored` lacks. Changed values and additions do not count. */
export function droppedFields(desired: unknown, stored: unknown, path = ""): DroppedField[] {
  if (isEmpty(desired) || desired === 0) return [];
  if (stored === undefined || stored === null)
    return [{ path, value: desired, isEssential: /\]$|(^|\.)(volumes|resourceClaims|claims)(\[|$)/.test(path) }];
  if (Array.isArray(desired)) {
    if (!Array.isArray(stored)) return [];
    return desired.flatMap((item, index) => {
      const [found, name] = counterparts(item, index, stored);
      const fields = found.map((other) => droppedFields(item, other, `${path}[${name}]`));
      return fields.reduce((least, next) => (next.length < least.length ? next : least));
    });
  }
  if (!isObject(desired) || !isObject(stored)) return [];
  return Object.entries(desired).flatMap(([key, value]) =>
    droppedFields(value, stored[key], path ? `${path}.${key}` : key),
  );
}

/**
 * Returns the stored items of a list that the item may be, and its name in a path. Tolerations, for instance, may have the same key.
 *
 * @returns `[undefined]` if there is none
 */
function counterparts(item: unknown, index: number, stored: unknown[]): [found: unknown[], name: unknown] {
  const key = isObject(item) ? KEYS.find((it) => item[it] !== undefined) : undefined;
  if (key === undefined) return [[stored[index]], index];
  const name = (item as Json)[key];
  const found = stored.filter((other) => isObject(other) && other[key] === name);
  return [found.length > 0 ? found : [undefined], name];
}

/**
 * Returns the finding for dropped fields of a child; undefined if there are none.
 *
 * @param version of the API server, e.g. `1.34.2`
 * @param spec of the run: the message names its field, if the field is found there
 */
export function droppedFinding(
  { kind }: Resource,
  { metadata: { name } }: KubeObject,
  dropped: DroppedField[],
  { version, spec }: { version: string; spec: object },
): Finding | undefined {
  // A mount goes with its volume.
  const first = dropped.find(({ path }) => path.includes(".volumes[")) ?? dropped[0];
  if (!first) return undefined;
  const image = isObject(first.value) ? (first.value.image ?? first.value) : undefined;
  const isImage = isObject(image) && image.reference !== undefined;
  const field = fieldOf(spec, isImage ? image : first.value);
  const remedy = isImage
    ? "image volumes are on since Kubernetes 1.35, and need the feature gate ImageVolume on API server and nodes of 1.31 to 1.34; or name a persistentVolumeClaim with the data in a new run"
    : "it does not know the field, or the field's feature gate is off, or an admission webhook removes it: leave the field out, upgrade the cluster, or change the webhook";
  return {
    reason: "FieldDropped",
    message: `the API server (Kubernetes ${version}) does not store ${field ? `${field}, in ${kind} ${name} ` : `of ${kind} ${name} `}${first.path}: ${remedy}`,
  };
}

/** Returns the path of the object in the spec, e.g. `spec.model.volume.image`; undefined for texts and numbers, which may be anywhere. */
function fieldOf(spec: unknown, value: unknown, path = "spec"): string | undefined {
  if (!isObject(value)) return undefined;
  if (JSON.stringify(spec) === JSON.stringify(value)) return path;
  const entries = Array.isArray(spec)
    ? spec.map((item, index) => [`[${index}]`, item] as const)
    : isObject(spec)
      ? Object.entries(spec).map(([key, part]) => [`.${key}`, part] as const)
      : [];
  for (const [key, part] of entries) {
    const found = fieldOf(part, value, `${path}${key}`);
    if (found) return found;
  }
  return undefined;
}
