/** The two ways in which the generation graph has a model's weights. */
import type { Compute, Graph, Value } from "../graph/graph.ts";
import { add, cast, concat, gather, matmul } from "../graph/primitives.ts";
import { type DType, tensor } from "../graph/tensor.ts";
import type { ModelConfig } from "./config.ts";
import { joinedLinear } from "./generate-joined.ts";
import { parameterInput } from "./halved.ts";
import { SAFETENSORS_DTYPES, toStored } from "./halves.ts";
import { adapterParameters, adapterProduct, adapterScale, type LoraConfig } from "./lora.ts";
import { castFirst, type MappedWeights } from "./mapped.ts";
import { readTensor } from "./safetensors.ts";
import { elementCount, type Parameter, parameters } from "./weights.ts";

/** Hidden states are [slots, length, ...]; parameters have transformers' names. */
export interface GraphWeights {
  /** of products within the decoder */
  readonly dtype: DType;
  /** rows of the embedding, float32 [...tokens, hiddenSize] */
  embed(tokens: Value): Value;
  /** a norm's scales, float32; undefined for a bias that the model does not have */
  vector(name: string): Value | undefined;
  /** whether linear layers with one input give one output, with theirs side by side; x is [rows, in] then */
  readonly joins: boolean;
  /** linear layers of x, such as `model.layers.0.mlp.up_proj`: an output for each, unless they are joined */
  linear(x: Value, ...paths: string[]): Value[];
  /** logits, float32 [slots, vocabSize] */
  head(x: Value): Value;
}

const EMBEDDING = "model.embed_tokens.weight";

/**
 * Inputs for parameters that change (halved.ts), each made when it is first asked for: an input that nothing reads would be copied to
 * the host with every run.
 */
function parameterInputs(graph: Graph, shapes: readonly Pick<Parameter, "name" | "shape">[]) {
  const byName = new Map(shapes.map(({ name, shape }) => [name, shape]));
  const inputs = new Map<string, Value>();
  return (name: string): Value | undefined => {
    const shape = byName.get(name);
    if (shape && !inputs.has(name)) inputs.set(name, parameterInput(graph, name, shape, { requiresGrad: false }));
    return inputs.get(name);
  };
}

const withBias = (y: Value, bias: Value | undefined): Value => (bias ? add(y, cast(bias, y.dtype)) : y);

/** Weights that are trained, as inputs. */
export function fedWeights(graph: Graph, config: ModelConfig): GraphWeights {
  const weight = parameterInputs(graph, parameters(config));
  return {
    ...{ dtype: graph.model.compute, joins: false },
    embed: (tokens) => gather(weight(EMBEDDING)!, tokens),
    vector: weight,
    linear: (x, ...paths) =>
      paths.map((path) => withBias(matmul(x, weight(`${path}.weight`)!, { transB: true }), weight(`${path}.bias`))),
    head: (x) => matmul(x, weight(config.tied ? EMBEDDING : "lm_head.weight")!, { transB: true, precise: true }),
  };
}

/**
 * Half precision that is not multiplied as it is, is cast where it is used, for every token anew, this many numbers at a time: their
 * float32 copy stays in the processor's cache until the product has read it, so that a step reads the file's bytes from memory and no
 * more. Half and twice as many take 10 to 20 % longer.
 */
export const CAST_NUMBERS = 1 << 19;
/** Parts of CAST_NUMBERS would be a thousand launches a token on a GPU. There a part is a whole matrix, except in the output layer. */
export const GPU_CAST_NUMBERS = 1 << 25;
/** More parts of a model than this, and each is larger: a session of 1,700 takes 3 s to make, one of 6,500 minutes. */
const MOST_PARTS = 1024;

/**
 * Weights of a folder's files as they are, with the inputs of an adapter beside them where `lora` is given. No copy of a matrix is
 * held: those in another dtype than the graph's are cast in the graph, `castAtOnce` numbers at a time.
 *
 * @param joins a device has the matrices of layers with one input one after the other: generate-joined.ts
 */
export function mappedWeights(
  graph: Graph,
  mapped: MappedWeights,
  lora?: LoraConfig,
  { castAtOnce = CAST_NUMBERS, joins = false } = {},
): GraphWeights {
  const { config, tensors } = mapped;
  const numbers = tensors.reduce((sum, { shape }) => sum + elementCount(shape), 0);
  const castNumbers = Math.max(castAtOnce, Math.ceil(numbers / MOST_PARTS));
  const [embedding] = mapped.stored(graph, ({ name }) => name === EMBEDDING).values();
  const byName = new Map(tensors.map((each) => [each.name, each]));
  const adapter = lora && parameterInputs(graph, adapterParameters(config, lora));
  const joined = joins ? joinedLinear(graph, mapped, lora) : undefined;
  /** Vectors one after the other, read here: a cast in the graph would be one more node with every token. */
  const vector = (names: readonly string[], dtype: Compute = "float32"): Value | undefined => {
    const stored = names.flatMap((name) => byName.get(name) ?? []);
    const bytes = toStored(SAFETENSORS_DTYPES[dtype], Float32Array.from(stored.flatMap((it) => [...readTensor(it)])));
    const data = dtype === "float32" ? new Float32Array(bytes.buffer) : new Uint16Array(bytes.buffer);
    return stored.length > 0 ? graph.initializer(names.join(), tensor(data, [data.length], dtype)) : undefined;
  };
  const biases = (paths: readonly string[]) =>
    vector(
      paths.map((path) => `${path}.bias`),
      graph.model.compute,
    );
  /** x times a stored matrix in the dtype `as` */
  const multiply = (x: Value, name: string, as: DType): Value => {
    const { dtype, shape } = byName.get(name)!;
    const rows = dtype === "F32" ? shape[0]! : partRows(shape[0]!, Math.max(1, Math.floor(castNumbers / shape[1]!)));
    const products = mapped
      .rowChunks(graph, name, rows)
      .map((part) => matmul(x, castFirst(part, as), { transB: true, precise: as === "float32" }));
    return products.length === 1 ? products[0]! : concat(products, products[0]!.shape.length - 1);
  };
  return {
    ...{ dtype: graph.model.compute, joins },
    embed: (tokens) => cast(gather(embedding!, tokens), "float32"),
    vector: (name) => vector([name]),
    linear(x, ...paths) {
      if (joined) return [withBias(joined(x, paths), biases(paths))];
      return paths.map((path) => {
        const y = multiply(x, `${path}.weight`, graph.model.compute);
        const values = adapter && { get: adapter };
        const added = values && adapterProduct(x, path, { scale: adapterScale(lora), values });
        return withBias(added ? add(y, added) : y, biases([path]));
      });
    },
    head: (x) => multiply(x, mapped.outputName, "float32"),
  };
}

/**
 * At most `most` rows of `count` for each part. Equal parts, where twice as many can be equal: to join others on a GPU, ONNX Runtime
 * copies a table of all rows there with every run.
 */
function partRows(count: number, most: number): number {
  const least = Math.ceil(count / most);
  for (let parts = least; parts <= 2 * least; parts++) if (count % parts === 0) return count / parts;
  return most;
}
