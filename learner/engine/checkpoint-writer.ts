/** The thread that writes checkpoints from weights and moments in shared memory, which must not change until it is done. */
import path from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { type Adaptation, adaptationOf } from "./adaptation.ts";
import { serveCalls } from "./calls.ts";
import type { EngineOptions } from "./engine.ts";
import { Parameters } from "./graph/parameters.ts";
import { hasMasters } from "./microbatches.ts";
import { digestOf, type SharedState, writeCritic, writeMoments } from "./model-state.ts";

export class CheckpointWriter {
  readonly #model: Adaptation;
  readonly #masters: boolean;

  constructor(options: EngineOptions) {
    this.#model = adaptationOf(options.model, options.adapter);
    this.#masters = hasMasters(options);
  }

  /** Writes the folder of a checkpoint (engine.ts). @returns the digest of the state */
  write(directory: string, states: { policy: SharedState; critic: SharedState | undefined }): string {
    const policy = over(states.policy);
    const critic = states.critic && over(states.critic);
    this.#model.write(path.join(directory, "policy"), policy.weights, this.#masters ? "BF16" : "F32");
    writeMoments(path.join(directory, "policy-optimizer.safetensors"), policy, this.#masters);
    if (critic) {
      writeCritic(path.join(directory, "critic"), critic.weights);
      writeMoments(path.join(directory, "critic-optimizer.safetensors"), critic);
    }
    return digestOf({ policy, critic });
  }

  close(): void {}
}

const over = ({ shapes, weights, ...rest }: SharedState) => ({ weights: new Parameters(shapes, weights), ...rest });

if (parentPort) serveCalls(parentPort, () => new CheckpointWriter(workerData as EngineOptions));
