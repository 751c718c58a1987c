import { existsSync, readFileSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunContext, TrainerState } from "./context.ts";
import { type Engine, ModelError } from "./engine/index.ts";
import { Phase } from "./server/status.ts";
import type { CheckpointRow } from "./store/types.ts";

const STATE = "state.json";

type Saved = Awaited<ReturnType<typeof saveCheckpoint>>;

/** The checkpoints of a run: folders on the disk, written while the run goes on. Each counts once the store has its row. */
export class Checkpoints {
  readonly #run: RunContext;
  readonly #engine: Engine;
  /** the newest checkpoint, until the store has it */
  #pending: Promise<void> = Promise.resolve();
  #written: { seconds: number; bytes: number } | undefined;

  constructor(run: RunContext, engine: Engine) {
    this.#run = run;
    this.#engine = engine;
  }

  /**
   * Begins to write the current weights; they may change when this returns. `keep` then waits for them.
   *
   * @throws EngineError `diskFull` where there is no room for them
   */
  async begin(state: Omit<TrainerState, "digest">): Promise<{ written: Promise<Saved> }> {
    const { directory, store } = this.#run;
    store.checkFence();
    const { promise: taken, resolve } = Promise.withResolvers<void>();
    const written = saveCheckpoint(directory, this.#engine, store.lineage, state, resolve);
    written.catch(() => {}); // `keep` has it, unless the run ends before
    await Promise.race([taken, written]);
    return { written };
  }

  /** Commits a checkpoint of the store's newest iteration once it is written, and removes older ones. `settled` says how that ended. */
  keep(iteration: number, written: Promise<Saved>): void {
    const { directory, store, status, spec, log } = this.#run;
    const startedAt = performance.now();
    this.#pending = written.then(async (checkpoint) => {
      this.#written = { seconds: (performance.now() - startedAt) / 1000, bytes: checkpoint.bytes };
      store.checkFence();
      store.commitCheckpoint({ iteration, ...checkpoint });
      await pruneCheckpoints(directory, store.keepCheckpoints(spec.learner.checkpoint.keepLast));
      const { digest, path } = checkpoint;
      status.update({ checkpoint: { iteration, digest, path } });
    });
    this.#pending.catch((error: Error) => log.error({ err: error, iteration }, "a checkpoint could not be written"));
  }

  /** Waits until the newest checkpoint is in the store. @throws the error of its writing */
  async settled(): Promise<void> {
    await this.#pending;
  }

  /** Returns seconds and bytes of the checkpoint that was written since the last call. */
  takeWritten(): { seconds: number; bytes: number } | undefined {
    const written = this.#written;
    this.#written = undefined;
    return written;
  }

  /** Writes the newest finished iteration, unless it is on disk or there is none. */
  async bringToDisk(): Promise<void> {
    const { store, status, progress } = this.#run;
    const { iteration } = progress.state;
    await this.settled();
    if (iteration > 0 && store.checkpoints()[0]?.iteration !== iteration) {
      status.update({ phase: Phase.CHECKPOINTING, phaseTotal: 1 });
      this.keep(iteration, (await this.begin(progress.state)).written);
      await this.settled();
    }
    const [newest] = store.checkpoints();
    if (newest) status.update({ checkpoint: newest });
  }
}

/**
 * Writes `checkpoints/<lineage>-<iteration>/` whole or not at all: under another name, renamed when every file is on disk.
 *
 * @param taken called when the engine's weights may change
 */
export async function saveCheckpoint(
  runDirectory: string,
  engine: Engine,
  lineage: number,
  state: Omit<TrainerState, "digest">,
  taken?: () => void,
): Promise<{ path: string; digest: string; bytes: number }> {
  const path = join("checkpoints", `${lineage}-${String(state.iteration).padStart(6, "0")}`);
  const directory = join(runDirectory, path);
  const partial = `${directory}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { recursive: true });
  const { digest } = await engine.save(partial, taken);
  await writeFile(join(partial, STATE), `${JSON.stringify({ ...state, digest }, null, 2)}\n`);
  const bytes = await syncTree(partial);
  await rm(directory, { recursive: true, force: true });
  await rename(partial, directory);
  return { path, digest, bytes };
}

/**
 * Refuses adapters that were trained with another model: the policy would write nonsense. Checkpoints of earlier versions of
 * longrun do not name their model. @param base `modelIdentity` of `model`, where adapters are trained. @throws ModelError `weights`
 */
export function checkBase(directory: string, base: string | undefined, model: string): void {
  const file = join(directory, STATE);
  if (base === undefined || !existsSync(file)) return;
  let trained: string | undefined;
  try {
    trained = (JSON.parse(readFileSync(file, "utf8")) as Partial<TrainerState>).base;
  } catch {
    return; // It is damaged; loadCheckpoint reports that.
  }
  if (trained === undefined || trained === base) return;
  const [here, there] = [base.slice(0, 12), trained.slice(0, 12)];
  const models = `${model} is another model (${here}) than the one (${there}) that the adapters in ${directory}`;
  throw new ModelError("weights", `${models} were trained with: put that one back, or begin a new run`);
}

/** Loads a checkpoint into the engine. Returns undefined if a file is missing or damaged, or the digest is another. */
export async function loadCheckpoint(
  runDirectory: string,
  engine: Engine,
  row: Pick<CheckpointRow, "path" | "digest">,
  onInvalid: (reason: string) => void,
): Promise<TrainerState | undefined> {
  try {
    const directory = join(runDirectory, row.path);
    const text = await readFile(join(directory, STATE), "utf8");
    const { iteration, elapsedSeconds, base } = JSON.parse(text) as TrainerState;
    await engine.load(directory);
    const digest = await engine.digest();
    if (digest !== row.digest) throw new Error(`its digest is ${digest}, the store has ${row.digest}`);
    return { iteration, elapsedSeconds, digest, ...(base !== undefined && { base }) };
  } catch (error) {
    onInvalid(`checkpoint ${row.path} is not used: ${(error as Error).message}`);
    return undefined;
  }
}

/** Removes all checkpoint folders, partial ones too, except `keep` (paths relative to the run folder). */
export async function pruneCheckpoints(runDirectory: string, keep: readonly string[]): Promise<void> {
  const kept = new Set(keep.map((path) => path.slice("checkpoints/".length)));
  for (const name of await readdir(join(runDirectory, "checkpoints"))) {
    if (!kept.has(name)) await rm(join(runDirectory, "checkpoints", name), { recursive: true, force: true });
  }
}

/** Syncs every file below `directory`, and the folders, to the disk. @returns the bytes of all files */
async function syncTree(directory: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    bytes += entry.isDirectory() ? await syncTree(path) : await sync(path);
  }
  await sync(directory);
  return bytes;
}

/** @returns the size in bytes */
async function sync(path: string): Promise<number> {
  await using file = await open(path, "r");
  await file.sync();
  return (await file.stat()).size;
}
