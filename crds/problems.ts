/** Describes the fault of a value and the schema's requirement. */
import { nearest } from "../proto/nearest.ts";
import type { Fault } from "./faults.ts";
import { formatPath, type Path } from "./overrides.ts";
import { REMOVED_FIELDS, REMOVED_VALUES } from "./removed.ts";
import type { Schema } from "./schema.ts";

export interface Problem {
  path: Path;
  /** The problem and the remedy, to follow the path in a sentence. */
  text: string;
}

const SHOWN_VALUE_CHARACTERS = 60;

/** How to have none of something whose number must be at least 1. */
const REMEDIES_OF_ZERO: Readonly<Record<string, string>> = {
  "spec.evaluation.samples": "leave evaluations out with evaluation.before: false and evaluation.after: false",
};

/** @param schema that of the whole value, in which an unknown field may have another place */
export function describeFaults(faults: Fault[], schema: Schema): Problem[] {
  return faults.map((fault) => ({ path: fault.path, text: describeFault(fault, schema) }));
}

function describeFault({ path, value, schema: wanted, kind }: Fault, schema: Schema): string {
  if (kind === "Missing") return `is missing; give ${expected(wanted)}`;
  const name = formatPath(path);
  if (kind === "Unknown") {
    const removed = REMOVED_FIELDS[name];
    if (removed) return `is ${show(value)}, a removed field: ${removed.remedy}`;
    return unknownField(String(path.at(-1)), path.slice(0, -1), wanted, schema);
  }
  if (REMOVED_VALUES[name] === value) return `is ${show(value)}, a removed value; give ${expected(wanted)}`;
  const remedy = value === 0 ? REMEDIES_OF_ZERO[name] : undefined;
  if (remedy) return `is 0; give ${expected(wanted)}, or ${remedy}`;
  const guess = wanted.enum?.length !== 1 && typeof value === "string" && nearest(value, wanted.enum ?? []);
  return `is ${show(value)}; give ${expected(wanted)}${guess ? ` (did you mean ${guess}?)` : ""}`;
}

/** @returns the schema's requirement, e.g. `a whole number from 1 to 65536` */
export function expected(schema: Schema): string {
  if (schema.enum) return schema.enum.length === 1 ? schema.enum[0]! : `one of ${schema.enum.join(", ")}`;
  switch (schema.type) {
    case "integer":
    case "number":
      return `a ${schema.type === "integer" ? "whole number" : "number"}${range(schema)}`;
    case "string":
      if (schema.pattern) return `text that matches ${schema.pattern}`;
      return schema.maxLength ? `text of ${schema.minLength ?? 0} to ${schema.maxLength} characters` : "text";
    case "boolean":
      return "true or false";
    case "array":
      return `a list of ${schema.minItems ?? 0} to ${schema.maxItems} ${schema.uniqueItems ? "different " : ""}items`;
    case "object": {
      const fields = Object.keys(schema.properties ?? {});
      return fields.length > 0
        ? `an object with ${fields.slice(0, 6).join(", ")}${fields.length > 6 ? ", …" : ""}`
        : "an object";
    }
    default:
      return "a whole number or text such as 500m or 4Gi";
  }
}

function range({ minimum, maximum }: Schema): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  return minimum !== undefined ? ` of at least ${minimum}` : "";
}

/** Most paths that a message about an unknown field proposes: a name such as `name` occurs in dozens of objects. */
const MOST_GUESSES = 3;

function unknownField(field: string, at: Path, parent: Schema, schema: Schema): string {
  const near = nearest(field, Object.keys(parent.properties ?? {}));
  if (near) return `is unknown; did you mean ${near}?`;
  const elsewhere = nearestPaths(
    pathsOf(field, schema, "").filter((path) => !path.startsWith("status.")),
    at,
  );
  if (elsewhere.length > 0) return `is unknown; did you mean ${elsewhere.slice(0, MOST_GUESSES).join(" or ")}?`;
  const known = Object.keys(parent.properties ?? {}).join(", ");
  return `is unknown; remove it (${formatPath(at) || "a TrainingRun"} has ${known})`;
}

/** Returns the paths in the same part of the spec as `at`, if there are any, without those below others. */
function nearestPaths(paths: string[], at: Path): string[] {
  const part = `${formatPath(at.slice(0, 2))}.`;
  const same = paths.filter((path) => path.startsWith(part));
  const candidates = same.length > 0 ? same : paths;
  const depthOf = (path: string): number => path.split(".").length;
  const least = Math.min(...candidates.map(depthOf));
  return candidates.filter((path) => same.length === 0 || depthOf(path) === least);
}

function pathsOf(field: string, schema: Schema, at: string): string[] {
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const path = at ? `${at}.${name}` : name;
    return [...(name === field ? [path] : []), ...pathsOf(field, property, path)];
  });
  return schema.items ? [...below, ...pathsOf(field, schema.items, `${at}[0]`)] : below;
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN_VALUE_CHARACTERS ? `${text.slice(0, SHOWN_VALUE_CHARACTERS)}…` : text;
}
