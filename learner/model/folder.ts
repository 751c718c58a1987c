/** A Hugging Face model folder: config.json, model.safetensors (or its shards), and whatever else lies beside them. */
import fs from "node:fs";
import path from "node:path";
import { type ModelConfig, parseConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { readSafetensors, writeSafetensors } from "./safetensors.ts";
import { parameters, selectWeights, type Tensor } from "./weights.ts";

const WEIGHTS = "model.safetensors";
const INDEX = "model.safetensors.index.json";

export interface ModelFolder {
  config: ModelConfig;
  /** by transformers' name, in canonical order */
  weights: Map<string, Float32Array>;
  /** a response ends with one of these */
  eosIds: number[];
}

/** @throws ModelError naming the file that is missing or wrong */
export function readModelFolder(folder: string): ModelFolder {
  const config = readConfig(folder);
  return { config, weights: readWeights(folder, config), eosIds: readEosIds(folder) };
}

export function readConfig(folder: string): ModelConfig {
  const file = path.join(folder, "config.json");
  return parseConfig(readJson(file), file);
}

export function readWeights(folder: string, config: ModelConfig): Map<string, Float32Array> {
  return selectWeights(config, readTensors(folder), folder);
}

/** All tensors of a folder, of one file or of the shards that its index lists. */
export function readTensors(folder: string): Map<string, Tensor> {
  const single = path.join(folder, WEIGHTS);
  const index = path.join(folder, INDEX);
  if (fs.existsSync(single) || !fs.existsSync(index)) return readSafetensors(single);
  const map = (readJson(index) as { weight_map?: Record<string, string> }).weight_map ?? {};
  const shards = new Set(Object.values(map));
  for (const shard of shards) {
    if (path.basename(shard) !== shard)
      throw new ModelError("weights", `${index}: shard ${shard} is not a plain file name`);
  }
  return new Map([...shards].flatMap((shard) => [...readSafetensors(path.join(folder, shard))]));
}

/**
 * Writes `weights` as a folder of its own, with the other files (config, tokenizer, templates) copied from `source`.
 */
export function writeModelFolder(
  folder: string,
  source: string,
  config: ModelConfig,
  weights: ReadonlyMap<string, Float32Array>,
): void {
  fs.mkdirSync(folder, { recursive: true });
  if (path.resolve(folder) !== path.resolve(source)) {
    for (const entry of fs.readdirSync(source, { withFileTypes: true })) {
      const isWeights = /\.(safetensors|bin|gguf|pt|pth|onnx)$/.test(entry.name) || entry.name.endsWith(".index.json");
      if (entry.isFile() && !isWeights) fs.copyFileSync(path.join(source, entry.name), path.join(folder, entry.name));
    }
  }
  const tensors = new Map(parameters(config).map(({ name, shape }) => [name, { shape, data: weights.get(name)! }]));
  writeSafetensors(path.join(folder, WEIGHTS), tensors);
}

/** generation_config.json counts before config.json, as in transformers. */
function readEosIds(folder: string): number[] {
  for (const name of ["generation_config.json", "config.json"]) {
    const file = path.join(folder, name);
    if (!fs.existsSync(file)) continue;
    const { eos_token_id: eos } = readJson(file) as { eos_token_id?: number | number[] | null };
    if (eos !== undefined && eos !== null) return [eos].flat();
  }
  return [];
}

function readJson(file: string): object {
  let text: string;
  try {
    text = fs.readFileSync(file, "utf8");
  } catch (cause) {
    throw new ModelError("config", `cannot read ${file}: ${(cause as Error).message}`, { cause });
  }
  try {
    return JSON.parse(text) as object;
  } catch (cause) {
    throw new ModelError("config", `${file} is not JSON: ${(cause as Error).message}`, { cause });
  }
}
