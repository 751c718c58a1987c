/** The folder of an evaluation: like a run's, plus `policies.json`. */
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withEarlierRange } from "../../../crds/resolved.ts";
import { parseEarlier } from "../../../crds/trainingrun.ts";
import { checkFolder } from "../../../proto/folders.ts";
import { ControllerError } from "../../errors.ts";
import { difference } from "../inputs/difference.ts";
import { createRunFolder, holdRunFolder, MANIFEST, writeManifest } from "../run-folder.ts";
import { readSummary } from "../terminal/summary.ts";
import type { EvaluationPlan } from "./evaluation-plan.ts";

const POLICIES = "policies.json";
/** Settings on which the numbers depend; the others may change when the evaluation continues. */
const SETTINGS = ["seed", "tasks", "model", "prompts", "evaluation"] as const;

export function createEvaluationFolder(directory: string, { run, policies }: EvaluationPlan): void {
  createRunFolder(directory, run);
  const path = join(directory, POLICIES);
  writeFileSync(`${path}.new`, `${JSON.stringify(policies, null, 2)}\n`, { flush: true });
  renameSync(`${path}.new`, path);
}

/**
 * Opens the folder. Takes it if it contains an unfinished evaluation (`begun`).
 *
 * @returns `new`: the folder must be created
 * @throws ControllerError `input` if it contains something else, or an evaluation with other settings; FolderError if it cannot be made
 */
export function openEvaluationFolder(directory: string, plan: EvaluationPlan): "new" | "begun" | "done" {
  if (existsSync(directory) && !statSync(directory).isDirectory()) throw refusal(directory, "is a file; name a folder");
  if (!existsSync(directory) || readdirSync(directory).length === 0) {
    checkFolder(directory, "--out");
    return "new";
  }
  const manifest = join(directory, MANIFEST);
  const policies = join(directory, POLICIES);
  if (!existsSync(manifest) || !existsSync(policies))
    throw refusal(directory, "the folder is not empty, and no evaluation is in it; choose another one");
  const earlier = parseEarlier(readFileSync(manifest, "utf8"), manifest);
  const pick = ({ spec }: typeof earlier) => Object.fromEntries(SETTINGS.map((field) => [field, spec[field]]));
  const run = withEarlierRange(plan.run, earlier);
  const now = { ...pick(run), policies: plan.policies };
  const then = { ...pick(earlier), policies: JSON.parse(readFileSync(policies, "utf8")) };
  const differs = difference(then, JSON.parse(JSON.stringify(now)), "");
  if (differs)
    throw refusal(
      directory,
      `has an evaluation whose ${differs}; choose another folder with --out, or remove this one`,
    );
  if (readSummary(directory)?.state === "succeeded") return "done";
  holdRunFolder(directory);
  writeManifest(directory, run);
  return "begun";
}

const refusal = (directory: string, what: string) => new ControllerError("input", `--out ${directory}: ${what}`);
