/** Writes weights as transformers does: one file, or shards of a size and their index. */
import fs from "node:fs";
import path from "node:path";
import { INDEX, WEIGHTS } from "./files.ts";
import { type SafetensorsDType, storedBytes } from "./halves.ts";
import { writeJson } from "./json.ts";
import { type TensorSource, writeTensors } from "./safetensors.ts";
import { elementCount } from "./weights.ts";

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
