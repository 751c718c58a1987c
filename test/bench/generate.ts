/**
 * Measures tokens per second of the engine's generation, for the quickstart's size of policy.
 *
 *     node test/bench/generate.ts [--rows 64] [--prompt 60:200] [--distinct 64] [--new 160] [--end 0] [--top-p 1] [--slots N] [--uniform]
 *
 * `--uniform`: lengths of responses are uniform in 1 to `--new`, each row in a call of its own. `--prompt`: the shortest and the longest
 * prompt. `--distinct`: number of different prompts. `--end`: probability that a token ends its row. `--slots`: number of rows that are
 * generated side by side (default 64). `generate_hf.py` has the same options and measures transformers. Run them in turn, so that both see
 * the same load. Prints the best of several repeats, as tokens per second of wall-clock and of CPU time; tokens after the end of a row are
 * not counted.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { type GenerateOptions, startEngine } from "../../learner/engine/engine.ts";
import { configJson, parseConfig } from "../../learner/engine/model/config.ts";
import { writeModelFolder } from "../../learner/engine/model/folder.ts";
import { permutation, uniforms } from "../../learner/engine/model/random.ts";
import { initialWeights } from "../../learner/engine/model/weights.ts";

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "64" },
    prompt: { type: "string", default: "60:200" },
    distinct: { type: "string", default: "64" },
    new: { type: "string", default: "160" },
    end: { type: "string", default: "0" },
    "top-p": { type: "string", default: "1" },
    repeats: { type: "string", default: "5" },
    threads: { type: "string", default: "1" },
    slots: { type: "string" },
    uniform: { type: "boolean", default: false },
  },
});
const [shortest, longest] = values.prompt.split(":").map(Number);
const rows = Number(values.rows);
const distinct = Math.min(rows, Number(values.distinct));
const maxNewTokens = Number(values.new);
const slots = values.slots === undefined ? {} : { slots: Number(values.slots) };

const config = parseConfig({
  model_type: "qwen2",
  vocab_size: 2048,
  hidden_size: 128,
  intermediate_size: 384,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  tie_word_embeddings: true,
});
const ends = Array.from({ length: Math.round(Number(values.end) * config.vocabSize) }, (_, id) => id);
const folder = await mkdtemp(path.join(os.tmpdir(), "longrun-generate-"));
// probabilities are nearly uniform, so this share of the ids has this probability
await writeFile(path.join(folder, "config.json"), JSON.stringify(configJson(config, { eos_token_id: ends })));
writeModelFolder(folder, folder, config, initialWeights(config, 1));
const prompts = Array.from({ length: rows }, (_, row) => {
  const which = row % distinct;
  const length = Math.round(shortest + ((longest - shortest) * which) / Math.max(1, distinct - 1));
  return Int32Array.from({ length }, (_, i) => (which * 31 + i * 7) % config.vocabSize);
});

const engine = await startEngine({ model: folder, threads: Number(values.threads), ...slots });
await rm(folder, { recursive: true }); // it is in memory
/** Lengths are uniform in 1..maxNewTokens, in pseudo-random order. */
async function eachAlone(options: GenerateOptions) {
  const { maxNewTokens: most } = options;
  const order = permutation(rows, uniforms(1, "lengths"));
  const responses = prompts.map((prompt, row) => {
    const maxNewTokens = 1 + Math.floor((order[row]! * most) / rows);
    return engine.generate([prompt], { ...options, seeds: [row], maxNewTokens });
  });
  return (await Promise.all(responses)).flat();
}

let best = { wall: 0, cpu: 0, tokens: 0 };
for (let repeat = 0; repeat <= Number(values.repeats); repeat++) {
  const start = performance.now();
  const cpuStart = process.cpuUsage();
  const seeds = prompts.map((_, row) => row);
  const options = { seeds, temperature: 1, topP: Number(values["top-p"]), maxNewTokens };
  const responses = values.uniform ? await eachAlone(options) : await engine.generate(prompts, options);
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpuStart);
  const tokens = responses.reduce((sum, { response }) => sum + response.length, 0);
  const [wall, cpu] = [tokens / seconds, tokens / ((user + system) / 1e6)];
  if (repeat > 0) best = { wall: Math.max(best.wall, wall), cpu: Math.max(best.cpu, cpu), tokens }; // the first repeat is a warm-up
}
await engine.close();
console.log(
  `longrun       ${best.wall.toFixed(0)} tokens/s, ${best.cpu.toFixed(0)} tokens per CPU second (${best.tokens} tokens)`,
);
