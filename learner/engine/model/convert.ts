/** Writes a converted model folder, or one with an adapter merged in. Holds one tensor in memory at a time. */
import { readAdapter } from "./adapter-folder.ts";
import { ModelError } from "./errors.ts";
import { saveWeights } from "./files.ts";
import { copyOtherFiles, readConfig, writeConfig } from "./folder.ts";
import { type SafetensorsDType, TRANSFORMERS_DTYPES } from "./halves.ts";
import { type Adapter, adapterNames, adapterScale } from "./lora.ts";
import { MappedWeights } from "./mapped.ts";
import { readTensor } from "./safetensors.ts";
import { checkFinite } from "./weights.ts";

export interface ConvertOptions {
  /** Absent: the dtype of the embedding. */
  dtype?: SafetensorsDType | undefined;
  shardBytes?: number | undefined;
  /** Changes a tensor's numbers in place before they are written. */
  change?(name: string, data: Float32Array): void;
}

/**
 * Writes the weights of `source` and its other files. config.json is written last, so that an unfinished folder is refused.
 * @returns the number of weight files @throws ModelError for a number that is not finite or does not fit the dtype
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

/** The smallest number that rounds to infinity. */
const TOO_LARGE: Record<SafetensorsDType, number> = { F16: 65520, BF16: 2 ** 128 - 2 ** 119, F32: Infinity };

function checkHeld(name: string, data: Float32Array, dtype: SafetensorsDType): void {
  const at = data.findIndex((value) => !(Math.abs(value) < TOO_LARGE[dtype]));
  if (at < 0) return;
  const remedy = {
    F32: "the adapter does not belong to these weights",
    BF16: "write another dtype (--dtype)",
    F16: "write another dtype (--dtype), or in a run set generation.weightSync to Adapter",
  }[dtype];
  throw new ModelError(
    "weights",
    `${name} holds ${data[at]} at index ${at}, which ${TRANSFORMERS_DTYPES[dtype]} cannot: ${remedy}`,
  );
}

/** Like `convertFolder`, with the adapter added to the weights: W + (alpha / rank) B A. @throws ModelError */
export function mergeFolder(model: string, adapterFolder: string, out: string, options: ConvertOptions): number {
  const adapter = readAdapter(adapterFolder, readConfig(model));
  return convertFolder(model, out, {
    ...options,
    change: (name, data) => addAdapter(data, name.replace(/\.weight$/, ""), adapter),
  });
}

/** Adds scale B A, summed in float64, to the weight [out, in] of the layer `path`. */
function addAdapter(weight: Float32Array, path: string, { lora, weights }: Adapter): void {
  const names = adapterNames(path);
  const [a, b] = [weights.get(names.a), weights.get(names.b)];
  if (a === undefined || b === undefined) return;
  const { rank } = lora;
  const scale = adapterScale(lora);
  const columns = a.length / rank;
  const row = new Float64Array(columns);
  for (let out = 0; out < b.length / rank; out++) {
    row.fill(0);
    for (let k = 0; k < rank; k++) {
      const factor = scale * b[out * rank + k];
      for (let i = 0; i < columns; i++) row[i] += factor * a[k * columns + i];
    }
    for (let i = 0; i < columns; i++) weight[out * columns + i] += row[i];
  }
}
