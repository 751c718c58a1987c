/** Writes model folders with random weights of any size, tensor by tensor. */
import fs from "node:fs";
import path from "node:path";
import { configJson, type ModelConfig } from "../../learner/engine/model/config.ts";
import { saveWeights } from "../../learner/engine/model/files.ts";
import { uniforms } from "../../learner/engine/model/random.ts";
import { elementCount, parameters } from "../../learner/engine/model/weights.ts";

/** A prime, so that no two rows of a matrix are equal: equal rows of the embedding would be equally likely tokens. */
const POOL = 1_048_573;

/**
 * Repeats weights from a pool, because measurements do not depend on them.
 *
 * @param eosIds tokens that end a response
 * @returns the size of the weights' file, in bytes
 */
export function writeRandomModel(
  folder: string,
  config: ModelConfig,
  dtype: "F32" | "BF16",
  eosIds: number | number[] = 0,
): number {
  const next = uniforms(1, "weights");
  const pool = Float32Array.from({ length: POOL }, () => 0.05 * (next() - 0.5));
  const tensors = parameters(config).map(({ name, shape, kind }) => ({
    name,
    shape,
    read: () => (kind === "norm" ? new Float32Array(elementCount(shape)).fill(1) : repeated(pool, elementCount(shape))),
  }));
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(config, { eos_token_id: eosIds })));
  saveWeights(folder, tensors, { dtype, shardBytes: Number.MAX_SAFE_INTEGER });
  return fs.statSync(path.join(folder, "model.safetensors")).size;
}

function repeated(pool: Float32Array, count: number): Float32Array {
  const numbers = new Float32Array(count);
  for (let at = 0; at < count; at += pool.length) numbers.set(pool.subarray(0, count - at), at);
  return numbers;
}
