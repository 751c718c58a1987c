/** Where a run keeps its checkpoints, as whoever has only the run's folder finds them. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

export interface CheckpointFolder {
  /** `<lineage>-<iteration>` */
  readonly name: string;
  readonly lineage: number;
  readonly iteration: number;
}

/** Returns the whole checkpoints of a run, newest first: a newer lineage went on from an older one's. */
export function checkpointFolders(runDirectory: string): CheckpointFolder[] {
  const directory = join(runDirectory, "checkpoints");
  return (existsSync(directory) ? readdirSync(directory) : [])
    .map((name) => /^(\d+)-(\d+)$/.exec(name))
    .filter((match) => match !== null)
    .map(([name, lineage, iteration]) => ({ name, lineage: Number(lineage), iteration: Number(iteration) }))
    .sort((a, b) => b.lineage - a.lineage || b.iteration - a.iteration);
}
