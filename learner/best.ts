import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** The best valid sample so far, as it is kept for a person in `best/` of the run folder. */
export interface BestSample {
  id: string;
  iteration: number;
  program: string;
  plan: string;
  submission: Buffer;
  terminalOutput: string;
  score: number;
  metric: string;
  durationSeconds: number;
  family: string;
  /** What flagged the submission. */
  guards?: readonly string[];
}

/**
 * Writes `best/{program.py,submission.csv,output.txt,score.json}`. The folder is made whole beside the old one and
 * then takes its place, so a reader never sees a program with another program's score.
 */
export async function writeBest(runDirectory: string, best: BestSample): Promise<void> {
  const directory = join(runDirectory, "best");
  const next = `${directory}.next`;
  const old = `${directory}.old`;
  await rm(next, { recursive: true, force: true });
  await rm(old, { recursive: true, force: true });
  await mkdir(next);
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
