/** `longrun evaluate`: a folder like a run's, whose `policies.json` says which weights are evaluated. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { evaluationsOf, type When } from "../metrics/summary.ts";
import { type Evaluating, evaluatePolicy } from "./evaluate.ts";

/**
 * Policies in the order of their evaluation: the number of finished iterations, and the checkpoint's folder. Without a folder: the model
 * folder's own weights.
 */
export type Policies = Partial<Record<When, { iteration: number; checkpoint?: string }>>;

const POLICIES = "policies.json";

/** Undefined in the folder of a run that trains. @throws Error in one line if the file is damaged */
export function readPolicies(directory: string): Policies | undefined {
  const path = join(directory, POLICIES);
  if (!existsSync(path)) return undefined;
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Policies;
  } catch (cause) {
    throw new Error(`${path} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** Evaluates each policy in turn, and none twice. @param load loads a checkpoint's weights @returns a line for people */
export async function evaluatePolicies(
  run: Evaluating,
  policies: Policies,
  load: (checkpoint: string) => Promise<void>,
): Promise<string> {
  for (const [when, { iteration, checkpoint }] of Object.entries(policies) as [When, NonNullable<Policies[When]>][]) {
    const known = evaluationsOf(run.files.summary.evaluation).filter((evaluation) => evaluation[when]);
    if (known.length === run.tasks.all.length) continue;
    if (checkpoint !== undefined) await load(checkpoint);
    run.progress.state = { ...run.progress.state, iteration };
    await evaluatePolicy(run, when);
  }
  return policies.model ? "the model was evaluated" : "the policies before and after training were evaluated";
}
