/** Model folders with random weights of any size, written tensor by tensor. */
import fs from "node:fs";
import path from "node:path";
import { configJson, type ModelConfig } from "../../learner/model/config.ts";
import { saveWeights } from "../../learner/model/save.ts";
import { elementCount, parameters } from "../../learner/model/weights.ts";
import { uniforms } from "../../learner/rng.ts";

/** Weights are repeated from a pool: what is measured does not depend on them. @returns the size of the weights' file, bytes */
export function writeRandomModel(folder: string, config: ModelConfig, dtype: "F32" | "BF16"): number {
  const next = uniforms(1, "weights");
  const pool = Float32Array.from({ length: 1 << 20 }, () => 0.05 * (next() - 0.5));
  const tensors = parameters(config).map(({ name, shape, kind }) => ({
    name,
    shape,
    read: () =>
      Float32Array.from({ length: elementCount(shape) }, (_, i) => (kind === "norm" ? 1 : pool[i % pool.length]!)),
  }));
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(config, { eos_token_id: 0 })));
  saveWeights(folder, tensors, { dtype, shardBytes: Number.MAX_SAFE_INTEGER });
  return fs.statSync(path.join(folder, "model.safetensors")).size;
}
