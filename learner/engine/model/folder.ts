import fs from "node:fs";
import path from "node:path";
import { configJson, type ModelConfig, parseConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { locateWeights, saveWeights } from "./files.ts";
import { type SafetensorsDType, TRANSFORMERS_DTYPES } from "./halves.ts";
import { readJson, writeJson, writeText } from "./json.ts";
import { readTensor, type TensorSource } from "./safetensors.ts";
import { Tokenizer, type TokenizerFiles } from "./tokenizer.ts";
import { checkFinite, parameters } from "./weights.ts";

/**
 * A Hugging Face model folder: `config.json`, `model.safetensors` (or shards and their index), `tokenizer.json`,
 * `tokenizer_config.json`, and, if present, `generation_config.json`, `chat_template.jinja` and other files.
 */
export function readConfig(folder: string): ModelConfig {
  return parseConfig(readJson(folder, "config.json", "config"), path.join(folder, "config.json"));
}

/** Reads one weight after the other as float32, so that no two need to be in memory. */
export function* readWeights(folder: string, config: ModelConfig): Generator<[name: string, data: Float32Array]> {
  for (const stored of locateWeights(folder, config)) yield [stored.name, readTensor(stored)];
}

/** Like `readWeights`. @throws ModelError naming a weight that is not finite */
export function* eachWeight(folder: string, config: ModelConfig): Generator<[name: string, data: Float32Array]> {
  for (const [name, data] of readWeights(folder, config)) {
    checkFinite(name, data, folder);
    yield [name, data];
  }
}

/** @throws ModelError when the folder has no usable tokenizer, or one with more tokens than the model has */
export function readTokenizer(folder: string): Tokenizer {
  const template = path.join(folder, "chat_template.jinja");
  const files: TokenizerFiles = {
    tokenizer: readJson(folder, "tokenizer.json", "tokenizer"),
    tokenizerConfig: readJson(folder, "tokenizer_config.json", "tokenizer", {}),
    chatTemplate: fs.existsSync(template) ? fs.readFileSync(template, "utf8") : undefined,
  };
  const tokenizer = new Tokenizer(files, folder);
  const vocabulary = readJson(folder, "config.json", "config", {}).vocab_size;
  if (typeof vocabulary === "number" && tokenizer.size > vocabulary) {
    const problem = `tokenizer.json has ${tokenizer.size} tokens, but vocab_size in config.json is ${vocabulary}`;
    throw new ModelError("tokenizer", `${folder}: ${problem}`);
  }
  return tokenizer;
}

/**
 * A response ends with any of these: several in Qwen2.5 and Llama 3. generation_config.json takes precedence over config.json, as
 * in transformers; the tokenizer's own eos token comes last.
 *
 * @throws ModelError `config` for an id that is no token of the model: it would never end a response
 */
export const readEosIds = (folder: string): number[] => eosIdsOf(folder).ids;

/** Returns the ids of `readEosIds` and the first file that names some. `source` is undefined if no file does. */
export function eosIdsOf(folder: string): { ids: number[]; source: string | undefined } {
  const vocabulary = readJson(folder, "config.json", "config", {}).vocab_size;
  const size = typeof vocabulary === "number" ? vocabulary : Number.POSITIVE_INFINITY;
  for (const source of ["generation_config.json", "config.json"]) {
    const value = readJson(folder, source, "config", {}).eos_token_id;
    const ids: unknown[] = Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
    if (ids.length === 0) continue;
    if (!ids.every((id) => Number.isSafeInteger(id) && (id as number) >= 0 && (id as number) < size)) {
      const file = path.join(folder, source);
      const expected = `token ids${Number.isFinite(size) ? ` below ${size} (vocab_size)` : ""}`;
      throw new ModelError("config", `${file}: eos_token_id is ${JSON.stringify(value)}; expected ${expected}`);
    }
    return { ids: ids as number[], source };
  }
  const id = fs.existsSync(path.join(folder, "tokenizer.json")) ? readTokenizer(folder).eosId : undefined;
  return id === undefined ? { ids: [], source: undefined } : { ids: [id], source: "tokenizer_config.json" };
}

/** Writes `weights` as a folder of its own, with the other files (tokenizer, templates, licence) copied from `source`. */
export function writeModelFolder(
  folder: string,
  source: string,
  config: ModelConfig,
  weights: Weights,
  dtype: SafetensorsDType = "F32",
): void {
  copyOtherFiles(folder, source);
  writeConfig(folder, source, TRANSFORMERS_DTYPES[dtype]);
  saveWeights(folder, canonical(folder, config, weights), { dtype });
}

/** File of a fetched folder: names the source. */
export const FETCH_RECORD = "fetched.json";

/** All files but config.json, the weights and the record of a fetch. */
export function copyOtherFiles(folder: string, source: string): void {
  fs.mkdirSync(folder, { recursive: true });
  if (path.resolve(folder) === path.resolve(source)) return;
  for (const entry of fs.readdirSync(source)) {
    const isWeights = /\.(safetensors|bin|gguf|pt|pth|onnx)$/.test(entry) || entry.endsWith(".index.json");
    const isFile = fs.statSync(path.join(source, entry), { throwIfNoEntry: false })?.isFile();
    if (!isWeights && isFile && entry !== "config.json" && entry !== FETCH_RECORD)
      fs.copyFileSync(path.join(source, entry), path.join(folder, entry));
  }
}

/** transformers would round weights to the dtype that config.json names, so it must name the stored dtype. */
export function writeConfig(folder: string, source: string, dtype: string): void {
  const { torch_dtype: _, ...rest } = readJson(source, "config.json", "config");
  writeJson(path.join(folder, "config.json"), { ...rest, dtype });
}

export function createModelFolder(
  folder: string,
  {
    config,
    weights,
    tokenizer,
    eosIds,
  }: { config: ModelConfig; weights: Weights; tokenizer: TokenizerFiles; eosIds: number[] },
): void {
  fs.mkdirSync(folder, { recursive: true });
  const eos = { eos_token_id: eosIds.length === 1 ? eosIds[0] : eosIds };
  const json = {
    "config.json": configJson(config, eos),
    "generation_config.json": eos,
    "tokenizer.json": tokenizer.tokenizer,
    "tokenizer_config.json": tokenizer.tokenizerConfig,
  };
  for (const [name, fields] of Object.entries(json)) writeJson(path.join(folder, name), fields);
  if (tokenizer.chatTemplate !== undefined) writeText(path.join(folder, "chat_template.jinja"), tokenizer.chatTemplate);
  saveWeights(folder, canonical(folder, config, weights));
}

type Weights = ReadonlyMap<string, Float32Array>;

/** Tensors in canonical order, so that equal weights give equal files. */
function canonical(folder: string, config: ModelConfig, weights: Weights): readonly TensorSource[] {
  return parameters(config).map(({ name, shape }) => {
    const data = weights.get(name);
    if (data === undefined) throw new ModelError("weights", `cannot write ${folder}: parameter ${name} is missing`);
    return { name, shape, read: () => data };
  });
}
