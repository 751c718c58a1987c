/** An adapter added to its model's weights: W + (alpha / rank) B A, one tensor in memory at a time. */
import { readAdapter } from "../engine/model/adapter-folder.ts";
import { readConfig } from "../engine/model/folder.ts";
import { type Adapter, adapterNames, adapterScale } from "../engine/model/lora.ts";
import { type ConvertOptions, convertFolder } from "./convert.ts";

/**
 * Writes the folder `out` with the merged weights, as `convertFolder` does.
 *
 * @returns the number of files of weights
 * @throws ModelError when the model or the adapter cannot be used
 */
export function mergeFolder(
  model: string,
  adapterFolder: string,
  out: string,
  options: Omit<ConvertOptions, "change">,
): number {
  const adapter = readAdapter(adapterFolder, readConfig(model));
  return convertFolder(model, out, {
    ...options,
    change: (name, data) => addAdapter(data, name.replace(/\.weight$/, ""), adapter),
  });
}

/** weight [out, in] of the layer `path` += scale B A, summed in float64. */
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
