/** The critic's head: one number per position, V = hidden w + b. */
import type { Graph, Value } from "../graph/graph.ts";
import { add, cast, reshape } from "../graph/primitives.ts";
import { matmul } from "../graph/products.ts";
import type { ModelConfig } from "./config.ts";

/** Named as in transformers' token classification models with one label. */
const VALUE_WEIGHT = "score.weight";
export const VALUE_BIAS = "score.bias";

export function valueHeadShapes(config: ModelConfig) {
  return [
    { name: VALUE_WEIGHT, shape: [1, config.hiddenSize] },
    { name: VALUE_BIAS, shape: [1] },
  ];
}

export const valueHeadParameters = (g: Graph, config: ModelConfig, options: { requiresGrad: boolean }) =>
  new Map(valueHeadShapes(config).map(({ name, shape }) => [name, g.input(name, "float32", shape, options)]));

/** hidden [rows, size] -> values float32 [rows] */
export function valueHead(hidden: Value, weights: ReadonlyMap<string, Value>): Value {
  const scores = matmul(cast(hidden, "float32"), weights.get(VALUE_WEIGHT)!, { transB: true, precise: true });
  return reshape(add(scores, weights.get(VALUE_BIAS)!), [hidden.shape[0]]);
}
