/**
 * The defaults of list items. The CRD does not have them: the API server would store each in every item, and a JSON merge patch replaces
 * lists whole, so that `kubectl apply` of an unchanged manifest would always send a patch, and Argo CD would show it as out of sync. Every
 * reader of a stored TrainingRun fills them in.
 */
import type { Schema } from "./schema.ts";

/** {path below the schema, with `[]` for every item: default} */
const ITEM_DEFAULTS: Readonly<Record<string, unknown>> = {
  "spec.tasks[].weight": 1,
  "spec.tasks[].publicData.persistentVolumeClaim.subPath": "",
  "spec.tasks[].privateData.persistentVolumeClaim.subPath": "",
  "spec.tasks[].grader.rewardFloor": -9,
  "spec.tasks[].rewardSplit": "Full",
  "spec.tasks[].privateShare": 0,
  "spec.tasks[].executionTimeoutSeconds": 600,
  "spec.tasks[].executionMemoryBytes": 4_294_967_296,
  "spec.tasks[].outputBytes": 4_194_304,
  "spec.tasks[].keptOutputBytes": 16_384,
  "spec.tasks[].scratchBytes": 1_073_741_824,
  "spec.tasks[].scratchFiles": 10_000,
  "spec.tasks[].processes": 64,
};

/** Returns the CRD's schema with the defaults of list items. @throws Error that names a path which the schema lacks */
export function withItemDefaults(schema: Schema): Schema {
  const copy: Schema = JSON.parse(JSON.stringify(schema)); // YAML's aliases share objects
  for (const [path, value] of Object.entries(ITEM_DEFAULTS)) {
    let at: Schema | undefined = copy;
    for (const name of path.split(".")) {
      at = at?.properties?.[name.replace("[]", "")];
      if (name.endsWith("[]")) at = at?.items;
    }
    if (!at) throw new Error(`crds/item-defaults.ts: the CRD has no ${path}`);
    const { description } = at;
    delete at.description;
    Object.assign(at, { default: value, description }); // in the CRD's order
  }
  return copy;
}

/** Returns a stored object with the defaults of its list items; the object stays as it is. */
export function fillItems<T extends object>(stored: T): T {
  let filled = stored;
  for (const [path, value] of Object.entries(ITEM_DEFAULTS)) filled = fill(filled, path.split("."), value) as T;
  return filled;
}

/** Copies only what changes. */
function fill(value: unknown, [name, ...rest]: string[], byDefault: unknown): unknown {
  if (typeof value !== "object" || value === null || name === undefined) return value;
  const field = name.replace("[]", "");
  const before = (value as Record<string, unknown>)[field];
  if (rest.length === 0) return before === undefined ? { ...value, [field]: byDefault } : value;
  const after =
    name.endsWith("[]") && Array.isArray(before)
      ? same(
          before,
          before.map((item) => fill(item, rest, byDefault)),
        )
      : fill(before, rest, byDefault);
  return after === before ? value : { ...value, [field]: after };
}

const same = (before: unknown[], after: unknown[]): unknown[] =>
  after.every((item, index) => item === before[index]) ? before : after;
