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
  if (text.trim() === "") {
    const cause = Object.assign(new Error("nobody writes an empty manifest"), { code: "emptied" });
    throw new ManifestError([`--manifest ${newer} is empty: the controller restores the run's ConfigMap`], { cause });
  }
  const given = parseTrainingRun(text, newer);
  const kept = withEarlierRange(given, before);
  // The rules of change must not see the ranges that the run itself has added.
  for (const { name, grader } of before?.spec.tasks ?? []) {
    const is = (task: { name: string }) => task.name === name;
    if (kept.spec.tasks.find(is)?.grader?.rewardRange && !given.spec.tasks.find(is)?.grader?.rewardRange)
      delete grader?.rewardRange;
  }
  // It was used when the run began; a run that takes over the volume (initFrom.volume) has none.
  if (given.spec.initFrom === undefined) delete before?.spec.initFrom;
  checkChange(text, newer, before);
  return kept;
}

/** A run was suspended until its learner starts, so settings that may change during a suspension may have changed. */
function checkChange(text: string, source: string, before: TrainingRun | undefined): void {
  if (before) before.spec.suspend = true;
  parseTrainingRun(text, source, before ? ["suspend=true"] : [], { before });
}

/**
 * Writes the resolved manifest into the run folder, whole or not at all. Creates the folder if necessary.
 *
 * @param notes where the estimated rewardRange of a task is from, by the task's name
 */
export function writeManifest(
  runDirectory: string,
  manifest: TrainingRun,
  notes: Readonly<Record<string, string>> = {},
): void {
  mkdirSync(runDirectory, { recursive: true });
  const path = join(runDirectory, MANIFEST);
  const earlier = existsSync(path) ? readFileSync(path, "utf8") : "";
  const text = resolvedText(manifest, { notes, earlier });
  if (earlier === text) return;
  writeFileSync(`${path}.new`, text, { flush: true });
  renameSync(`${path}.new`, path);
}
