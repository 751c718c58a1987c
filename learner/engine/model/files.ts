/** The files of a model folder that hold its weights: found by their headers, and written as transformers does. */
import fs from "node:fs";
import path from "node:path";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { SAFETENSORS_DTYPES, type SafetensorsDType, storedBytes } from "./halves.ts";
import { type Json, readJson, writeJson } from "./json.ts";
import { readHeader, type StoredTensor, sameNumbers, type TensorSource, writeTensors } from "./safetensors.ts";
import { checkShapes, EMBEDDING, elementCount, OUTPUT_LAYER, parameters } from "./weights.ts";

const WEIGHTS = "model.safetensors";
const INDEX = "model.safetensors.index.json";

/**
 * The weights that `config` asks for, in canonical order, from `model.safetensors` or from the shards that
 * `model.safetensors.index.json` lists.
 *
 * @throws ModelError `weights` naming the file, and the tensor that is missing, has another shape, is unknown, or is an output layer that
 * differs from the embedding it is tied to
 */
export function locateWeights(folder: string, config: ModelConfig): StoredTensor[] {
  const tensors = locateTensors(folder);
  if (config.tied) tie(tensors, folder);
  checkShapes(config, tensors, folder);
  return parameters(config).map(({ name }) => tensors.get(name)!);
}

/** Whether a folder has files of weights. A plan needs none. */
export const hasWeights = (folder: string): boolean =>
  [WEIGHTS, INDEX].some((name) => fs.existsSync(path.join(folder, name)));

/**
 * The weights that `config.json` asks for, as `locateWeights` would find them in one file of the dtype that it names (transformers'
 * default is float32). The file need not exist.
 */
export function expectedWeights(folder: string, config: ModelConfig): StoredTensor[] {
  const { dtype: named, torch_dtype: before } = readJson(folder, "config.json", "config");
  const name = (named ?? before) as keyof typeof SAFETENSORS_DTYPES;
  const dtype = SAFETENSORS_DTYPES[name] ?? "F32";
  let offset = 0;
  return parameters(config).map(({ name, shape }) => {
    const tensor = { name, dtype, shape, file: path.join(folder, WEIGHTS), offset, length: storedBytes(dtype, shape) };
    offset += tensor.length;
    return tensor;
  });
}

/**
 * Makes the embedding the one matrix of a tied model. If the files have the output layer alone, it is the embedding, as in transformers 5.
 * If they have both, the two must be equal: transformers 5 would use both, transformers 4 and vLLM the embedding alone.
 */
function tie(tensors: Map<string, StoredTensor>, folder: string): void {
  const output = tensors.get(OUTPUT_LAYER);
  if (output === undefined) return;
  const embedding = tensors.get(EMBEDDING);
  tensors.delete(OUTPUT_LAYER);
  if (embedding === undefined) tensors.set(EMBEDDING, { ...output, name: EMBEDDING });
  else if (!sameNumbers(embedding, output)) {
    const remedy = `set it to false to use both, or remove ${OUTPUT_LAYER} from the files to use the embedding alone`;
    const problem = `${OUTPUT_LAYER} differs from ${EMBEDDING}, but tie_word_embeddings in config.json is true`;
    throw new ModelError("weights", `${folder}: ${problem}; ${remedy}`);
  }
}

/** Returns all tensors of a folder by name. */
function locateTensors(folder: string): Map<string, StoredTensor> {
  const single = path.join(folder, WEIGHTS);
  if (fs.existsSync(single)) return new Map(readHeader(single).tensors.map((tensor) => [tensor.name, tensor]));
  const index = path.join(folder, INDEX);
  if (!fs.existsSync(index)) {
    throw new ModelError("weights", `cannot open ${single}, and there is no ${INDEX}; only safetensors are supported`);
  }
  const map = readJson(folder, INDEX, "weights").weight_map;
  if (typeof map !== "object" || map === null || Array.isArray(map) || Object.keys(map).length === 0) {
    throw new ModelError("weights", `${index}: weight_map is not a map from tensors to files`);
  }
  const tensors = new Map<string, StoredTensor>();
  for (const shard of new Set(Object.values(map as Json))) {
    if (typeof shard !== "string" || path.basename(shard) !== shard || shard === "" || shard === "..") {
      throw new ModelError("weights", `${index}: shard ${JSON.stringify(shard)} is not a plain file name`);
    }
    for (const tensor of readHeader(path.join(folder, shard)).tensors) {
      const other = tensors.get(tensor.name);
      const first = other && path.basename(other.file);
      if (first) throw new ModelError("weights", `${folder}: ${tensor.name} is both in ${first} and ${shard}`);
      tensors.set(tensor.name, tensor);
    }
  }
  for (const [name, shard] of Object.entries(map as Json)) {
    const found = tensors.get(name);
    if (found === undefined || path.basename(found.file) !== shard) {
      throw new ModelError("weights", `${index}: ${name} is not in ${shard}, where the index says it is`);
    }
  }
  return tensors;
}

/** A file holds at most this, unless one tensor alone is larger; as in transformers 4. */
export const SHARD_BYTES = 5e9;

/**
 * Writes tensors in the given order, one in memory at a time. Each file appears whole or not at all; the index comes last, and files of
 * weights that were there before are removed then. @returns the number of files of weights
 */
export function saveWeights(
  folder: string,
  tensors: readonly TensorSource[],
  { dtype = "F32", shardBytes = SHARD_BYTES }: { dtype?: SafetensorsDType; shardBytes?: number } = {},
): number {
  const bytesOf = ({ shape }: TensorSource) => storedBytes(dtype, shape);
  const shards: TensorSource[][] = [[]];
  let used = 0;
  for (const tensor of tensors) {
    const bytes = bytesOf(tensor);
    if (used > 0 && used + bytes > shardBytes) {
      shards.push([]);
      used = 0;
    }
    shards.at(-1)!.push(tensor);
    used += bytes;
  }
  const names = shards.map((_, i) => (shards.length === 1 ? WEIGHTS : shardName(i, shards.length)));
  for (const [i, shard] of shards.entries()) writeTensors(path.join(folder, names[i]), shard, dtype);
  const index = path.join(folder, INDEX);
  if (shards.length > 1) {
    const total = tensors.reduce((sum, tensor) => sum + bytesOf(tensor), 0);
    const parameters = tensors.reduce((sum, { shape }) => sum + elementCount(shape), 0);
    const map = shards.flatMap((shard, i) => shard.map(({ name }) => [name, names[i]]));
    const json = { metadata: { total_size: total, total_parameters: parameters }, weight_map: Object.fromEntries(map) };
    writeJson(index, json);
  } else fs.rmSync(index, { force: true });
  for (const file of fs.readdirSync(folder)) {
    const isOld = file === WEIGHTS || /^model-\d{5}-of-\d{5}\.safetensors$/.test(file);
    if (isOld && !names.includes(file)) fs.rmSync(path.join(folder, file));
  }
  return names.length;
}

function shardName(index: number, count: number): string {
  const number = (value: number) => String(value).padStart(5, "0");
  return `model-${number(index + 1)}-of-${number(count)}.safetensors`;
}
