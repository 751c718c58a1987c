/** fuse.ts as a graph, for weights that are on a device: the same bits. */
import { Graph, type Value } from "../graph/graph.ts";
import { cast, concat, expand, mul, reshape } from "../graph/primitives.ts";
import type { ModelConfig } from "./config.ts";
import { type FusedParameter, fusedParameters, transformersName } from "./fuse.ts";
import { parameters } from "./weights.ts";

/** The parameters that fusing makes; all others are used as they are. */
export const joinedParameters = (config: ModelConfig): FusedParameter[] =>
  fusedParameters(config).filter(({ name }) => transformersName(name) === undefined);

/** Parameters by transformers' names, those that are joined -> `weights.` and joinedParameters' names */
export function fuseGraph(config: ModelConfig): Graph {
  const { heads, keyValueHeads, headSize, hiddenSize, queryKeyNorm } = config;
  const graph = new Graph("fuse");
  const shapes = new Map(parameters(config).map(({ name, shape }) => [name, shape]));
  const take = (name: string): Value => graph.input(name, "float32", shapes.get(name)!);
  const scale = 1 / Math.sqrt(headSize);
  const queries = heads / keyValueHeads;

  for (const { name, shape } of joinedParameters(config)) {
    const [layer, part] = name.split(".");
    const at = `model.layers.${layer}`;
    const join = (suffix: string, width: number): Value => {
      const [query, key, value] = ["q", "k", "v"].map((p) => take(`${at}.self_attn.${p}_proj.${suffix}`));
      const heads = (x: Value, count: number) => reshape(x, [keyValueHeads, count * headSize * width]);
      const scaled = queryKeyNorm ? query! : times(query!, scale);
      return concat([heads(scaled, queries), heads(key!, 1), heads(value!, 1)], 1);
    };
    const makers: Record<string, () => Value> = {
      qkv: () => join("weight", hiddenSize),
      qkvBias: () => join("bias", 1),
      headNorms: () => {
        const [query, key] = ["q", "k"].map((p) => take(`${at}.self_attn.${p}_norm.weight`));
        return concat([expand(times(query!, scale), [queries, headSize]), reshape(key!, [1, headSize])], 0);
      },
      gateUp: () => concat([take(`${at}.mlp.gate_proj.weight`), take(`${at}.mlp.up_proj.weight`)], 0),
    };
    graph.output(`weights.${name}`, reshape(makers[part!]!(), shape));
  }
  return graph;
}

/** In float64, as JavaScript multiplies. */
const times = (x: Value, factor: number): Value => cast(mul(cast(x, "float64"), factor), "float32");
