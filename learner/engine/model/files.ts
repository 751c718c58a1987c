/** Which files of a model folder hold which tensors. Headers are read and checked, no weights. */
import fs from "node:fs";
import path from "node:path";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { type Json, readJson } from "./json.ts";
import { readHeader, type StoredTensor } from "./safetensors.ts";
import { checkShapes, parameters } from "./weights.ts";

export const WEIGHTS = "model.safetensors";
export const INDEX = "model.safetensors.index.json";

/**
 * The weights that `config` asks for, in canonical order, from `model.safetensors` or from the shards that
 * `model.safetensors.index.json` lists.
 *
 * @throws ModelError `weights` naming the file, and the tensor that is missing, has another shape or is unknown
 */
export function locateWeights(folder: string, config: ModelConfig): StoredTensor[] {
  const tensors = locateTensors(folder);
  checkShapes(config, tensors, folder);
  return parameters(config).map(({ name }) => tensors.get(name)!);
}

/** All tensors of a folder by name. */
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
