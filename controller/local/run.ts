/** `longrun run`: a whole training run on this machine, with one learner process and as many actors as the work needs. */
import { existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import {
  onlyRun,
  parseEarlier,
  parseResolved,
  parseTrainingRun,
  readManifestFile,
  skippedText,
  type TrainingRun,
} from "../../crds/trainingrun.ts";
import { ControllerError, EXIT } from "../errors.ts";
import { readInput } from "../read-input.ts";
import { generatorArguments } from "./generators.ts";
import { fetchPolicy } from "./inputs/fetch-model.ts";
import { taskFolder } from "./inputs/prepare.ts";
import { resolveForThisMachine } from "./inputs/resolve.ts";
import { readRuntime, withRuntimeHere } from "./inputs/runtime.ts";
import { changesTasks, manifestOfTasks, refuseTwoTasks, tasksText } from "./inputs/task-manifest.ts";
import { checkAddresses, prepare, runLocalCommand, startBackend } from "./local-command.ts";
import { notifyWebhook } from "./notify.ts";
import type { RunOptions } from "./options.ts";
import {
  createRunFolder,
  holdRunFolder,
  MANIFEST,
  newRunFolder,
  releaseRunFolder,
  writeManifest,
} from "./run-folder.ts";
import type { Surroundings } from "./surroundings.ts";
import { readSummary, showEnd } from "./terminal/summary.ts";

/**
 * Trains as the manifest says, from start or resumed, until it is done or interrupted.
 *
 * @param file the manifest; not read when resuming, absent with a task folder
 * @returns the exit status
 * @throws ManifestError | ControllerError; no process is left behind, and no run folder when the input was bad
 */
export async function runLocally(file: string | undefined, options: RunOptions, around: Surroundings): Promise<number> {
  return runLocalCommand(options, around, async (local) => {
    const { terminal } = local;
    const hasNewTask = file === undefined && options.resume === undefined;
    const set = hasNewTask ? options.set.filter((each) => !changesTasks(each)) : options.set;
    const { source, skipped, chosen = [], ...read } = readRun(file, { ...options, set });
    let { run } = read;
    if (skipped !== undefined) around.stderr.write(`${skipped}\n`);
    await checkAddresses(local);
    const forGenerators = generatorArguments(options);
    if (options.replay !== undefined && !existsSync(options.replay))
      throw new ControllerError(
        "input",
        `--replay ${options.replay}: there is no such store; name a run's store.sqlite`,
      );

    const directory = options.resume ? resolve(options.resume) : newRunFolder(run, options.out, around.now());
    if (hasNewTask) {
      // A bundled task takes its settings from its folder. It is prepared after the other checks, because that takes time.
      const task: string[] = [];
      for (const given of options.task) task.push(await taskFolder(given, options.python, local.steps));
      ({ run } = readRun(file, { ...options, task }));
    }
    await fetchPolicy(run, local.steps);
    if (options.resume) {
      holdRunFolder(directory);
      local.atEnd(() => releaseRunFolder(directory));
      if (options.set.length === 0 && readSummary(directory)?.state === "succeeded") {
        around.stderr.write(
          `${directory}: this run is finished; to train on, raise its iterations (${run.spec.stopping.iterations}): --set stopping.iterations=N\n`,
        );
        showEnd(terminal, directory);
        return EXIT.done;
      }
    }
    const prepared = await prepare(local, run);
    if (!options.resume) createRunFolder(directory, run);
    else if (options.set.length > 0) writeManifest(directory, run);
    const { iterations } = run.spec.stopping;
    const length = `${iterations} ${iterations === 1 ? "iteration" : "iterations"} (stopping.iterations)`;
    terminal.line(
      `${options.resume ? "Resuming" : "Training"} ${run.metadata.name} on ${tasksText(run)} (${source}), ${length}, in ${directory}`,
    );
    if (chosen.length > 0) {
      terminal.line(
        `Chosen for the model's size and this machine, changed with --set, and written to ${join(directory, MANIFEST)}:`,
      );
      for (const line of chosen) terminal.line(`  ${line}`);
    }
    const command = around.env.npm_lifecycle_event ? "npm run longrun -- run" : "longrun run";
    const since = Date.now();
    try {
      return await startBackend(local, prepared, {
        run,
        directory,
        json: options.json,
        isNew: !options.resume,
        learnerArguments: [...forGenerators, ...(options.replay ? ["--replay", resolve(options.replay)] : [])],
        showEnd: () => showEnd(terminal, directory),
        goOn: `${command} --resume ${directory}`,
      });
    } finally {
      const say = (line: string): void => void around.stderr.write(`${line}\n`);
      await notifyWebhook(run, directory, { since, signal: local.steps.signal, say });
    }
  });
}

/** Returns the manifest, or the resolved manifest of an earlier run, with overrides. */
function readRun(
  file: string | undefined,
  options: RunOptions,
): { run: TrainingRun; source: string; skipped?: string | undefined; chosen?: readonly string[] | undefined } {
  const { task, model, resume, set } = options;
  const runtime = readRuntime(options.runtime);
  if (runtime && resume !== undefined)
    throw new ControllerError(
      "input",
      `--resume ${resume} continues with the manifest of that run, which has its runtime's defaults; leave out --runtime ${options.runtime}`,
    );
  if (model !== undefined && task.length === 0)
    throw new ControllerError(
      "input",
      `--model ${model}: on which task? give --task DIR, or --set model.policy=${model} with a manifest`,
    );
  if (task.length > 0) {
    const given = task.map((each) => `--task ${each}`).join(" ");
    if (resume !== undefined)
      throw new ControllerError(
        "input",
        `--resume ${resume} continues with the tasks of that run; leave out ${given} (to change them: --set tasks=…)`,
      );
    if (file !== undefined)
      throw new ControllerError(
        "input",
        `${file} and ${given} both define the task; leave out one of them, and change settings with --set`,
      );
    const { text, source, directory, chosen } = manifestOfTasks(task, model, { overrides: set });
    const run = withRuntimeHere(parseTrainingRun(text, source, set), source, runtime);
    return { run: resolveForThisMachine(run, source, directory), source, chosen };
  }
  const path = options.resume === undefined ? file : join(options.resume, MANIFEST);
  if (path === undefined)
    throw new ControllerError(
      "input",
      "give a manifest, --task DIR with a task folder, or --resume DIR with the folder of a run",
    );
  const directory = resolve(dirname(path));
  if (options.resume !== undefined) {
    const text = readInput(path, `--resume ${options.resume}: this is no run folder: `);
    return { run: resolveForThisMachine(readChanged(text, path, set), path, directory), source: path };
  }
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new ControllerError("input", `${path}: is a folder; give a manifest, or --task ${path} for a task folder`);
  const manifest = readManifestFile(readInput(path), path);
  const given = withRuntimeHere(parseTrainingRun(onlyRun(manifest, path), path, set), path, runtime);
  const run = resolveForThisMachine(given, path, directory);
  refuseTwoTasks(run, path, set);
  return { run, source: path, skipped: skippedText(manifest, path) };
}

/** Checks the changes of a resumed run: fields that may change while a run is suspended may change here. */
function readChanged(text: string, path: string, set: string[]): TrainingRun {
  const before = parseEarlier(text, path);
  before.spec.suspend = true;
  parseResolved(text, path, [...set, "suspend=true"], { before });
  return parseResolved(text, path, set);
}
