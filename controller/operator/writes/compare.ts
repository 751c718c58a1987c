/** Compares an object of the API server with the desired one, without fields that only the server sets. */
import { readQuantity } from "../../../crds/quantity.ts";

export type Json = Record<string, unknown>;
export const isObject = (value: unknown): value is Json =>
  value !== null && typeof value === "object" && !Array.isArray(value);

/**
 * Compares only desired fields. Other fields have defaults or belong to other managers.
 *
 * @returns the first difference in words, e.g. `spec.replicas is 3, should be 1`; undefined if there is none
 */
export function firstDifference(desired: unknown, observed: unknown, path = ""): string | undefined {
  if (Array.isArray(desired)) {
    if (!Array.isArray(observed))
      return isEmpty(desired) && observed === undefined ? undefined : describe(path, observed, desired);
    if (desired.length !== observed.length)
      return `${path} has ${observed.length} items, should have ${desired.length}`;
    for (const [index, item] of desired.entries()) {
      const difference = firstDifference(item, observed[index], `${path}[${index}]`);
      if (difference) return difference;
    }
    return undefined;
  }
  if (isObject(desired)) {
    if (observed === undefined && isEmpty(desired)) return undefined;
    if (!isObject(observed)) return describe(path, observed, desired);
    for (const [key, value] of Object.entries(desired)) {
      if (value === undefined) continue;
      const difference = firstDifference(value, observed[key], path ? `${path}.${key}` : key);
      if (difference) return difference;
    }
    return undefined;
  }
  return desired === observed || sameQuantity(desired, observed) ? undefined : describe(path, observed, desired);
}

/**
 * Fields that the controller owns completely, by kind. An addition there could open the network or redirect the learner's traffic. In all
 * other fields additions by others stay.
 */
const WHOLE_FIELDS: Record<string, readonly string[] | "all"> = {
  NetworkPolicy: "all",
  Service: ["type", "selector", "ports", "externalIPs"],
  PodDisruptionBudget: ["selector"],
  // A paused Deployment keeps its old pod, whatever its template.
  Deployment: ["paused"],
};

/**
 * Compares the fields that the controller owns completely; additions there count as differences.
 *
 * @returns the first difference in words, and the JSON merge patch that replaces these fields, because server-side apply cannot remove
 * others' additions. Undefined if there is no difference
 */
export function wholeDifference(
  kind: string,
  ...objects: [desired: object, observed: object]
): { difference: string; patch: { spec: Json } } | undefined {
  const fields = WHOLE_FIELDS[kind] ?? [];
  const [desired, observed] = objects.map((it) => (it as { spec?: Json }).spec ?? {}) as [Json, Json];
  let difference: string | undefined;
  const spec: Json = {};
  for (const field of fields === "all" ? keysOf(desired, observed) : fields) {
    const own = exactDifference(desired[field], observed[field], `spec.${field}`);
    if (own === undefined) continue;
    difference ??= own;
    spec[field] = replacement(desired[field], observed[field]);
  }
  return difference === undefined ? undefined : { difference, patch: { spec } };
}

const keysOf = (...objects: Json[]): Set<string> => new Set(objects.flatMap(Object.keys));

function exactDifference(desired: unknown, observed: unknown, path: string): string | undefined {
  if (isAbsent(desired) && isAbsent(observed)) return undefined;
  if (Array.isArray(desired) && Array.isArray(observed)) {
    if (desired.length !== observed.length)
      return `${path} has ${observed.length} items, should have ${desired.length}`;
    return first(desired.keys(), (index) => exactDifference(desired[index], observed[index], `${path}[${index}]`));
  }
  if (isObject(desired) && isObject(observed))
    return first(keysOf(desired, observed), (key) => exactDifference(desired[key], observed[key], `${path}.${key}`));
  return desired === observed ? undefined : describe(path, observed, desired);
}

function first<T>(items: Iterable<T>, find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** In a policy an empty list is the same as none, but an empty selector `{}` selects everything and is not absent. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

/** Returns the JSON merge patch that turns `observed` into `desired`: whole lists, and null for fields that must be removed. */
function replacement(desired: unknown, observed: unknown): unknown {
  if (desired === undefined) return null;
  if (!isObject(desired) || !isObject(observed)) return desired;
  return Object.fromEntries(
    [...keysOf(desired, observed)].map((key) => [key, replacement(desired[key], observed[key])]),
  );
}

/** The API server drops empty objects and lists, and zero and false if they are the default. */
export function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isObject(value)) return Object.values(value).every(isEmpty);
  return value === undefined || value === "" || value === false;
}

function describe(path: string, observed: unknown, desired: unknown): string {
  const show = (value: unknown): string => {
    const text = value === undefined ? "absent" : JSON.stringify(value);
    return text.length > 60 ? `${text.slice(0, 57)}...` : text;
  };
  return `${path} is ${show(observed)}, should be ${show(desired)}`;
}

/** The API server returns `0.5` as `500m` and `1024Mi` as `1Gi`. */
function sameQuantity(desired: unknown, observed: unknown): boolean {
  const read = (value: unknown) =>
    typeof value === "string" || typeof value === "number" ? readQuantity(String(value)) : undefined;
  return read(desired) !== undefined && read(desired) === read(observed);
}
