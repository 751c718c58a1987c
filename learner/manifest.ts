/** The manifest of a run: `trainingrun.yaml` in the run folder, or a newer one that replaces it. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { ManifestError, parseEarlier, parseResolved, parseTrainingRun, type TrainingRun } from "../crds/trainingrun.ts";

const MANIFEST = "trainingrun.yaml";

/**
 * @param newer file of a newer manifest. Fields that cannot change in a run that has begun must be as they were
 * @throws ManifestError, a line for each problem
 */
export function readManifest(runDirectory: string, newer?: string): TrainingRun {
  const path = join(runDirectory, MANIFEST);
  if (newer === undefined) {
    if (!existsSync(path)) throw new ManifestError([`${path} is missing; --run names the folder of a run`]);
    return parseResolved(readFileSync(path, "utf8"), path);
  }
  if (!existsSync(newer)) throw new ManifestError([`--manifest ${newer}: there is no such file`]);
  const before = existsSync(path) ? parseEarlier(readFileSync(path, "utf8"), path) : undefined;
  return parseTrainingRun(readFileSync(newer, "utf8"), newer, [], { before });
}

/** Writes the resolved manifest into the run folder, whole or not at all. Creates the folder if necessary. */
export function writeManifest(runDirectory: string, manifest: TrainingRun): void {
  mkdirSync(runDirectory, { recursive: true });
  const path = join(runDirectory, MANIFEST);
  const header = "# The resolved manifest of this run: every default is filled in.\n";
  const text = header + stringify(manifest, { aliasDuplicateObjects: false });
  if (existsSync(path) && readFileSync(path, "utf8") === text) return;
  writeFileSync(`${path}.new`, text, { flush: true });
  renameSync(`${path}.new`, path);
}
