import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { checkBase } from "../../checkpoints.ts";
import { configJson, type ModelConfig } from "./config.ts";
import { saveWeights } from "./files.ts";
import { MappedWeights, modelIdentity } from "./mapped.ts";
import { initialWeights, parameters } from "./weights.ts";

const config: ModelConfig = {
  ...{ modelType: "qwen2", vocabSize: 64, hiddenSize: 32, intermediateSize: 96, layers: 2, heads: 2, keyValueHeads: 1 },
  ...{ headSize: 16, normEpsilon: 1e-6, ropeTheta: 1e4, tied: true, queryKeyValueBias: true, maxPositions: 64 },
  initializerRange: 0.02,
};
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "identity-"));
after(() => fs.rmSync(scratch, { recursive: true }));

/** @returns the identity of a folder of weights drawn with `seed` */
function write(
  name: string,
  { seed = 1, dtype = "F32" as "F32" | "BF16", shardBytes = 1e9, theta = 1e4 } = {},
): string {
  const folder = path.join(scratch, name);
  fs.mkdirSync(folder);
  fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson({ ...config, ropeTheta: theta })));
  const weights = initialWeights(config, seed);
  const tensors = parameters(config).map((parameter) => ({ ...parameter, read: () => weights.get(parameter.name)! }));
  saveWeights(folder, tensors, { dtype, shardBytes });
  return modelIdentity(new MappedWeights(folder));
}

test("a model's identity follows from its weights, not from its files or its sizes", () => {
  const base = write("base");
  assert.match(base, /^[0-9a-f]{64}$/);
  assert.equal(write("sharded", { shardBytes: 20_000 }), base);
  for (const [name, change] of Object.entries({
    seed: { seed: 2 },
    dtype: { dtype: "BF16" as const },
    theta: { theta: 1e6 },
  }))
    assert.notEqual(write(name, change), base, name);
});

test("adapters of another model are refused in one line; checkpoints without an identity are not", () => {
  const [one, other] = ["a".repeat(64), "b".repeat(64)];
  const checkpoint = path.join(scratch, "1-000003");
  fs.mkdirSync(checkpoint);
  const state = (value: string) => fs.writeFileSync(path.join(checkpoint, "state.json"), value);
  checkBase(checkpoint, one, "model"); // there is no state
  for (const silent of ['{"iteration": 3}', "{torn"]) {
    state(silent);
    checkBase(checkpoint, one, "model");
  }
  state(JSON.stringify({ iteration: 3, base: one }));
  checkBase(checkpoint, one, "model");
  checkBase(checkpoint, undefined, "model"); // every weight is trained
  assert.throws(() => checkBase(checkpoint, other, "models/base"), {
    name: "ModelError",
    message:
      /^models\/base is another model \(bbbbbbbbbbbb\) than the one \(aaaaaaaaaaaa\).*: put that one back, or begin a new run$/,
  });
});
