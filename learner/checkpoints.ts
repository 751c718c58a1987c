import { existsSync, readFileSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import type { Engine } from "./engine/engine.ts";
import { ModelError } from "./engine/model/errors.ts";
import { Phase, type StatusBoard } from "./server/status.ts";
import type { Store } from "./store/store.ts";
import type { CheckpointRow } from "./store/types.ts";

/** What a resumed run needs besides weights and optimiser state. */
export interface TrainerState {
  iteration: number;
  /** Seconds that the run had taken, interruptions left out. */
  elapsedSeconds: number;
  /** Of the engine's state, as `Engine.digest` computes it. */
  digest: string;
  /** Where adapters are trained: `modelIdentity` of the frozen model that they belong to. */
  base?: string;
}

const STATE = "state.json";

export interface CheckpointsOptions {
  directory: string;
  engine: Engine;
  store: Store;
  status: StatusBoard;
  keepLast: TrainingRunSpec["learner"]["checkpoint"]["keepLast"];
}

/** The checkpoints of a run: folders on the disk, each of which counts once the store has its row. */
export class Checkpoints {
  readonly #options: CheckpointsOptions;

  constructor(options: CheckpointsOptions) {
    this.#options = options;
  }

  /** Writes the weights as they are. The caller commits the row in the store, and then prunes. */
  save(state: Omit<TrainerState, "digest">): ReturnType<typeof saveCheckpoint> {
    const { directory, engine, store } = this.#options;
    store.checkFence();
    return saveCheckpoint(directory, engine, store.lineage, state);
  }

  /** Brings the newest finished iteration to the disk, if it is not there. @returns undefined before the first one */
  async bringToDisk(state: Omit<TrainerState, "digest">): Promise<CheckpointRow | undefined> {
    const { store, status } = this.#options;
    const { iteration } = state;
    if (iteration > 0 && store.checkpoints()[0]?.iteration !== iteration) {
      store.checkFence();
      status.update({ phase: Phase.CHECKPOINTING, phaseTotal: 1 });
      store.commitCheckpoint({ iteration, ...(await this.save(state)) });
      await this.prune();
    }
    const [newest] = store.checkpoints();
    if (newest) status.update({ checkpoint: newest });
    return newest;
  }

  /** Removes the checkpoints beyond `learner.checkpoint.keepLast`. */
  async prune(): Promise<void> {
    const { directory, store, keepLast } = this.#options;
    await pruneCheckpoints(directory, store.keepCheckpoints(keepLast));
  }
}

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
 * Adapters beside another model than they were trained with would go on, and write nonsense. Checkpoints of earlier versions
 * do not say which it was.
 *
 * @param base `modelIdentity` of `model`, where adapters are trained
 * @throws ModelError `weights` if the checkpoint in `directory` belongs to another model
 */
export function checkBase(directory: string, base: string | undefined, model: string): void {
  const file = join(directory, STATE);
  if (base === undefined || !existsSync(file)) return;
  let trained: string | undefined;
  try {
    trained = (JSON.parse(readFileSync(file, "utf8")) as Partial<TrainerState>).base;
  } catch {
    return; // torn, which the reader of the whole checkpoint says
  }
  if (trained === undefined || trained === base) return;
  throw new ModelError(
    "weights",
    `${model} is another model (${base.slice(0, 12)}) than the one (${trained.slice(0, 12)}) that the adapters in ${directory} ` +
      "were trained with: put that one back, or begin a new run",
  );
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
    const { iteration, elapsedSeconds, base } = JSON.parse(
      await readFile(join(directory, STATE), "utf8"),
    ) as TrainerState;
    await engine.load(directory);
    const digest = await engine.digest();
    if (digest !== row.digest) throw new Error(`its digest is ${digest}, the store has ${row.digest}`);
    return { iteration, elapsedSeconds, digest, ...(base !== undefined && { base }) };
  } catch (error) {
    onInvalid(`checkpoint ${row.path} is not used: ${(error as Error).message}`);
    return undefined;
  }
}

/** Loads the weights of a checkpoint's folder, of whichever run. @throws Error if a file is missing, torn or changed */
export async function loadFolder(engine: Engine, directory: string): Promise<void> {
  const { digest } = JSON.parse(await readFile(join(directory, STATE), "utf8")) as TrainerState;
  await loadCheckpoint(dirname(directory), engine, { path: basename(directory), digest }, (reason) => {
    throw new Error(`${directory} cannot be evaluated: ${reason}`);
  });
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
