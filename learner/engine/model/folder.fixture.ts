/** All weights of a folder or a file in memory, which nothing but tests needs. */
import type { ModelConfig } from "./config.ts";
import { eachWeight, readConfig, readEosIds } from "./folder.ts";
import { checkShapes, parameters, type Tensor } from "./weights.ts";

/** @throws ModelError naming the file that is missing or wrong */
export function readModelFolder(folder: string) {
  const config = readConfig(folder);
  return { config, weights: new Map(eachWeight(folder, config)), eosIds: readEosIds(folder) };
}

/** Returns the weights that `config` needs from a file's tensors, in canonical order. @throws as `checkShapes` */
export function selectWeights(
  config: ModelConfig,
  tensors: ReadonlyMap<string, Tensor>,
  source: string,
): Map<string, Float32Array> {
  checkShapes(config, tensors, source);
  return new Map(parameters(config).map(({ name }) => [name, tensors.get(name)!.data]));
}
