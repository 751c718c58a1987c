/** Prepares the tasks' folders and the Python environment for programs. Both are kept for later runs. */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import type { Actors, Task } from "../../../crds/trainingrun.ts";
import { cacheFolder } from "../../../proto/cache-folder.ts";
import { BUNDLED, isTaskName } from "../../bundled.ts";
import { ControllerError } from "../../errors.ts";
import { askPart } from "../../part-process.ts";
import type { Parts } from "../../parts.ts";

export interface Steps {
  parts: Parts;
  signal: AbortSignal;
  env: NodeJS.ProcessEnv;
  /** Shows what begins. */
  step: (text: string) => void;
  /** Shows the progress. */
  progress: (text: string) => void;
}

export interface PythonEnvironment {
  directory: string;
  python: string;
  created: boolean;
}

/** Creates the programs' Python environment, or finds the one of an earlier run. */
export function preparePython(
  python: string | undefined,
  packages: Actors["packages"],
  { parts, signal, env, step, progress }: Steps,
): Promise<PythonEnvironment> {
  step("Preparing the Python environment");
  const args = [...(python ? ["--python", python] : []), ...(packages ? ["--packages", packages] : [])];
  return askPart<PythonEnvironment>(parts.pythonEnvironment, args, {
    signal,
    env,
    onStderrLine: (line) => progress(`Preparing the Python environment: ${line}`),
  });
}

/** Creates or finds the folder of a bundled task. @returns the folder with task.yaml and prepared/ */
export async function prepareBundledTask(
  name: string,
  python: string,
  { parts, signal, env, step, progress }: Steps,
): Promise<string> {
  step(`Preparing task ${name}`);
  const out = join(cacheFolder(env), "tasks");
  const args = ["--task", name, "--out", out, "--python", python];
  const { directory } = await askPart<{ directory: string }>(parts.prepareTask, args, {
    signal,
    env,
    onStderrLine: (line) => progress(`Preparing task ${name}: ${line}`),
  });
  return directory;
}

/**
 * Whether `--task` names a bundled task: the word has no slash and no dot, and no folder has this name.
 *
 * @throws ControllerError `input` if there is no bundled task of this name
 */
export function isBundledTask(task: string): boolean {
  if (/[/.]/.test(task) || existsSync(task)) return false;
  if (isTaskName(task)) return true;
  throw new ControllerError(
    "input",
    `--task ${task}: there is no such folder, and no bundled task of this name; there are ${BUNDLED.tasks.join(", ")}`,
  );
}

/** Returns the folder of `--task`: the given one, or the prepared one of a bundled task. */
export async function taskFolder(task: string, python: string | undefined, steps: Steps): Promise<string> {
  if (!isBundledTask(task)) return task;
  const environment = await preparePython(python, undefined, steps);
  return prepareBundledTask(task, environment.python, steps);
}

/** Creates an actor's folder of a task, with a link to the public data alone: actors never see answers. */
export function layOutPublicData(name: string, taskFolder: string, parent: string): void {
  const directory = join(parent, name);
  mkdirSync(join(directory, "prepared"), { recursive: true });
  symlinkSync(join(taskFolder, "prepared", "public"), join(directory, "prepared", "public"));
}

/** Creates the folder of a custom task below `parent` like a bundled task's: links to its data, its grader in task.yaml. */
export function layOutCustomTask(task: Task, parent: string): string {
  const directory = join(parent, task.name);
  mkdirSync(join(directory, "prepared"), { recursive: true });
  symlinkSync(task.publicData!.path!, join(directory, "prepared", "public"));
  symlinkSync(task.privateData!.path!, join(directory, "prepared", "private"));
  writeFileSync(join(directory, "task.yaml"), stringify(task));
  return directory;
}
