/** `--set path=value`: changes of a manifest from the command line. */
import { parseDocument } from "yaml";
import { ManifestError } from "./errors.ts";

export type Path = (string | number)[];

export interface Override {
  /** The argument as typed, e.g. `tasks[0].name=wage`. */
  text: string;
  path: Path;
  value: unknown;
}

const TOP_LEVEL = ["apiVersion", "kind", "metadata", "spec"];

/**
 * Parses `algorithm.batchSize=32`, `spec.tasks[0].name=wage` or `tasks.0.name=wage`. The path starts below `spec` unless
 * its first word is a field of the manifest itself; the value is YAML (`null` removes the field).
 *
 * @throws ManifestError when it is not of that form
 */
export function parseOverride(text: string): Override {
  const equals = text.indexOf("=");
  const path = equals > 0 ? parsePath(text.slice(0, equals)) : undefined;
  if (!path) throw problem(text, "write it as path=value, for example algorithm.batchSize=32 or tasks[0].name=wage");
  const document = parseDocument(text.slice(equals + 1));
  if (document.errors.length > 0) throw problem(text, "the value is not valid YAML; quote it");
  return { text, path: TOP_LEVEL.includes(String(path[0])) ? path : ["spec", ...path], value: document.toJS() };
}

/** A manifest has one of these two fields: setting one removes the other. */
const ALTERNATIVES = [
  ["spec.model.policy", "source"],
  ["spec.model.source", "policy"],
] as const;

/** Applies an override to a manifest in place. @throws ManifestError when the path leads through something else. */
export function applyOverride(manifest: unknown, { text, path, value }: Override): void {
  let parent = manifest;
  for (const [depth, key] of path.entries()) {
    const here = formatPath(path.slice(0, depth)) || "the manifest";
    if (Array.isArray(parent)) {
      if (typeof key !== "number" || key > parent.length)
        throw problem(text, `${here} is a list of ${parent.length}; give an index from 0 to ${parent.length}`);
    } else if (typeof parent !== "object" || parent === null) throw problem(text, `${here} has no fields`);
    const container = parent as Record<string | number, unknown>;
    if (depth < path.length - 1) {
      container[key] ??= typeof path[depth + 1] === "number" ? [] : {};
      parent = container[key];
    } else if (value !== null) {
      container[key] = value;
      const [, other] = ALTERNATIVES.find(([set]) => set === formatPath(path)) ?? [];
      if (other !== undefined) delete container[other];
    } else if (Array.isArray(container)) container.splice(Number(key), 1);
    else delete container[key];
  }
}

/** @returns `spec.tasks[0].name` */
export function formatPath(path: Path): string {
  return path.map((key, index) => (typeof key === "number" ? `[${key}]` : index === 0 ? key : `.${key}`)).join("");
}

function parsePath(text: string): Path | undefined {
  const keys = text.replace(/\[(\d+)\]/g, ".$1").split(".");
  if (keys.some((key) => !/^[A-Za-z0-9][-\w/]*$/.test(key))) return undefined;
  return keys.map((key) => (/^\d+$/.test(key) ? Number(key) : key));
}

function problem(text: string, remedy: string): ManifestError {
  return new ManifestError([`--set ${text}: ${remedy}`]);
}
