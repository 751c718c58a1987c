/** Reads TrainingRun manifests: YAML, `--set` overrides, the CRD's schema with its defaults, and the rules that cross fields. */
import { isMap, isPair, isScalar, type Node } from "yaml";
import { ManifestError } from "./errors.ts";
import { fillAndCompare } from "./faults.ts";
import { firstLineOf, type ManifestObject, onlyRun, readManifestFile, readObjects } from "./manifest-file.ts";
import { applyOverride, formatPath, type Override, type Path, parseOverride } from "./overrides.ts";
import { describeFaults, type Problem } from "./problems.ts";
import { dropRemovedFields, dropRemovedValues } from "./removed.ts";
import { brokenRules, type RuleOptions } from "./rules.ts";
import { type Schema, strictSchema } from "./schema.ts";
import type {
  ActorPodTemplate,
  GeneratorPodTemplate,
  LearnerPodTemplate,
  Task,
  TrainingRun,
} from "./trainingrun.generated.ts";

export { ManifestError } from "./errors.ts";
export { type ManifestFile, onlyRun, readManifestFile, skippedText } from "./manifest-file.ts";
export type * from "./trainingrun.generated.ts";
export type PodTemplate = LearnerPodTemplate | ActorPodTemplate | GeneratorPodTemplate;

/**
 * @param manifest an object of a manifest file, or the text of a file with exactly one TrainingRun; others are skipped
 * @param source its name in errors, usually the file's name
 * @param overrides as typed after `--set`, e.g. `algorithm.batchSize=32`; later ones win
 * @param options the rules to check in addition to the general ones
 * @returns the resolved TrainingRun: validated, every default filled in
 * @throws ManifestError with a line for each problem: `file:line: path is value; remedy`
 */
export function parseTrainingRun(
  manifest: string | ManifestObject,
  source: string,
  overrides: string[] = [],
  options: RuleOptions = {},
): TrainingRun {
  const object = typeof manifest === "string" ? onlyRunOf(manifest, source) : manifest;
  return parseObject(object, source, overrides.map(parseOverride), trainingRun(), options) as TrainingRun;
}

const onlyRunOf = (text: string, source: string) => onlyRun(readManifestFile(text, source), source);

/**
 * Like `parseTrainingRun`, for the manifest of a run folder. An earlier version may have resolved it, with the defaults of
 * fields that were removed since; these are left out.
 */
export function parseResolved(
  text: string,
  source: string,
  overrides: string[] = [],
  options: RuleOptions = {},
): TrainingRun {
  const parsed = overrides.map(parseOverride);
  const object = onlyRunOf(text, source);
  return parseObject(object, source, parsed, trainingRun(), options, dropRemovedFields) as TrainingRun;
}

/**
 * Like `parseResolved`, for a manifest that a newer one replaces. Values that were removed since become defaults, so that
 * the newer manifest can correct them.
 */
export function parseEarlier(text: string, source: string): TrainingRun {
  const drop = (manifest: unknown): void => {
    dropRemovedFields(manifest);
    dropRemovedValues(manifest);
  };
  return parseObject(onlyRunOf(text, source), source, [], trainingRun(), {}, drop) as TrainingRun;
}

/**
 * Reads a task folder's `task.yaml`, which has the shape of one item of `spec.tasks`.
 *
 * @throws ManifestError like `parseTrainingRun`
 */
export function parseTask(text: string, source: string): Task {
  const [object, second] = readObjects(text, source);
  if (second)
    throw new ManifestError([`${source}:${firstLineOf(second)}: a second YAML document begins here; remove it`]);
  return parseObject(object!, source, [], specField("tasks").items!) as Task;
}

const once = <T>(make: () => T): (() => T) => {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
};
const trainingRun = once(strictSchema);
const specField = (name: string): Schema => trainingRun().properties!.spec!.properties![name]!;

/**
 * Returns the problems for which the API server would refuse a podTemplate. The server has not seen the additions of a TrainingRuntime,
 * nor new fields if its CRD is older than the controller.
 *
 * @returns one sentence a problem
 */
export function podTemplateProblems(part: "learner" | "actors", podTemplate: PodTemplate | undefined): string[] {
  if (podTemplate === undefined) return [];
  const schema = specField(part).properties!.podTemplate!;
  const faults = fillAndCompare(podTemplate, schema);
  const problems =
    faults.length > 0 ? describeFaults(faults, schema) : brokenRules(podTemplate, schema, { cluster: true });
  return problems.map(({ path, text }) => `${formatPath(["spec", part, "podTemplate", ...path])} ${text}`);
}

/** @throws ManifestError with a line for each problem */
export function parseObject(
  object: ManifestObject,
  source: string,
  overrides: Override[],
  schema: Schema,
  options: RuleOptions = {},
  drop: (manifest: unknown) => void = () => {},
): unknown {
  const { contents, document } = object;
  const label = object.label === "" ? "" : `${object.label}: `;
  const manifest = contents.toJS(document) as unknown;
  drop(manifest);
  for (const override of overrides) applyOverride(manifest, override);

  const place = (path: Path): string => {
    // An override also created the missing parents of its path in the document.
    const made = (o: Override) => isPrefix(path, o.path) && !contents.hasIn(path);
    const override = overrides.findLast((o) => o.value !== null && (isPrefix(o.path, path) || made(o)));
    return override ? `--set ${override.text}` : `${source}:${lineOf(object, path)}`;
  };
  const refuse = (problems: Problem[]): void => {
    if (problems.length === 0) return;
    throw new ManifestError(
      problems.map(({ path, text }) => `${place(path)}: ${label}${formatPath(path) || "the manifest"} ${text}`),
    );
  };
  refuse(describeFaults(fillAndCompare(manifest, schema), schema));
  refuse(brokenRules(manifest, schema, options));
  return manifest;
}

function isPrefix(prefix: Path, path: Path): boolean {
  return prefix.every((key, index) => key === path[index]);
}

/** @returns the line of the innermost part of the path that the object has, keys preferred over values */
function lineOf({ contents, lines }: ManifestObject, path: Path): number {
  let node: unknown = contents;
  let offset = contents.range?.[0] ?? 0;
  for (const key of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isPair(item) && isScalar(item.key) && item.key.value === key);
      if (!pair) break;
      offset = (pair.key as Node).range?.[0] ?? offset;
      node = pair.value;
    } else {
      const item = (node as { items?: Node[] } | null)?.items?.[Number(key)];
      if (!item) break;
      offset = item.range?.[0] ?? offset;
      node = item;
    }
  }
  return lines.linePos(offset).line;
}
