import { mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Engine } from "./ppo/engine.ts";
import type { CheckpointRow } from "./store/types.ts";

/** What a resumed run needs besides weights and optimiser state. */
export interface TrainerState {
  iteration: number;
  /** Of the adaptive KL controller. */
  klCoefficient: number;
  /** Seconds that the run had taken, interruptions left out. */
  elapsedSeconds: number;
  /** Of the engine's state, as `Engine.digest` computes it. */
  digest: string;
}

const STATE = "state.json";

/**
 * Writes `checkpoints/<lineage>-<iteration>/` whole or not at all: into a folder of another name that is renamed when
 * every file in it is on disk. The caller then commits it in the store; until then nothing refers to it.
 */
export async function saveCheckpoint(
  runDirectory: string,
  engine: Engine,
  lineage: number,
  state: Omit<TrainerState, "digest">,
): Promise<{ path: string; digest: string; bytes: number }> {
  const path = join("checkpoints", `${lineage}-${String(state.iteration).padStart(6, "0")}`);
  const directory = join(runDirectory, path);
  const partial = `${directory}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { recursive: true });
  const { digest } = await engine.save(partial);
  await writeFile(join(partial, STATE), `${JSON.stringify({ ...state, digest }, null, 2)}\n`);
  const bytes = await syncTree(partial);
  await rm(directory, { recursive: true, force: true });
  await rename(partial, directory);
  return { path, digest, bytes };
}

/**
 * Loads a checkpoint into the engine, or undefined if it is not what the store committed: a file is missing, torn, or
 * the digest of what was loaded is another.
 */
export async function loadCheckpoint(
  runDirectory: string,
  engine: Engine,
  row: Pick<CheckpointRow, "path" | "digest">,
  onInvalid: (reason: string) => void,
): Promise<TrainerState | undefined> {
  try {
    const directory = join(runDirectory, row.path);
    const state = JSON.parse(await readFile(join(directory, STATE), "utf8")) as TrainerState;
    await engine.load(directory);
    const digest = await engine.digest();
    if (digest !== row.digest) throw new Error(`its digest is ${digest}, the store has ${row.digest}`);
    return state;
  } catch (error) {
    onInvalid(`checkpoint ${row.path} is not used: ${(error as Error).message}`);
    return undefined;
  }
}

/** Removes all checkpoint folders but those in `keep` (paths relative to the run folder), partial ones included. */
export async function pruneCheckpoints(runDirectory: string, keep: readonly string[]): Promise<void> {
  const kept = new Set(keep.map((path) => path.slice("checkpoints/".length)));
  for (const name of await readdir(join(runDirectory, "checkpoints"))) {
    if (!kept.has(name)) await rm(join(runDirectory, "checkpoints", name), { recursive: true, force: true });
  }
}

/** Brings every file below `directory`, and the folders themselves, to the disk. @returns bytes in all */
async function syncTree(directory: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) {
      bytes += await syncTree(path);
      continue;
    }
    const file = await open(path, "r");
    bytes += (await file.stat()).size;
    await file.sync();
    await file.close();
  }
  const folder = await open(directory, "r");
  await folder.sync();
  await folder.close();
  return bytes;
}
