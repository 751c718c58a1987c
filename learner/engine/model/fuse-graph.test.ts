import assert from "node:assert/strict";
import { test } from "node:test";
import { tensor } from "../graph/tensor.ts";
import { createSession } from "../runtime/runtime.ts";
import type { ModelConfig } from "./config.ts";
import { FusedWeights } from "./fuse.ts";
import { fuseGraph, joinedParameters } from "./fuse-graph.ts";
import { initialWeights, parameters } from "./weights.ts";

const CONFIG: ModelConfig = {
  ...{ modelType: "qwen2", vocabSize: 5, hiddenSize: 6, intermediateSize: 10, layers: 2 },
  ...{ heads: 4, keyValueHeads: 2, headSize: 8, normEpsilon: 1e-6, ropeTheta: 10000, tied: true },
  ...{ queryKeyValueBias: true, maxPositions: 8, initializerRange: 1 },
};

test("matrices are joined by a graph as they are here, bit for bit", async () => {
  for (const [config, joined] of [
    [CONFIG, ["qkv", "qkvBias", "gateUp"]],
    [{ ...CONFIG, queryKeyValueBias: false, queryKeyNorm: true }, ["qkv", "headNorms", "gateUp"]],
    [{ ...CONFIG, queryKeyValueBias: false, keyValueHeads: 4, headSize: 2 }, ["qkv", "gateUp"]],
  ] as const) {
    const weights = initialWeights(config, 1);
    for (const values of weights.values()) for (const i of values.keys()) values[i]! += Math.fround(Math.sin(i + 1));
    const shapes = parameters(config);
    const feeds = Object.fromEntries(shapes.map(({ name, shape }) => [name, tensor(weights.get(name)!, shape)]));
    const session = await createSession(fuseGraph(config), { threads: 1 });
    const results = await session.run(feeds);
    await session.release();
    const expected = new FusedWeights(config).fuse(weights);
    const names = joinedParameters(config).map(({ name }) => name);
    assert.deepEqual([...new Set(names.map((name) => name.split(".")[1]!))], joined);
    assert.deepEqual(
      Object.keys(results),
      names.map((name) => `weights.${name}`),
    );
    for (const { name, shape } of joinedParameters(config)) {
      assert.deepEqual(results[`weights.${name}`]!.data, expected.get(name), name);
      assert.deepEqual([...results[`weights.${name}`]!.shape], shape);
    }
  }
});
