/** The two ways in which the generation graphs have a model's weights. */
import { type Graph, innermost, type Value } from "../graph/graph.ts";
import { add, cast, concat, expand, gather, mul, reshape } from "../graph/primitives.ts";
import type { ModelConfig } from "./config.ts";
import { fusedParameters, transformersName } from "./fuse.ts";
import { adapted, adapterInputs, type LoraConfig } from "./lora.ts";
import type { MappedWeights } from "./mapped.ts";
import { elementCount } from "./weights.ts";

/** x is float32 [rows, in]. */
export interface GraphWeights {
  /** rows of the embedding, float32 [tokens, hiddenSize] */
  embed(tokens: Value): Value;
  /** float32 [hiddenSize]: `norm1` and `norm2` of a layer, or the last one */
  norm(name: string): Value;
  /** float32 [rows, (heads + 2 keyValueHeads) headSize]: per key-value head its queries, its key, its value */
  queryKeyValue(x: Value, layer: number): Value;
  /** Scales of each head's query and key after their norm, float32 [queries + 1, headSize]. */
  headNorms(layer: number): Value;
  /** `out` and `down` of a layer, or the output layer `head` */
  linear(x: Value, name: string): Value;
  /** float32 [rows, intermediateSize] each */
  gateAndUp(x: Value, layer: number): [Value, Value];
}

/** Inputs made by `FusedWeights`: few large products, for weights that change. Queries are divided by sqrt(headSize) already. */
export function fusedInputs(graph: Graph, config: ModelConfig): GraphWeights {
  const values = new Map(
    fusedParameters(config).map(({ name, shape }) => [name, graph.input(`weights.${name}`, "float32", shape)]),
  );
  const project = (x: Value, name: string) => gemm(x, values.get(name)!, values.get(`${name}Bias`));
  return {
    embed: (tokens) => gather(values.get("embedding")!, tokens),
    norm: (name) => values.get(name)!,
    queryKeyValue: (x, layer) => project(x, `${layer}.qkv`),
    headNorms: (layer) => values.get(`${layer}.headNorms`)!,
    linear: (x, name) => project(x, name === "head" && config.tied ? "embedding" : name),
    gateAndUp(x, layer) {
      const both = project(x, `${layer}.gateUp`);
      const size = config.intermediateSize;
      const half = { dtype: x.dtype, shape: [x.shape[0], size] };
      const [gate, up] = innermost([both]).op("Split", [both, graph.constant([size, size], "int64")], { axis: 1 }, [
        half,
        half,
      ]);
      return [gate, up];
    },
  };
}

/**
 * Half precision is cast where it is used, for every token anew, this many numbers at a time: their float32 copy stays in
 * the processor's cache until the product has read it, so that a step reads the file's bytes from memory and no more. Half
 * and twice as many take 10 to 20 % longer.
 */
export const CAST_NUMBERS = 1 << 19;
/** On a GPU such parts would be a thousand launches a token: there a part is a whole matrix, but of the output layer. */
export const GPU_CAST_NUMBERS = 1 << 25;
/** More parts of a model than this, and each is larger: a session of 1,700 takes 3 s to make, one of 6,500 minutes. */
const MOST_PARTS = 1024;

const EMBEDDING = "model.embed_tokens.weight";

/**
 * Weights of a folder's files as they are, with the inputs of an adapter beside them where `lora` is given. No copy of a
 * matrix is held: those in half precision are cast in the graph that multiplies with them, `castAtOnce` numbers at a time.
 */
export function mappedInitializers(
  graph: Graph,
  mapped: MappedWeights,
  lora?: LoraConfig,
  castAtOnce = CAST_NUMBERS,
): GraphWeights {
  const { config, tensors } = mapped;
  const numbers = tensors.reduce((sum, { shape }) => sum + elementCount(shape), 0);
  const castNumbers = Math.max(castAtOnce, Math.ceil(numbers / MOST_PARTS));
  const { heads, keyValueHeads, headSize } = config;
  const queries = heads / keyValueHeads;
  const scale = 1 / Math.sqrt(headSize);
  const stored = mapped.stored(graph, ({ name, shape }) => shape.length === 1 || name === EMBEDDING);
  const vectors = new Map(
    [...stored].flatMap(([name, value]) => (value.shape.length === 1 ? [[name, cast(value, "float32")]] : [])),
  );
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  const adapter = lora && adapterInputs(graph, config, lora, { requiresGrad: false });

  const project = (x: Value, path: string) => {
    const name = `${path}.weight`;
    const { dtype, shape } = byName.get(name)!;
    const rows = dtype === "F32" ? shape[0] : Math.max(1, Math.floor(castNumbers / shape[1]));
    const products = mapped.rowChunks(graph, name, rows).map((part) => gemm(x, castBeside(x, part), undefined));
    const whole = products.length === 1 ? products[0] : concat(products, 1);
    const bias = vectors.get(`${path}.bias`);
    const y = bias ? add(whole, bias) : whole;
    return adapter ? adapted(y, x, path, adapter) : y;
  };
  return {
    embed: (tokens) => cast(gather(stored.get(EMBEDDING)!, tokens), "float32"),
    norm: (name) => vectors.get(transformersName(name)!)!,
    queryKeyValue(x, layer) {
      const part = (name: string, count: number): Value =>
        reshape(project(x, `model.layers.${layer}.self_attn.${name}_proj`), [
          x.shape[0],
          keyValueHeads,
          count,
          headSize,
        ]);
      const query = part("q", queries);
      const parts = [config.queryKeyNorm ? query : mul(query, scale), part("k", 1), part("v", 1)];
      return reshape(concat(parts, 2), [x.shape[0], (heads + 2 * keyValueHeads) * headSize]);
    },
    headNorms(layer) {
      const at = (name: string) => vectors.get(`model.layers.${layer}.self_attn.${name}_norm.weight`)!;
      return concat([expand(mul(at("q"), scale), [queries, headSize]), reshape(at("k"), [1, headSize])], 0);
    },
    linear: (x, name) =>
      project(x, (name === "head" ? mapped.outputName : transformersName(name)!).replace(/\.weight$/, "")),
    gateAndUp: (x, layer) => [
      project(x, `model.layers.${layer}.mlp.gate_proj`),
      project(x, `model.layers.${layer}.mlp.up_proj`),
    ],
  };
}

/**
 * `weight` in float32, cast by a node of the graph that x is in: the primitive would put it outside of a loop, and the loop
 * would hold the copies of all weights. It is the graph's first node, so that it runs right before the product: see
 * `MappedWeights.initializers`.
 */
function castBeside({ graph }: Value, weight: Value): Value {
  if (weight.dtype === "float32") return weight;
  const [copy] = graph.op("Cast", [weight], { to: 1 }, [{ dtype: "float32", shape: weight.shape }]);
  graph.nodes.unshift(graph.nodes.pop()!);
  return copy;
}

/** x [rows, in] times a weight [out, in], plus a bias [out] where there is one. */
function gemm(x: Value, weight: Value, bias: Value | undefined): Value {
  const inputs = bias === undefined ? [x, weight] : [x, weight, bias];
  const output = { dtype: x.dtype, shape: [x.shape[0], weight.shape[0]] };
  return innermost(inputs).op("Gemm", inputs, { transB: 1 }, [output])[0];
}
