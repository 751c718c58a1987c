import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Sample } from "../store/types.ts";
import type { PrivateFacts } from "./private-score.ts";

/** A valid sample with its program, for people; with a private part also what is known of its private score. */
export type BestSample = NonNullable<ReturnType<typeof bestSampleOf>> & Partial<PrivateFacts>;

/** @returns undefined if the sample is not valid, or its submission was deleted */
export function bestSampleOf(sample: Sample, submission: Buffer | undefined, metric: string) {
  const { id, iteration, program, plan, result, grade } = sample;
  if (result === undefined || grade?.score === undefined || program === undefined || submission === undefined)
    return undefined;
  const { terminalOutput, durationSeconds } = result;
  const { score, family = "other", guards } = grade;
  return { id, iteration, program, plan, submission, metric, terminalOutput, score, durationSeconds, family, guards };
}

/**
 * Writes `{program.py,submission.csv,output.txt,score.json}` into a new folder, which then replaces the old one, so that a reader never
 * sees a program with another program's score.
 */
export async function writeBest(directory: string, best: BestSample): Promise<void> {
  const next = `${directory}.next`;
  const old = `${directory}.old`;
  await rm(next, { recursive: true, force: true });
  await rm(old, { recursive: true, force: true });
  await mkdir(next, { recursive: true });
  const { program, submission, terminalOutput, ...facts } = best;
  await writeFile(join(next, "program.py"), program);
  await writeFile(join(next, "submission.csv"), submission);
  await writeFile(join(next, "output.txt"), terminalOutput);
  await writeFile(join(next, "score.json"), `${JSON.stringify(facts, null, 2)}\n`);
  await rename(directory, old).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  await rename(next, directory);
  await rm(old, { recursive: true, force: true });
}
