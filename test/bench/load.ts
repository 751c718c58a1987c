/**
 * Measures the costs of loading a model folder and generating with it:
 *
 *     node test/bench/load.ts [--shape small|0.5b|1.5b|3b] [--dtype F32|BF16|F16] [--rows 1] [--prompt 64] [--new 16]
 *         [--temperature 0] [--threads 0] [--scored 512] [--tmp DIR | --folder DIR]
 *
 * Writes a folder of random weights in the shape of Qwen2.5, or uses an existing one, then opens it, scores tokens and generates some in a
 * worker. Prints the growth of the proportional set size (/proc/self/smaps_rollup) after each step and at its highest, read every 20 ms,
 * because resident size counts shared pages once per mapping. `file` is mapped memory, weights and libraries; `anonymous` is memory of this
 * process alone. Generates twice, because the first time reads the file.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { FROZEN } from "../../learner/engine/engine.ts";
import { localEngine } from "../../learner/engine/local.ts";
import { configJson, parseConfig } from "../../learner/engine/model/config.ts";
import { saveWeights } from "../../learner/engine/model/files.ts";
import { Generator } from "../../learner/engine/model/generate.ts";
import type { SafetensorsDType } from "../../learner/engine/model/halves.ts";
import { MappedWeights } from "../../learner/engine/model/mapped.ts";
import { elementCount, parameters } from "../../learner/engine/model/weights.ts";

const { values } = parseArgs({
  args: isMainThread ? process.argv.slice(2) : (workerData as string[]),
  options: {
    shape: { type: "string", default: "small" },
    dtype: { type: "string", default: "F32" },
    rows: { type: "string", default: "1" },
    prompt: { type: "string", default: "64" },
    new: { type: "string", default: "16" },
    temperature: { type: "string", default: "0" },
    threads: { type: "string", default: "0" },
    scored: { type: "string", default: "512" },
    tmp: { type: "string", default: os.tmpdir() },
    folder: { type: "string" }, // an existing folder of the shape
    write: { type: "string" }, // only write the folder, in a process of its own
  },
});
/** hidden, intermediate, layers, heads, key-value heads, vocabulary */
const SHAPES: Record<string, number[]> = {
  small: [1024, 3072, 8, 16, 4, 32768],
  "0.5b": [896, 4864, 24, 14, 2, 151936],
  "1.5b": [1536, 8960, 28, 12, 2, 151936],
  "3b": [2048, 11008, 36, 16, 2, 151936],
};
const shape = SHAPES[values.shape];
if (!shape) throw new Error(`--shape is ${values.shape}; it is one of ${Object.keys(SHAPES).join(", ")}`);
const [hidden, intermediate, layers, heads, keyValueHeads, vocabulary] = shape;
const config = parseConfig({
  ...{ model_type: "qwen2", vocab_size: vocabulary, hidden_size: hidden, intermediate_size: intermediate },
  ...{ num_hidden_layers: layers, num_attention_heads: heads, num_key_value_heads: keyValueHeads },
  ...{ tie_word_embeddings: true, max_position_embeddings: 32768, rope_theta: 1e6 },
});

function writeFolder(folder: string): void {
  fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(config)));
  const block = Float32Array.from({ length: 1 << 18 }, () => Math.random() * 0.06 - 0.03);
  const tensors = parameters(config).map(({ name, shape, kind }) => ({
    name,
    shape,
    read() {
      const data = new Float32Array(elementCount(shape)).fill(kind === "norm" ? 1 : 0);
      const random = kind === "matrix" || kind === "embedding";
      for (let i = 0; random && i < data.length; i += block.length) data.set(block.subarray(0, data.length - i), i);
      return data;
    },
  }));
  saveWeights(folder, tensors, { dtype: values.dtype as SafetensorsDType, shardBytes: 2e9 });
}

interface Step {
  what: string;
  seconds: number;
  tokens?: number;
}

/** Runs in the worker, because ONNX Runtime blocks the thread that calls it. */
async function work(folder: string): Promise<void> {
  let started = performance.now();
  const done = async (what: string, tokens?: number) => {
    parentPort!.postMessage({ what, seconds: (performance.now() - started) / 1000, tokens });
    await new Promise((resolve) => parentPort!.once("message", resolve)); // the memory has been read
    started = performance.now();
  };
  const weights = new MappedWeights(folder);
  await done("opened");
  const threads = Number(values.threads);
  const scored = Number(values.scored);
  if (scored > 0) {
    const engine = localEngine({ model: folder, threads, adapter: FROZEN, rowTokens: scored });
    await done("engine made");
    for (const tokens of [3, scored]) {
      const sequence = { prompt: Int32Array.of(1), response: new Int32Array(tokens - 1).fill(7) };
      await engine.evaluate([sequence], { temperature: 1, values: false, reference: false });
      await done(`${tokens} tokens scored`);
    }
    await engine.close();
  }
  const generator = new Generator(weights.config, { threads });
  const prompts = Array.from({ length: Number(values.rows) }, (_, row) =>
    Int32Array.from({ length: Number(values.prompt) }, (_, i) => (row * 31 + i * 7) % vocabulary),
  );
  const options = { seeds: prompts.map((_, i) => i), temperature: Number(values.temperature), topP: 1, eosIds: [] };
  for (const maxNewTokens of [1, Number(values.new), Number(values.new)]) {
    const responses = await generator.generate({ base: weights }, prompts, { ...options, maxNewTokens });
    const tokens = responses.reduce((sum, { response }) => sum + response.length, 0);
    await done(`${tokens} tokens generated`, tokens);
  }
  parentPort!.close();
}

type Memory = Record<"Pss" | "Pss_Anon" | "Pss_File", number>;
function memory(): Memory {
  const text = fs.readFileSync("/proc/self/smaps_rollup", "utf8");
  const megabytes = (field: string) => (Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(text)![1]) * 1024) / 1e6;
  return { Pss: megabytes("Pss"), Pss_Anon: megabytes("Pss_Anon"), Pss_File: megabytes("Pss_File") };
}

async function measure(folder: string): Promise<void> {
  const bytes = new MappedWeights(folder).tensors.reduce((sum, { length }) => sum + length, 0) / 1e6;
  console.log(`weights: ${Math.round(bytes)} MB of ${values.dtype}`);
  const before = memory();
  let highest = before;
  const look = () => {
    const now = memory();
    if (now.Pss > highest.Pss) highest = now;
    return now;
  };
  const timer = setInterval(look, 20);
  const worker = new Worker(import.meta.filename, { workerData: [...process.argv.slice(2), "--folder", folder] });
  worker.on("message", ({ what, seconds, tokens }: Step) => {
    const now = look();
    const grown = (at: Memory, field: keyof Memory) => `${Math.round(at[field] - before[field])} MB`;
    const ratio = (at: Memory) => ((at.Pss - before.Pss) / bytes).toFixed(2);
    const speed = tokens ? `, ${(tokens / seconds).toFixed(2)} tokens/s` : "";
    console.log(
      `${what.padEnd(22)}+${grown(now, "Pss")} = ${ratio(now)} of the weights; highest +${grown(highest, "Pss")} = ${ratio(highest)} ` +
        `(file ${grown(highest, "Pss_File")}, anonymous ${grown(highest, "Pss_Anon")}), ${seconds.toFixed(1)} s${speed}`,
    );
    highest = now;
    worker.postMessage("go on");
  });
  await new Promise((resolve, reject) => worker.on("exit", resolve).on("error", reject));
  clearInterval(timer);
}

if (!isMainThread) await work(values.folder!);
else if (values.write !== undefined) writeFolder(values.write);
else if (values.folder !== undefined) await measure(values.folder);
else {
  const folder = fs.mkdtempSync(path.join(values.tmp, "longrun-load-"));
  try {
    execFileSync(process.execPath, [import.meta.filename, ...process.argv.slice(2), "--write", folder]);
    await measure(folder);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}
