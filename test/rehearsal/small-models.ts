/** Models that are small enough for the stand-in's arithmetic. */
import assert from "node:assert/strict";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { configJson, type ModelConfig } from "../../learner/engine/model/config.ts";
import { saveWeights } from "../../learner/engine/model/files.ts";
import { uniforms } from "../../learner/engine/model/random.ts";
import { elementCount, parameters } from "../../learner/engine/model/weights.ts";

export const QWEN2: ModelConfig = {
  ...{ modelType: "qwen2", normEpsilon: 1e-6, ropeTheta: 1e6, tied: true, queryKeyValueBias: true },
  ...{ layers: 2, hiddenSize: 32, intermediateSize: 48, heads: 4, keyValueHeads: 2, headSize: 8 },
  ...{ vocabSize: 97, maxPositions: 256, initializerRange: 0.2 },
};
type Stored = "F32" | "BF16" | "F16";

/** Every weight is random, including biases and norms. @param dtypes of the weights, in turn; each has a file */
export function writeModel(folder: string, config: ModelConfig, ...dtypes: Stored[]): void {
  const next = uniforms(1, "weights");
  const random = (around: number) => () => around + 2 * config.initializerRange * (next() - 0.5);
  const tensors = parameters(config).map(({ name, shape, kind }) => {
    const data = Float32Array.from({ length: elementCount(shape) }, random(kind === "norm" ? 1 : 0));
    return { name, shape, read: () => data };
  });
  mkdirSync(folder);
  writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(config, { eos_token_id: 0 })));
  if (dtypes.length === 1) return void saveWeights(folder, tensors, { dtype: dtypes[0]! });
  const files: Record<string, string> = {};
  for (const [turn, dtype] of dtypes.entries()) {
    const own = tensors.filter((_, at) => at % dtypes.length === turn);
    saveWeights(folder, own, { dtype });
    renameSync(path.join(folder, "model.safetensors"), path.join(folder, `${dtype}.safetensors`));
    for (const { name } of own) files[name] = `${dtype}.safetensors`;
  }
  writeFileSync(path.join(folder, "model.safetensors.index.json"), JSON.stringify({ weight_map: files }));
}

/** Checks that each number of the second is near the first one's, by name. */
export function assertNear(
  cuda: Record<string, ArrayLike<number>>,
  cpu: Record<string, ArrayLike<number>>,
  tolerance: number,
): void {
  for (const [name, numbers] of Object.entries(cpu)) {
    assert.equal(cuda[name]!.length, numbers.length, name);
    for (let i = 0; i < numbers.length; i++) {
      const difference = Math.abs(cuda[name]![i]! - numbers[i]!) / Math.max(1, Math.abs(numbers[i]!));
      assert.ok(difference <= tolerance, `${name}[${i}] is ${cuda[name]![i]}, on the CPU ${numbers[i]}`);
    }
  }
}
