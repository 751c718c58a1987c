/** A TrainingRun for a task folder: the folder's `task.yaml` alone defines the task. */
import { existsSync, readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parse, stringify } from "yaml";
import { formatPath, parseOverride } from "../../../crds/overrides.ts";
import { isPolicyName, policyFolder } from "../../../crds/policy.ts";
import { ManifestError, parseTask, type Task, type TrainingRun } from "../../../crds/trainingrun.ts";
import { BUNDLED } from "../../bundled.ts";
import { ControllerError } from "../../errors.ts";
import { readTask } from "../exec.ts";
import { usableCores } from "../processes/cpus.ts";
import { difference } from "./difference.ts";
import { INCREASING_REWARDS } from "./increasing-rewards.ts";
import { defaultsFor, type Machine } from "./model-defaults.ts";
import { modelSize } from "./model-size.ts";
import { isBundledTask } from "./prepare.ts";

/** Model that `longrun run --task` trains without `--model`. */
const DEFAULT_MODEL = "quickstart";

/** A manifest's text, its name in errors, and the base folder of its relative paths. */
interface ManifestText {
  text: string;
  source: string;
  directory: string;
  /** What was chosen for the model and why, a line each; empty where its own manifest says it. */
  chosen?: readonly string[];
}

/** Longest name of a run in characters. */
const NAME_CHARACTERS = 40;

/**
 * Returns a TrainingRun on the tasks of folders. A bundled policy gets the settings of its own manifest, another policy those that suit
 * its size and the machine, with failure rewards that increase: it may write no valid program at first, and would have nothing to learn
 * from. On a GPU (`learner.device=CUDA` among the overrides) the schema's defaults stay.
 *
 * @param folders may have names of bundled tasks, whose folders are not prepared yet
 * @param model model folder, or the name of a bundled policy
 */
export function manifestOfTasks(
  folders: readonly string[],
  model = DEFAULT_MODEL,
  { overrides = [] as readonly string[], machine = thisMachine() } = {},
): ManifestText {
  for (const folder of folders)
    if (!isBundledTask(folder) && !existsSync(folder))
      throw new ControllerError("input", `--task ${folder}: there is no such folder; make one with longrun task init`);
  const policy = policyOf(model);
  const tasks = folders.map((folder): Partial<Task> & Pick<Task, "name"> =>
    isBundledTask(folder) ? { name: folder } : taskOfFolder(folder),
  );
  const { spec: base, ...kind } = baseOf(policy);
  const size =
    hasOwnManifest(policy) || isOnGpu(overrides)
      ? undefined
      : modelSize(policyFolder(policy, "--model", process.cwd()));
  const suits = size && defaultsFor(size, machine);
  const set = overrides.map((override) => formatPath(parseOverride(override).path).replace(/^spec\./, ""));
  const isSet = (field: string) =>
    set.some((path) => `${field}.`.startsWith(`${path}.`) || path.startsWith(`${field}.`));
  const known = suits && { ...suits.spec, ...base, model: { ...suits.spec.model, ...base.model } };
  const spec = known ?? base;
  if (!hasOwnManifest(policy)) for (const task of tasks) task.failureRewards ??= { ...INCREASING_REWARDS };
  const settings = { ...spec, tasks, model: { ...spec.model, policy } };
  const names = tasks.map(({ name }) => name);
  const name = names.length === 1 ? names[0] : names.join("-").slice(0, NAME_CHARACTERS).replace(/-$/, "");
  const text = stringify({ ...kind, metadata: { name }, spec: settings }, { aliasDuplicateObjects: false });
  return {
    text,
    source: folders.map((folder) => `--task ${folder}`).join(" "),
    directory: process.cwd(),
    chosen: suits?.reasons.filter(({ fields }) => !fields.some(isSet)).map(({ text }) => text) ?? [],
  };
}

const isOnGpu = (overrides: readonly string[]): boolean =>
  overrides.some(
    (override) => /^(spec\.)?learner\.device=.*CUDA/.test(override) || /^(spec\.)?learner=.*CUDA/.test(override),
  );

/** Memory of the container, where there is one with a limit. */
const thisMachine = (): Machine => ({
  cores: usableCores().length,
  memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
});

type Base = { apiVersion: string; kind: string; spec: { model?: object } };

const ownManifest = (policy: string): string =>
  join(dirname(policyFolder(policy, "--model", process.cwd())), "trainingrun.yaml");
const hasOwnManifest = (policy: string): boolean => isPolicyName(policy) && existsSync(ownManifest(policy));

function baseOf(policy: string): Base {
  if (hasOwnManifest(policy)) return parse(readFileSync(ownManifest(policy), "utf8")) as Base;
  return { apiVersion: "longrun.dev/v1alpha1", kind: "TrainingRun", spec: knownPrompts(policy) };
}

/** Returns the prompt style: a policy that `longrun pretrain` made knows only short prompts. */
export function knownPrompts(policy: string): object {
  const folder = policyFolder(policy, "--model", process.cwd());
  if (!existsSync(join(folder, "corpus.hashes"))) return {};
  return {
    prompts: { style: "Short" },
    model: { policy, maxPromptTokens: 256, maxResponseTokens: 256 },
  };
}

/**
 * Returns the name of a bundled policy, or the absolute path of a folder; an existing folder takes precedence.
 *
 * @throws ControllerError `input` if there is neither
 */
export function policyOf(model: string): string {
  if (existsSync(join(model, "config.json"))) return resolve(model);
  if (existsSync(model))
    throw new ControllerError(
      "input",
      `--model ${model}: has no config.json; give a model folder in Hugging Face format`,
    );
  if (BUNDLED.policies.some((name) => name === model)) return model;
  throw new ControllerError(
    "input",
    `--model ${model}: there is no such folder, and no bundled policy of this name; there is ${BUNDLED.policies.join(", ")}`,
  );
}

/** Returns the task of a prepared folder, with its data. @param given the folder as the user wrote it */
export function taskOfFolder(given: string): Task {
  const prepared = join(resolve(given), "prepared");
  return {
    ...readTask(resolve(given), given),
    publicData: { path: join(prepared, "public") },
    privateData: { path: join(prepared, "private") },
  };
}

/** Whether a `PATH=VALUE` of `--set` changes a task. */
export const changesTasks = (override: string): boolean => /^(spec\.)?tasks\b/.test(override);

/**
 * Refuses a manifest whose task contradicts the `task.yaml` beside its data.
 *
 * @param overrides as typed after `--set`; they take precedence over both files
 * @throws ManifestError in one line that names both
 */
export function refuseTwoTasks({ spec }: TrainingRun, source: string, overrides: readonly string[]): void {
  if (overrides.some(changesTasks)) return;
  for (const [index, task] of spec.tasks.entries()) refuseOtherTask(task, index, source);
}

function refuseOtherTask({ publicData, privateData: _, weight: __, ...stated }: Task, index: number, source: string) {
  if (publicData?.path === undefined || !/\bprepared\/public\/?$/.test(publicData.path)) return;
  const folder = join(publicData.path, "../..");
  const path = join(folder, "task.yaml");
  if (!existsSync(path)) return;
  const { publicData: ___, privateData: ____, weight: _____, ...own } = parseTask(readFileSync(path, "utf8"), path);
  const differs = difference(stated, own, "");
  if (differs === undefined) return;
  throw new ManifestError([
    `${source} and ${path} both define the task, and differ: spec.tasks[${index}].${differs}; make them the same, or ` +
      `use task.yaml alone: longrun run --task ${folder}`,
  ]);
}

/** Returns the names of a run's tasks for people: `task diamonds`, `tasks diamonds, movie and wage`. */
export function tasksText({ spec }: TrainingRun): string {
  const names = new Intl.ListFormat("en-GB").format(spec.tasks.map(({ name }) => name));
  return `${spec.tasks.length === 1 ? "task" : "tasks"} ${names}`;
}
