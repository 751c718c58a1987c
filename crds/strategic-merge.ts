/** Kubernetes' strategic merge, for pod templates and their pieces. */

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
