import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { configJson, type ModelConfig } from "./config.ts";
import { saveWeights } from "./files.ts";
import { generationGraph } from "./generate-graph.ts";
import { initialAdapter } from "./lora.ts";
import { MappedWeights } from "./mapped.ts";
import { initialWeights, parameters } from "./weights.ts";

const CONFIG: ModelConfig = {
  ...{
    modelType: "llama",
    vocabSize: 64,
    hiddenSize: 128,
    intermediateSize: 64,
    layers: 2,
    heads: 2,
    keyValueHeads: 1,
  },
  ...{ headSize: 64, normEpsilon: 1e-6, ropeTheta: 1e4, queryKeyValueBias: true, outputBias: true, maxPositions: 16 },
  ...{ tied: true, initializerRange: 0.1 },
};
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "generate-layers-"));
after(() => fs.rmSync(folder, { recursive: true }));
fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(CONFIG)));
const weights = initialWeights(CONFIG, 1);
const tensors = parameters(CONFIG).map((parameter) => ({ ...parameter, read: () => weights.get(parameter.name)! }));
saveWeights(folder, tensors, { dtype: "BF16" });

test("the graph of our own kernels adds every bias, with an adapter and without one", () => {
  const base = new MappedWeights(folder);
  const lora = { rank: 2, alpha: 2, targets: ["q_proj", "o_proj", "gate_proj", "down_proj"] as const };
  const adapter = { lora, weights: initialAdapter(CONFIG, lora, 1) };
  const how = { sampling: "greedy", compute: "bfloat16", cache: "bfloat16", joins: true } as const;
  for (const from of [{ base }, { base, adapter }]) {
    const { initializers, nodes } = generationGraph(base.config, from, { ...how, kernels: { has: () => true } });
    const read = new Set(nodes.flatMap(({ inputs }) => inputs));
    const used = initializers.flatMap(({ value: { name } }) => (read.has(name) ? name.split(",") : []));
    const biases = parameters(CONFIG).filter(({ kind }) => kind === "bias");
    assert.equal(biases.length, 8);
    assert.deepEqual(
      biases.filter(({ name }) => !used.includes(name)),
      [],
    );
  }
});
