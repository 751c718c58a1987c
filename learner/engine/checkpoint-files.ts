/** The files of a checkpoint: a thread writes them from shared memory, and they are read back into shared memory. */
import fs from "node:fs";
import path from "node:path";
import { type Adaptation, trainedShapes } from "./adaptation.ts";
import { WorkerThread } from "./calls.ts";
import type { CheckpointWriter } from "./checkpoint-writer.ts";
import type { EngineOptions } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { size } from "./fit.ts";
import { hasMasters } from "./microbatches.ts";
import { checkpointBytes, ModelState, readCritic, readMasters, readMoments, type TakenSteps } from "./model-state.ts";

export type States = { policy: ModelState; critic: ModelState | undefined };

/** Writes checkpoints in a thread, which starts with the first. */
export class CheckpointFiles {
  readonly #options: EngineOptions;
  #thread: WorkerThread<CheckpointWriter> | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
  }

  /**
   * Returns the digest of the state when all files are written. Until then the state must not change.
   * @throws EngineError `diskFull` at once
   */
  write(directory: string, { policy, critic }: States): Promise<string> {
    const kept = { moments: policy.steps > 0 || (critic?.steps ?? 0) > 0, masters: hasMasters(this.#options) };
    const bytes = checkpointBytes(policy.weights.shapes, critic?.weights.shapes, kept);
    const { bavail, bsize } = fs.statfsSync(fs.existsSync(directory) ? directory : path.dirname(directory));
    if (bytes > bavail * bsize) {
      const problem = `a checkpoint takes ${size(bytes)}, but ${size(bavail * bsize)} are free at ${directory}`;
      throw new EngineError("diskFull", problem);
    }
    const file = new URL("./checkpoint-writer.ts", import.meta.url);
    this.#thread ??= new WorkerThread<CheckpointWriter>(file, this.#options, "the thread that writes checkpoints");
    return this.#thread.calls.write(directory, { policy: policy.saved, critic: critic?.saved });
  }

  async close(): Promise<void> {
    await this.#thread?.calls.close();
  }
}

/**
 * Returns a checkpoint's contents. In an earlier version's checkpoint the policy folder has the float32 weights.
 *
 * @param policy the checkpoint must have its shapes @param wantsCritic false: the critic is not read
 * @throws EngineError, ModelError for files that are missing, damaged or of another model
 */
export function readCheckpoint(directory: string, model: Adaptation, policy: ModelState, wantsCritic: boolean) {
  const optimizer = path.join(directory, "policy-optimizer.safetensors");
  const masters = readMasters(optimizer, policy);
  const weights = masters.size > 0 ? masters : new Map(model.read(path.join(directory, "policy")));
  const taken: TakenSteps | undefined = readMoments(optimizer, policy);
  const folder = path.join(directory, "critic");
  if (!wantsCritic || !fs.existsSync(folder)) return { weights, taken };
  const critic = new ModelState(trainedShapes(model, "critic"));
  readCritic(folder, critic.weights);
  critic.restore(new Map(), readMoments(path.join(directory, "critic-optimizer.safetensors"), critic));
  return { weights, taken, critic };
}
