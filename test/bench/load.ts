/**
 * What loading a model folder takes: `node test/bench/load.ts [--layers N] [--dtype F32|BF16|F16] [--shape 0.5b|1.5b|3b]`.
 *
 * Writes a folder of random weights (hidden size 1024, 50 MB a layer in float32), or of zeros in a hole of a file with
 * `--shape` (Qwen2.5's, in bfloat16), then scores and generates a few tokens with it in this process and prints proportional
 * set size from /proc/self/smaps_rollup as lines of JSON, megabytes: resident size counts shared pages once per mapping. `file` is what is mapped, weights and libraries; `anonymous` is memory of this process alone.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { configJson, parseConfig } from "../../learner/model/config.ts";
import { Generator } from "../../learner/model/generate.ts";
import { SHAPES, writeHollowModel } from "../../learner/model/hollow.fixture.ts";
import { MappedWeights } from "../../learner/model/mapped.ts";
import type { SafetensorsDType } from "../../learner/model/safetensors-header.ts";
import { saveWeights } from "../../learner/model/save.ts";
import { Scorer } from "../../learner/model/scorer.ts";
import { elementCount, parameters } from "../../learner/model/weights.ts";

const { values } = parseArgs({
  options: {
    layers: { type: "string", default: "8" },
    dtype: { type: "string", default: "F32" },
    shape: { type: "string" },
    write: { type: "string" }, // only write the folder, in a process of its own
  },
});
const config = parseConfig({
  ...{ model_type: "qwen2", vocab_size: 32768, hidden_size: 1024, intermediate_size: 3072, tie_word_embeddings: true },
  ...{ num_hidden_layers: Number(values.layers), num_attention_heads: 16, num_key_value_heads: 4 },
});

function proportionalSetSize(): { total: number; anonymous: number; file: number } {
  const text = fs.readFileSync("/proc/self/smaps_rollup", "utf8");
  const megabytes = (field: string) => (Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(text)![1]) * 1024) / 1e6;
  return { total: megabytes("Pss"), anonymous: megabytes("Pss_Anon"), file: megabytes("Pss_File") };
}

function writeFolder(folder: string): void {
  if (values.shape !== undefined) {
    const shape = SHAPES[values.shape as keyof typeof SHAPES];
    if (!shape) throw new Error(`--shape is ${values.shape}; it is one of ${Object.keys(SHAPES).join(", ")}`);
    writeHollowModel(folder, shape);
    return;
  }
  fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(config)));
  const block = Float32Array.from({ length: 1024 }, () => Math.random() * 0.06 - 0.03);
  const tensors = parameters(config).map(({ name, shape, kind }) => ({
    name,
    shape,
    read() {
      const data = new Float32Array(elementCount(shape)).fill(kind === "norm" ? 1 : 0);
      const random = kind === "matrix" || kind === "embedding"; // their rows are multiples of 1024 numbers long
      for (let i = 0; random && i < data.length; i += block.length) data.set(block, i);
      return data;
    },
  }));
  saveWeights(folder, tensors, { dtype: values.dtype as SafetensorsDType, shardBytes: 2e8 });
}

async function measure(folder: string): Promise<void> {
  const before = proportionalSetSize();
  let started = performance.now();
  const say = (what: string, bytes: number) => {
    const now = proportionalSetSize();
    const grown = (field: keyof typeof now) => Math.round(now[field] - before[field]);
    const ratio = (now.total - before.total) / (bytes / 1e6);
    const seconds = Math.round((performance.now() - started) / 100) / 10;
    console.log(
      JSON.stringify({
        what,
        megabytes: grown("total"),
        file: grown("file"),
        anonymous: grown("anonymous"),
        ratio,
        seconds,
      }),
    );
    started = performance.now();
  };
  const weights = new MappedWeights(folder);
  const bytes = weights.tensors.reduce((sum, { length }) => sum + length, 0);
  say("opened", bytes);
  const scorer = new Scorer(weights);
  await scorer.logProbs([Int32Array.of(1, 2, 3)]);
  say("3 tokens scored", bytes);
  await scorer.logProbs([new Int32Array(512).fill(7)]);
  say("512 tokens scored", bytes);
  const generator = new Generator(weights.config, { threads: 0 });
  const options = { seeds: [1], temperature: 0, topP: 1, maxNewTokens: 16, eosIds: [] };
  await generator.generate(weights, [Int32Array.of(1, 2, 3)], options);
  say("16 tokens generated", bytes);
}

if (values.write !== undefined) writeFolder(values.write);
else {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "longrun-load-"));
  try {
    execFileSync(process.execPath, [import.meta.filename, ...process.argv.slice(2), "--write", folder]);
    await measure(folder);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}
