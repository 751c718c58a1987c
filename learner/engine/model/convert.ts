/** Writes a converted model folder, or one with an adapter merged in. Holds some rows of one tensor in memory at a time. */
import { readAdapter } from "./adapter-folder.ts";
import { ModelError } from "./errors.ts";
import { saveWeights } from "./files.ts";
import { copyOtherFiles, readConfig, writeConfig } from "./folder.ts";
import { type SafetensorsDType, storedBytes, TRANSFORMERS_DTYPES } from "./halves.ts";
import { type Adapter, adapterNames, adapterScale } from "./lora.ts";
import { MappedWeights } from "./mapped.ts";
import { readTensor } from "./safetensors.ts";
import { checkFinite, elementCount } from "./weights.ts";

export interface ConvertOptions {
  /** Absent: the dtype of the embedding. */
  dtype?: SafetensorsDType | undefined;
  shardBytes?: number | undefined;
  /** Numbers in memory at a time, at least a row. Absent: PART_NUMBERS. */
  partNumbers?: number;
  /** Changes rows of a tensor in place before they are written, from row `first` on. */
  change?(name: string, rows: Float32Array, first: number): void;
}

/** The embedding of 3B has 311 million. */
const PART_NUMBERS = 2 ** 22;

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
    *read() {
      const rows = stored.shape[0]!;
      const width = elementCount(stored.shape) / rows;
      const step = Math.max(1, Math.floor((options.partNumbers ?? PART_NUMBERS) / width));
      for (let first = 0; first < rows; first += step) {
        const shape = [Math.min(step, rows - first), width];
        const data = readTensor({
          ...stored,
          shape,
          offset: stored.offset + storedBytes(stored.dtype, [first, width]),
        });
        checkFinite(stored.name, data, source, first * width);
        options.change?.(stored.name, data, first);
        checkHeld(stored.name, data, dtype, first * width);
        yield data;
      }
    },
  }));
  const files = saveWeights(out, tensors, { dtype, shardBytes: options.shardBytes });
  writeConfig(out, source, TRANSFORMERS_DTYPES[dtype]);
  return files;
}

/** The smallest number that rounds to infinity. */
const TOO_LARGE: Record<SafetensorsDType, number> = { F16: 65520, BF16: 2 ** 128 - 2 ** 119, F32: Infinity };

function checkHeld(name: string, data: Float32Array, dtype: SafetensorsDType, begin: number): void {
  const at = data.findIndex((value) => !(Math.abs(value) < TOO_LARGE[dtype]));
  if (at < 0) return;
  const remedy = {
    F32: "the adapter does not belong to these weights",
    BF16: "write another dtype (--dtype)",
    F16: "write another dtype (--dtype), or in a run set generation.weightSync to Adapter",
  }[dtype];
  throw new ModelError(
    "weights",
    `${name} holds ${data[at]} at index ${begin + at}, which ${TRANSFORMERS_DTYPES[dtype]} cannot: ${remedy}`,
  );
}

/** Like `convertFolder`, with the adapter added to the weights: W + (alpha / rank) B A. @throws ModelError */
export function mergeFolder(model: string, adapterFolder: string, out: string, options: ConvertOptions): number {
  const adapter = readAdapter(adapterFolder, readConfig(model));
  return convertFolder(model, out, {
    ...options,
    change: (name, rows, first) => addAdapter(rows, first, name.replace(/\.weight$/, ""), adapter),
  });
}

/** Adds scale B A, summed in float64, to rows from `first` on of the weight [out, in] of the layer `path`. */
function addAdapter(rows: Float32Array, first: number, path: string, { lora, weights }: Adapter): void {
  const names = adapterNames(path);
  const [a, b] = [weights.get(names.a), weights.get(names.b)];
  if (a === undefined || b === undefined) return;
  const { rank } = lora;
  const scale = adapterScale(lora);
  const columns = a.length / rank;
  const row = new Float64Array(columns);
  for (let out = 0; out < rows.length / columns; out++) {
    row.fill(0);
    for (let k = 0; k < rank; k++) {
      const factor = scale * b[(first + out) * rank + k];
      for (let i = 0; i < columns; i++) row[i] += factor * a[k * columns + i];
    }
    for (let i = 0; i < columns; i++) rows[out * columns + i] += row[i];
  }
}
