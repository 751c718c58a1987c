/**
 * Copies another run's checkpoint, for `spec.initFrom.run` on Kubernetes, where a learner only mounts its own volume.
 *
 *     node learner/copy-checkpoint.ts --from RUN-FOLDER --to FOLDER [--iteration N]
 *
 * The default is the newest checkpoint of the newest lineage. The copy is complete or absent, like a checkpoint folder; it replaces an
 * earlier copy. Exit status: 0 done, 1 failed, 2 no such checkpoint.
 */
import { cp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { checkpointFolders } from "./store/checkpoint-folders.ts";

/** @returns the folder's name. @throws Error if there is none */
export function findCheckpoint(runDirectory: string, iteration?: number): string {
  const folders = checkpointFolders(runDirectory);
  const found = folders.find((it) => iteration === undefined || it.iteration === iteration);
  if (found) return found.name;
  const wanted = iteration === undefined ? "a checkpoint" : `the checkpoint of iteration ${iteration}`;
  const names = folders.map(({ name }) => name).sort();
  const known = names.length === 0 ? "there is none" : `there are ${names.join(", ")}`;
  throw new Error(`${join(runDirectory, "checkpoints")} does not have ${wanted}: ${known}; change spec.initFrom`);
}

export async function copyCheckpoint(runDirectory: string, target: string, iteration?: number): Promise<string> {
  const name = findCheckpoint(runDirectory, iteration);
  const partial = `${target}.partial`;
  await rm(partial, { recursive: true, force: true });
  await cp(join(runDirectory, "checkpoints", name), partial, { recursive: true });
  await rm(target, { recursive: true, force: true });
  await rename(partial, target);
  return name;
}

async function main(): Promise<number> {
  const options = { from: { type: "string" }, to: { type: "string" }, iteration: { type: "string" } } as const;
  const { from, to, iteration } = parseArgs({ options }).values;
  if (!from || !to) {
    process.stderr.write("--from and --to are needed: a run folder, and where the checkpoint goes\n");
    return 2;
  }
  try {
    const name = await copyCheckpoint(from, to, iteration === undefined ? undefined : Number(iteration));
    process.stdout.write(`copied checkpoint ${name} of ${from} to ${to}\n`);
    return 0;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return (error as NodeJS.ErrnoException).code === undefined ? 2 : 1;
  }
}

if (import.meta.main) process.exitCode = await main();
