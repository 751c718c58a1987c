/** The manifest of a run: `trainingrun.yaml` in the run folder, or a newer one that replaces it. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { resolvedText, withEarlierRange } from "../crds/resolved.ts";
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
  const text = readFileSync(newer, "utf8");
  const given = parseTrainingRun(text, newer);
  const kept = withEarlierRange(given, before);
  if (kept === given) return parseTrainingRun(text, newer, [], { before });
  // The run added the range itself: for the rules of change it was not there before.
  delete before!.spec.tasks[0]!.grader!.rewardRange;
  parseTrainingRun(text, newer, [], { before });
  return kept;
}

/**
 * Writes the resolved manifest into the run folder, whole or not at all. Creates the folder if necessary.
 *
 * @param note where an estimated rewardRange is from
 */
export function writeManifest(runDirectory: string, manifest: TrainingRun, note?: string): void {
  mkdirSync(runDirectory, { recursive: true });
  const path = join(runDirectory, MANIFEST);
  const earlier = existsSync(path) ? readFileSync(path, "utf8") : "";
  const text = resolvedText(manifest, { note, earlier });
  if (earlier === text) return;
  writeFileSync(`${path}.new`, text, { flush: true });
  renameSync(`${path}.new`, path);
}
