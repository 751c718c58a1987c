/** The folder of work that trains nothing: like a run's, plus a file with settings of its own. The same command continues the work. */
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withEarlierRange } from "../../crds/resolved.ts";
import { parseEarlier, type TrainingRun } from "../../crds/trainingrun.ts";
import { checkFolder } from "../../proto/folders.ts";
import { ControllerError } from "../errors.ts";
import { difference } from "./inputs/difference.ts";
import { createRunFolder, holdRunFolder, MANIFEST, writeManifest } from "./run-folder.ts";
import { readSummary } from "./terminal/summary.ts";

export interface Work {
  run: TrainingRun;
  /** Name of the file with the settings. */
  file: string;
  settings: object;
  /** Settings that may change when the work continues, such as `budget` or `endpoint.prices`. */
  free?: readonly string[];
  /** For errors: `an evaluation`. */
  what: string;
  /** Fields of the manifest on which the numbers depend; the others may change when the work continues. */
  fields: readonly (keyof TrainingRun["spec"])[];
  /** Fields within these that may change nevertheless, such as `model.maxPromptTokens`. */
  freeFields?: readonly string[];
}

export function createWorkFolder(directory: string, { run, file, settings }: Work): void {
  createRunFolder(directory, run);
  writeSettings(directory, file, settings);
}

/**
 * Opens the folder. Takes it if it contains unfinished work (`begun`), or work that was finished with other `free` settings.
 *
 * @returns `new`: the folder must be created
 * @throws ControllerError `input` if it contains something else, or work with other settings; FolderError if it cannot be made
 */
export function openWorkFolder(directory: string, work: Work): "new" | "begun" | "done" {
  const { file, what, fields, free = [], freeFields = [] } = work;
  if (existsSync(directory) && !statSync(directory).isDirectory()) throw refusal(directory, "is a file; name a folder");
  if (!existsSync(directory) || readdirSync(directory).length === 0) {
    checkFolder(directory, "--out");
    return "new";
  }
  const manifest = join(directory, MANIFEST);
  const settings = join(directory, file);
  if (!existsSync(manifest) || !existsSync(settings))
    throw refusal(directory, `the folder is not empty, and no ${nounOf(what)} is in it; choose another one`);
  const earlier = parseEarlier(readFileSync(manifest, "utf8"), manifest);
  const pick = ({ spec }: TrainingRun) =>
    without(Object.fromEntries(fields.map((field) => [field, spec[field]])), freeFields);
  const run = withEarlierRange(work.run, earlier);
  const known = JSON.parse(readFileSync(settings, "utf8")) as object;
  const given = JSON.parse(JSON.stringify(work.settings)) as object;
  const name = file.replace(/\.json$/, "");
  const then = { ...pick(earlier), [name]: without(known, free) };
  const now = JSON.parse(JSON.stringify({ ...pick(run), [name]: without(given, free) }));
  const differs = difference(then, now, "");
  if (differs)
    throw refusal(directory, `has ${what} whose ${differs}; choose another folder with --out, or remove this one`);
  const isSame = difference(known, given, "") === undefined;
  if (isSame && readSummary(directory)?.state === "succeeded") return "done";
  holdRunFolder(directory);
  writeManifest(directory, run);
  if (!isSame) writeSettings(directory, file, work.settings);
  return "begun";
}

function writeSettings(directory: string, file: string, settings: object): void {
  const path = join(directory, file);
  writeFileSync(`${path}.new`, `${JSON.stringify(settings, null, 2)}\n`, { flush: true });
  renameSync(`${path}.new`, path);
}

/** Returns the settings without fields at these paths. */
const without = (settings: object, paths: readonly string[], parent = ""): object =>
  Object.fromEntries(
    Object.entries(settings)
      .filter(([name]) => !paths.includes(parent + name))
      .map(([name, value]) => [
        name,
        paths.some((path) => path.startsWith(`${parent}${name}.`)) ? without(value, paths, `${parent}${name}.`) : value,
      ]),
  );
const nounOf = (what: string): string => what.replace(/^an? /, "");
const refusal = (directory: string, what: string) => new ControllerError("input", `--out ${directory}: ${what}`);
