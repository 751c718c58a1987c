/** A model folder written anew, one tensor in memory at a time. */
import { ModelError } from "../engine/model/errors.ts";
import { copyOtherFiles, writeConfig } from "../engine/model/folder.ts";
import { MappedWeights } from "../engine/model/mapped.ts";
import { readTensor } from "../engine/model/safetensors.ts";
import type { SafetensorsDType } from "../engine/model/safetensors-header.ts";
import { saveWeights, TRANSFORMERS_DTYPES } from "../engine/model/save.ts";
import { checkFinite } from "../engine/model/weights.ts";

export interface ConvertOptions {
  /** left out: that of the embedding */
  dtype?: SafetensorsDType | undefined;
  shardBytes?: number | undefined;
  /** changes a tensor's numbers in place, before they are written */
  change?(name: string, data: Float32Array): void;
}

/**
 * Writes the folder `out` with the weights of `source` and its other files. config.json comes last, so that a folder that
 * was not finished is refused.
 *
 * @returns the number of files of weights
 * @throws ModelError when `source` cannot be used, holds a number that is not finite, or one that the dtype cannot hold
 */
export function convertFolder(source: string, out: string, options: ConvertOptions): number {
  const weights = new MappedWeights(source);
  const dtype = options.dtype ?? weights.tensors[0].dtype;
  copyOtherFiles(out, source);
  const tensors = weights.tensors.map((stored) => ({
    name: stored.name,
    shape: stored.shape,
    read() {
      const data = readTensor(stored);
      checkFinite(stored.name, data, source);
      options.change?.(stored.name, data);
      checkHeld(stored.name, data, dtype);
      return data;
    },
  }));
  const files = saveWeights(out, tensors, { dtype, shardBytes: options.shardBytes });
  writeConfig(out, source, TRANSFORMERS_DTYPES[dtype]);
  return files;
}

/** The first number that rounds to infinity. */
const TOO_LARGE: Record<SafetensorsDType, number> = { F16: 65520, BF16: 2 ** 128 - 2 ** 119, F32: Infinity };

function checkHeld(name: string, data: Float32Array, dtype: SafetensorsDType): void {
  const at = data.findIndex((value) => !(Math.abs(value) < TOO_LARGE[dtype]));
  if (at < 0) return;
  const remedy = dtype === "F32" ? "the adapter does not belong to these weights" : "write another dtype (--dtype)";
  throw new ModelError(
    "weights",
    `${name} holds ${data[at]} at index ${at}, which ${TRANSFORMERS_DTYPES[dtype]} cannot: ${remedy}`,
  );
}
