/** `longrun validate` without `--cluster`: the folders and lengths of a manifest, as `longrun run` looks at them. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { stringify } from "yaml";
import { ManifestError, type TrainingRun } from "../../crds/trainingrun.ts";
import { ControllerError } from "../errors.ts";
import { askPart } from "../part-process.ts";
import type { Parts } from "../parts.ts";
import { layOutCustomTask } from "./prepare.ts";
import { KUBERNETES_ONLY, resolveForThisMachine } from "./resolve.ts";
import { refuseTwoTasks } from "./task-manifest.ts";

/** @throws ManifestError | ControllerError `input`: what `longrun run` would refuse before it trains */
export async function validateHere(
  run: TrainingRun,
  source: string,
  overrides: readonly string[],
  parts: Parts,
): Promise<void> {
  const here = resolvedHere(run, source);
  refuseTwoTasks(here, source, overrides);
  const temporary = mkdtempSync(join(tmpdir(), "longrun-validate-"));
  try {
    const manifest = join(temporary, "trainingrun.yaml");
    writeFileSync(manifest, stringify(here, { aliasDuplicateObjects: false }));
    // A bundled task may not be prepared yet.
    const folders = here.spec.tasks
      .filter(({ publicData }) => publicData)
      .flatMap((task) => ["--task", `${task.name}=${layOutCustomTask(task, join(temporary, "task"))}`]);
    await askPart(parts.validate, ["--manifest", manifest, ...folders]);
  } catch (error) {
    if (!(error instanceof ControllerError)) throw error;
    throw new ControllerError(error.code, `${source}: ${error.message}`, { cause: error });
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

function resolvedHere(run: TrainingRun, source: string): TrainingRun {
  try {
    return resolveForThisMachine(run, source, resolve(dirname(source)));
  } catch (error) {
    if (!(error instanceof ManifestError) || !error.message.includes(KUBERNETES_ONLY)) throw error;
    throw new ManifestError([`${error.message}; to check it for Kubernetes, add --cluster`], { cause: error });
  }
}
