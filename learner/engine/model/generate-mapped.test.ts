import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import type { OpNode } from "../graph/graph.ts";
import { logProbsOf } from "../log-probs.fixture.ts";
import { Session } from "../runtime/session.ts";
import { configJson, type ModelConfig } from "./config.ts";
import { saveWeights } from "./files.ts";
import { readModelFolder } from "./folder.fixture.ts";
import { Generator } from "./generate.ts";
import { generationGraph } from "./generate-graph.ts";
import { CAST_NUMBERS } from "./generate-weights.ts";
import { adapterParameters, initialAdapter, type LoraConfig } from "./lora.ts";
import { MappedWeights } from "./mapped.ts";
import { elementCount, initialWeights, parameters } from "./weights.ts";
import { wideBytes, wideMatrices } from "./widened.ts";

/** The embedding has more numbers than are cast at a time, so that its product is made of several. */
const base: ModelConfig = {
  ...{ modelType: "qwen2", vocabSize: 20_000, hiddenSize: 128, intermediateSize: 192, layers: 2, heads: 4 },
  ...{ keyValueHeads: 2, headSize: 32, normEpsilon: 1e-6, ropeTheta: 1e4, queryKeyValueBias: true, maxPositions: 128 },
  ...{ tied: true, initializerRange: 0.1 },
};
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "generate-mapped-"));
after(() => fs.rmSync(scratch, { recursive: true }));
const prompts = [Int32Array.of(1, 2, 3), Int32Array.from({ length: 40 }, (_, i) => i * 11)];
const options = { seeds: [1, 2], temperature: 1, topP: 1, maxNewTokens: 24, eosIds: [] };

function write(dtype: "F32" | "BF16" | "F16", shape: ModelConfig): string {
  const folder = fs.mkdtempSync(path.join(scratch, dtype));
  fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(shape)));
  const weights = initialWeights(shape, 3);
  const tensors = parameters(shape).map((parameter) => ({ ...parameter, read: () => weights.get(parameter.name)! }));
  saveWeights(folder, tensors, { dtype });
  return folder;
}

for (const [dtype, tied] of [
  ["BF16", true],
  ["F16", false],
] as const) {
  describe(`generation from mapped ${dtype} weights, ${tied ? "tied" : "untied"}`, () => {
    const folder = write(dtype, { ...base, tied });
    const mapped = new MappedWeights(folder);
    const { config } = mapped;
    const generator = new Generator(config, { threads: 1 });
    after(() => generator.release());
    const parametersOf = (lora: LoraConfig) => adapterParameters(config, lora);
    const filled = (length: number, seed: number) => Float32Array.from({ length }, (_, i) => Math.sin(i + seed) / 9);

    it("gives the results of a float32 copy of them", async () => {
      const { weights } = readModelFolder(folder);
      for (const temperature of [0, 1]) {
        const expected = await generator.generate(weights, prompts, { ...options, temperature });
        const responses = await generator.generate({ base: mapped }, prompts, { ...options, temperature });
        for (const [row, { response, logProbs }] of responses.entries()) {
          assert.deepEqual(response, expected[row].response);
          for (const [i, logProb] of logProbs.entries())
            assert.ok(Math.abs(logProb - expected[row].logProbs[i]) < 1e-4);
        }
      }
    });

    it("gives the same results with a new adapter, which is zero, as without one", async () => {
      const lora = { rank: 2, alpha: 2, targets: ["q_proj", "down_proj"] as const };
      const adapter = { lora, weights: initialAdapter(config, lora, 1) };
      const expected = await generator.generate({ base: mapped }, prompts, options);
      const responses = await generator.generate({ base: mapped, adapter }, prompts, options);
      assert.deepEqual(responses, expected);
    });

    it("gives the same bits from float32 copies that are made once, and casts no matrix for a token", async () => {
      const lora = { rank: 2, alpha: 2, targets: ["q_proj", "down_proj"] as const };
      const weights = new Map(parametersOf(lora).map(({ name, shape }, i) => [name, filled(elementCount(shape), i)]));
      const once = new Generator(config, { threads: 1, widens: true });
      for (const adapter of [undefined, { lora, weights }])
        for (const temperature of [0, 1]) {
          const expected = await generator.generate({ base: mapped, adapter }, prompts, { ...options, temperature });
          const found = await once.generate({ base: mapped, adapter }, prompts, { ...options, temperature });
          assert.deepEqual(found, expected);
        }
      await once.release();
      const wide = wideMatrices(mapped)!;
      assert.equal(
        [...wide.values()].reduce((sum, { length }) => sum + 4 * length, 0),
        wideBytes(mapped.tensors),
      );
      const how = { sampling: "greedy", compute: "float32", cache: "float32" } as const;
      const { nodes } = generationGraph(config, { base: mapped, wide }, how);
      const casts = nodes.filter(({ type }) => type === "Cast");
      assert.ok(
        casts.every(({ outputs: [{ shape }] }) => shape.includes("rows")),
        "only activations are cast",
      );
    });

    it("casts each part of a matrix right before its product", () => {
      const options = { sampling: "greedy", compute: "float32", cache: "float32" } as const;
      const { nodes } = generationGraph(config, { base: mapped }, options);
      const matrices = ({ type, outputs: [{ shape }] }: OpNode) =>
        type === "Cast" && shape.every((n) => typeof n === "number");
      const parts = nodes.filter(matrices);
      assert.deepEqual(nodes.slice(0, parts.length), parts);
      const sizes = parts.map(({ outputs }) => elementCount(outputs[0].shape as number[]));
      assert.ok(sizes.every((size) => size <= CAST_NUMBERS));
      const used = parameters(config).filter(({ name, kind }) => kind === "matrix" || name === mapped.outputName);
      assert.equal(
        sizes.reduce((sum, size) => sum + size, 0),
        used.reduce((sum, { shape }) => sum + elementCount(shape), 0),
      );
      assert.ok(parts.length > used.length);
    });
  });
}

describe("a prompt with more attention scores than one run may have", () => {
  it("is read in blocks, among short prompts, and has the same log-probs", async (t) => {
    const many = {
      ...base,
      vocabSize: 64,
      hiddenSize: 64,
      intermediateSize: 64,
      heads: 32,
      keyValueHeads: 4,
      headSize: 4,
    };
    const mapped = new MappedWeights(write("F32", { ...many, maxPositions: 1200 }));
    const generator = new Generator(mapped.config, { threads: 1 });
    const long = Int32Array.from({ length: 1100 }, (_, i) => (i * i + 5) % 64);
    const rows = [long.subarray(0, 9), long, long.subarray(3, 30)];
    const run = t.mock.method(Session.prototype, "run");
    const responses = await generator.generate({ base: mapped }, rows, { ...options, seeds: [1, 2, 3] });
    const blocks = run.mock.calls.flatMap(({ arguments: [feeds] }) => ("tokens" in feeds ? [feeds.tokens.shape] : []));
    assert.deepEqual(blocks.flat(), [8, 256, 256, 256, 256, 75, 26]);
    const whole = responses.map(({ response }, row) => [...rows[row], ...response]);
    const evaluated = await logProbsOf(mapped.folder, whole);
    for (const [row, { logProbs }] of responses.entries()) {
      const all = evaluated[row];
      for (const [i, logProb] of logProbs.entries())
        assert.ok(Math.abs(logProb - all[rows[row].length - 1 + i]) < 1e-4);
    }
    await generator.release();
  });
});
