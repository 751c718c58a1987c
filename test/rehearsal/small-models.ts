/** Models that are small enough for the stand-in's arithmetic. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
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
/** Every weight is random, including biases and norms. */
export function writeModel(folder: string, config: ModelConfig, dtype: "F32" | "BF16" | "F16"): void {
  const next = uniforms(1, "weights");
  const random = (around: number) => () => around + 2 * config.initializerRange * (next() - 0.5);
  const tensors = parameters(config).map(({ name, shape, kind }) => {
    const data = Float32Array.from({ length: elementCount(shape) }, random(kind === "norm" ? 1 : 0));
    return { name, shape, read: () => data };
  });
  mkdirSync(folder);
  writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(config, { eos_token_id: 0 })));
  saveWeights(folder, tensors, { dtype });
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
