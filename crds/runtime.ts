/** TrainingRuntimes: their manifests, and a run with a runtime's defaults. */
import { isDeepStrictEqual } from "node:util";
import { ManifestError } from "./errors.ts";
import { fillAndCompare } from "./faults.ts";
import { isRuntime, type ManifestObject, readObjects } from "./manifest-file.ts";
import { formatPath } from "./overrides.ts";
import { describeFaults, type Problem } from "./problems.ts";
import { brokenRules, type RuleOptions } from "./rules.ts";
import { RUNTIME_FIELDS, type RuntimeSpec, type TrainingRuntime } from "./runtime-fields.ts";
import { limitProblems } from "./runtime-limits.ts";
import { strictRuntimeSchema } from "./runtime-schema.ts";
import { readSchema, type Schema, strictSchema } from "./schema.ts";
import { mergeStrategically } from "./strategic-merge.ts";
import { parseObject, type Resources, type Results, type TrainingRun } from "./trainingrun.ts";

export type { RuntimeSpec, TrainingRuntime } from "./runtime-fields.ts";

/** Kueue's label, which a run may have instead of spec.queueName. */
export const QUEUE_NAME = "kueue.x-k8s.io/queue-name";

/** Fields that a run adds to, instead of replacing them. */
const MERGED = ["podTemplate", "env", "inheritedMetadata"];

type Json = Record<string, unknown>;
/** A run of a manifest, or one that is stored. */
type AnyRun = Pick<TrainingRun, "apiVersion" | "kind" | "spec"> & {
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
};

/**
 * Returns the run with the defaults of a runtime. A run's own value has precedence; one that equals the schema's default counts as left
 * out, because the API server fills it in. `resources` are the run's own or the runtime's as a whole.
 *
 * @param without paths of fields that keep the run's value, such as `learner.storage.className`
 */
export function withRuntime<Run extends AnyRun>(
  run: Run,
  defaults: RuntimeSpec | undefined,
  without: readonly string[] = [],
): Run {
  if (defaults === undefined) return run;
  let spec = run.spec as unknown as Json;
  for (const [path, names] of Object.entries(RUNTIME_FIELDS)) {
    const own = partAt(spec, path);
    const given = partAt(defaults as unknown as Json, path);
    if (own === undefined || given === undefined) continue;
    const schema = schemaAt(path);
    const changed: Json = {};
    for (const name of names) {
      if (given[name] === undefined || without.includes(path === "" ? name : `${path}.${name}`)) continue;
      if (name === "queueName" && run.metadata.labels?.[QUEUE_NAME]) continue;
      const byDefault = name === "results" ? inOwnFolder(given[name] as Results, run.metadata) : given[name];
      const value = chosen(name, own[name], byDefault, schema.properties![name]!.default);
      if (value !== own[name]) changed[name] = value;
    }
    spec = replaced(spec, path, { ...own, ...changed });
  }
  return { ...run, spec };
}

/** Returns the destination with a folder for each run below the runtime's prefix, because a folder has the results of one run. */
function inOwnFolder({ s3, ...results }: Results, { namespace, name }: AnyRun["metadata"]): Results {
  const prefix = [s3.prefix, namespace, name].filter((part) => part !== undefined).join("/");
  return { ...results, s3: { ...s3, prefix } };
}

function chosen(name: string, own: unknown, byDefault: unknown, preset: unknown): unknown {
  if (own === undefined) return byDefault;
  if (MERGED.includes(name)) return mergeStrategically(byDefault, own, name);
  const isLeftOut = /[rR]esources$/.test(name) ? isEmpty(own as Resources) : isDeepStrictEqual(own, preset);
  return isLeftOut ? byDefault : own;
}

/** Whether there are neither requests nor limits nor claims. */
export const isEmpty = ({ requests = {}, limits = {}, claims = [] }: Resources): boolean =>
  Object.keys({ ...requests, ...limits }).length + claims.length === 0;

const stepsOf = (path: string): string[] => (path === "" ? [] : path.split("."));

const partAt = (whole: Json, path: string): Json | undefined =>
  stepsOf(path).reduce<Json | undefined>((part, name) => part?.[name] as Json | undefined, whole);

function replaced(whole: Json, path: string, part: Json): Json {
  const [name, ...rest] = stepsOf(path);
  return name === undefined ? part : { ...whole, [name]: replaced(whole[name] as Json, rest.join("."), part) };
}

let spec: Schema | undefined;
function schemaAt(path: string): Schema {
  spec ??= readSchema().properties!.spec!;
  return stepsOf(path).reduce((part, name) => part.properties![name]!, spec);
}

/**
 * Returns why the runtime refuses the run: its limits, then rules of TrainingRuns that the run breaks only with the runtime's defaults.
 *
 * @param run as its author wrote it
 * @param merged the run with the runtime's defaults
 * @returns one sentence a problem, which names field and value
 */
export function runtimeProblems(
  run: AnyRun,
  merged: AnyRun,
  { limits }: RuntimeSpec,
  options: RuleOptions = {},
): string[] {
  const beyond = limits ? limitProblems(run, merged, limits) : [];
  if (beyond.length > 0) return beyond;
  const problems = problemsOf(merged, options);
  const known = problems.length > 0 ? problemsOf(run, options) : [];
  return problems.filter((problem) => !known.includes(problem));
}

let schema: Schema | undefined;
function problemsOf({ apiVersion, kind, metadata: { name, labels }, spec }: AnyRun, options: RuleOptions) {
  schema ??= strictSchema();
  const run = structuredClone({ apiVersion, kind, metadata: { name, ...(labels && { labels }) }, spec });
  const faults = describeFaults(fillAndCompare(run, schema), schema);
  return textsOf(faults.length > 0 ? faults : brokenRules(run, schema, options));
}

const textsOf = (problems: Problem[]): string[] => problems.map(({ path, text }) => `${formatPath(path)} ${text}`);

/**
 * Reads the manifest of a TrainingRuntime.
 *
 * @throws ManifestError with a line for each problem
 */
export function parseRuntime(text: string, source: string): TrainingRuntime {
  const runtimes = readObjects(text, source).filter(isRuntime);
  const [runtime, second] = runtimes;
  if (!runtime || second)
    throw new ManifestError([
      `${source}: has ${runtimes.length} TrainingRuntimes; give a file with one object of apiVersion longrun.dev/v1alpha1 and kind TrainingRuntime`,
    ]);
  return checkRuntimeObject(runtime, source);
}

/** @throws ManifestError with a line for each problem */
export function checkRuntimeObject(object: ManifestObject, source: string): TrainingRuntime {
  return parseObject(object, source, [], strictRuntimeSchema(), { cluster: true }) as TrainingRuntime;
}
