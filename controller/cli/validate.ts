/** `longrun validate`: checks manifests against schema and rules, and their folders and lengths like `longrun run`. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { stringify } from "yaml";
import { checkRuntimeObject } from "../../crds/runtime.ts";
import {
  ManifestError,
  onlyRun,
  parseEarlier,
  parseTrainingRun,
  readManifestFile,
  skippedText,
  type TrainingRun,
} from "../../crds/trainingrun.ts";
import { ControllerError } from "../errors.ts";
import { layOutCustomTask } from "../local/inputs/prepare.ts";
import { KUBERNETES_ONLY, resolveForThisMachine } from "../local/inputs/resolve.ts";
import { checkRuntime, readRuntime, withRuntimeHere } from "../local/inputs/runtime.ts";
import { refuseTwoTasks } from "../local/inputs/task-manifest.ts";
import { askPart } from "../part-process.ts";
import type { Parts } from "../parts.ts";
import { readInput } from "../read-input.ts";
import type { ValidateOptions } from "./run-folder-options.ts";

/**
 * Checks every TrainingRun and TrainingRuntime of the files. Prints a line for each valid one, and a line about a file's other objects.
 *
 * @throws ManifestError with a line for each problem of all files; ControllerError
 */
export async function validate(
  files: readonly string[],
  { set, cluster, replaces, runtime: runtimeFile }: ValidateOptions,
  parts: Parts,
  say: (line: string) => void,
): Promise<void> {
  if (replaces !== undefined && files.length > 1)
    throw new ControllerError("input", `--replaces ${replaces}: give one FILE, not ${files.length}`);
  const before = replaces === undefined ? undefined : parseEarlier(readInput(replaces), replaces);
  const runtime = readRuntime(runtimeFile);
  const problems: string[] = [];
  const collectProblems = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof ManifestError || (error as ControllerError).code === "input")) throw error;
      problems.push((error as Error).message);
    }
  };
  for (const file of files)
    await collectProblems(async () => {
      const manifest = readManifestFile(readInput(file), file, before === undefined);
      for (const object of manifest.runtimes) {
        const { name } = checkRuntimeObject(object, file).metadata;
        say(`${file}: TrainingRuntime ${name} is valid`);
      }
      const runs = before ? [onlyRun(manifest, file)] : manifest.runs;
      for (const object of runs)
        await collectProblems(async () => {
          const own = parseTrainingRun(object, file, set, { cluster, before });
          if (runtime && cluster) checkRuntime(own, file, runtime);
          const run = cluster ? own : withRuntimeHere(own, file, runtime);
          const warnings = !cluster && !before ? await validateHere(run, file, object.label, set, parts) : [];
          for (const warning of warnings) say(`${file}: warning: ${warning}`);
          say(`${file}: TrainingRun ${run.metadata.name} is valid`);
        });
      const skipped = skippedText(manifest, file);
      if (skipped) say(skipped);
    });
  if (problems.length > 0) throw new ManifestError(problems);
}

/** Makes the checks of `longrun run` before training. @returns warnings, a line each @throws ManifestError | ControllerError `input` */
async function validateHere(
  run: TrainingRun,
  file: string,
  label: string,
  overrides: readonly string[],
  parts: Parts,
): Promise<string[]> {
  const source = label === "" ? file : `${file}: ${label}`;
  const here = resolvedHere(run, source, resolve(dirname(file)));
  refuseTwoTasks(here, source, overrides);
  const temporary = mkdtempSync(join(tmpdir(), "longrun-validate-"));
  try {
    const manifest = join(temporary, "trainingrun.yaml");
    writeFileSync(manifest, stringify(here, { aliasDuplicateObjects: false }));
    // A bundled task may not be prepared yet.
    const folders = here.spec.tasks
      .filter(({ publicData }) => publicData)
      .flatMap((task) => ["--task", `${task.name}=${layOutCustomTask(task, join(temporary, "task"))}`]);
    const args = ["--manifest", manifest, ...folders];
    const { warnings } = await askPart<{ warnings: string[] }>(parts.validate, args);
    return warnings;
  } catch (error) {
    if (!(error instanceof ControllerError)) throw error;
    throw new ControllerError(error.code, `${source}: ${error.message}`, { cause: error });
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

function resolvedHere(run: TrainingRun, source: string, directory: string): TrainingRun {
  try {
    return resolveForThisMachine(run, source, directory);
  } catch (error) {
    if (!(error instanceof ManifestError) || !error.message.includes(KUBERNETES_ONLY)) throw error;
    throw new ManifestError([`${error.message}; to check it for Kubernetes, add --cluster`], { cause: error });
  }
}
