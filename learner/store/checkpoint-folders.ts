/** Finds a run's checkpoints from its folder alone. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

interface CheckpointFolder {
  /** `<lineage>-<iteration>` */
  readonly name: string;
  readonly lineage: number;
  readonly iteration: number;
}

/** Returns a run's complete checkpoints, newest first: a newer lineage continued from an older one. */
export function checkpointFolders(runDirectory: string): CheckpointFolder[] {
  const directory = join(runDirectory, "checkpoints");
  return (existsSync(directory) ? readdirSync(directory) : [])
    .map((name) => /^(\d+)-(\d+)$/.exec(name))
    .filter((match) => match !== null)
    .map(([name, lineage, iteration]) => ({ name, lineage: Number(lineage), iteration: Number(iteration) }))
    .sort((a, b) => b.lineage - a.lineage || b.iteration - a.iteration);
}
