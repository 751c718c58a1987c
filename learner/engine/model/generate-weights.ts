/** The weights of generation: inputs of its graph if they change, else initializers in a folder's files. */
import { fusedLinearAdapted } from "../graph/fused.ts";
import type { Compute, Graph, Value } from "../graph/graph.ts";
import { add, cast, concat, gather } from "../graph/primitives.ts";
import { matmul } from "../graph/products.ts";
import { type DeviceTensor, type DType, tensor } from "../graph/tensor.ts";
import type { ModelConfig } from "./config.ts";
import { joinedLinear, type Stacked, stackedLayers } from "./generate-joined.ts";
import { parameterInput } from "./halved.ts";
import { SAFETENSORS_DTYPES, toStored } from "./halves.ts";
import { adapterParameters, adapterProduct, adapterScale, type LoraConfig } from "./lora.ts";
import { castFirst, type MappedWeights } from "./mapped.ts";
import { readTensor } from "./safetensors.ts";
import { EMBEDDING, elementCount, OUTPUT_LAYER, parameters } from "./weights.ts";

/** Weights by name, in this process's memory or on the device of the generator's sessions. They may change between calls. */
export type Numbers = ReadonlyMap<string, Float32Array | DeviceTensor>;

/** A folder's unchanged files, and an adapter. */
interface FileWeights {
  readonly base: MappedWeights;
  /** float32 copies of the files' half-precision matrices (widened.ts); left out: the graph casts them at each use */
  readonly wide?: Numbers | undefined;
  readonly adapter?: { readonly lora: LoraConfig; readonly weights: Numbers };
}

/** All weights, by transformers' names; or a folder's files. */
export type GeneratorWeights = Numbers | FileWeights;

/** Returns the files of these weights; an empty object if all weights are in memory. */
export const filesOf = (weights: GeneratorWeights): Partial<FileWeights> => ("base" in weights ? weights : {});

/**
 * The parameters that are inputs of the graph, and their numbers: all of a model, or an adapter's and the copies of half-precision
 * matrices.
 */
export function inputsOf(config: ModelConfig, weights: GeneratorWeights) {
  if (!("base" in weights)) return { shapes: parameters(config), numbers: weights };
  const { adapter, wide } = weights;
  const copied = parameters(config).filter(({ name }) => wide?.has(name));
  const numbers: Numbers = new Map([...(adapter?.weights ?? []), ...(wide ?? [])]);
  return { shapes: [...(adapter ? adapterParameters(config, adapter.lora) : []), ...copied], numbers };
}

/**
 * A half-precision matrix that must be cast is cast at its use, for every token anew, this many numbers at a time: their
 * float32 copy stays in the processor's cache until the product has read it, so that a step reads only the file's bytes from
 * memory. Half and twice as many take 10 to 20 % longer.
 */
export const CAST_NUMBERS = 1 << 19;
/** Parts of CAST_NUMBERS would be a thousand launches a token on a GPU. There a part is a whole matrix, except in the output layer. */
export const GPU_CAST_NUMBERS = 1 << 25;
/** Most parts of a model; beyond it parts become larger. A session of 1,700 parts takes 3 s to make, one of 6,500 minutes. */
const MOST_PARTS = 1024;

export interface WeightOptions {
  /** numbers of a matrix that are cast at a time; default CAST_NUMBERS */
  readonly castAtOnce?: number;
  /** whether the layers of `linear` are joined (generate-joined.ts) */
  readonly joins?: boolean;
}

/**
 * Functions that add products with a model's weights to a graph. Hidden states are [rows, size]; parameters have transformers' names.
 * The graph casts matrices whose dtype is not the product's.
 */
export function weightsIn(
  graph: Graph,
  config: ModelConfig,
  weights: GeneratorWeights,
  { castAtOnce = CAST_NUMBERS, joins = false }: WeightOptions,
) {
  const { compute } = graph.model;
  const { base, adapter } = filesOf(weights);
  const stored = new Map(base?.tensors.map((each) => [each.name, each]));
  const numbers = [...stored.values()].reduce((sum, { shape }) => sum + elementCount(shape), 0);
  const castNumbers = Math.max(castAtOnce, Math.ceil(numbers / MOST_PARTS));
  const shapes = new Map(inputsOf(config, weights).shapes.map(({ name, shape }) => [name, shape]));
  const made = new Map<string, Value>();
  const once = (name: string, make: () => Value): Value => {
    if (!made.has(name)) made.set(name, make());
    return made.get(name)!;
  };
  /** Made at its first use: an input that nothing reads would be copied to the host with every run. */
  const input = (name: string): Value | undefined => {
    const shape = shapes.get(name);
    return shape && once(name, () => parameterInput(graph, name, shape, { requiresGrad: false }));
  };
  /** Vectors one after the other. Vectors of files are read here: a cast in the graph would be one more node with every token. */
  const vector = (dtype: Compute, names: readonly string[]): Value | undefined => {
    if (!base) return input(names[0]!);
    const found = names.flatMap((name) => stored.get(name) ?? []);
    if (found.length === 0) return undefined;
    const bytes = toStored(SAFETENSORS_DTYPES[dtype], Float32Array.from(found.flatMap((it) => [...readTensor(it)])));
    const data = dtype === "float32" ? new Float32Array(bytes.buffer) : new Uint16Array(bytes.buffer);
    return once(names.join(), () => graph.initializer(names.join(), tensor(data, [data.length], dtype)));
  };
  /** A matrix of the files, in parts that are cast separately. */
  const parts = (files: MappedWeights, name: string): Value[] => {
    const { dtype, shape } = stored.get(name)!;
    const [count, size] = shape as [number, number];
    const most = Math.max(1, Math.floor(castNumbers / size));
    return files.rowChunks(graph, name, dtype === "F32" ? count : partRows(count, most));
  };
  /** x times a matrix in the dtype `as` */
  const multiply = (x: Value, name: string, as: DType): Value => {
    const options = { transB: true, precise: as === "float32" };
    const whole = input(name);
    const products = (whole ? [whole] : parts(base!, name)).map((part) => matmul(x, castFirst(part, as), options));
    return products.length === 1 ? products[0]! : concat(products, 1);
  };
  /** The layers of some paths, separately or all joined. */
  const layer = (x: Value, paths: readonly string[]): Value => {
    if (joins) return joinedLinear(x, base!, adapter?.lora, paths);
    const y = multiply(x, `${paths[0]}.weight`, compute);
    const beside = adapter && { scale: adapterScale(adapter.lora), values: { get: input } };
    const added = beside && adapterProduct(x, paths[0]!, beside);
    return added ? add(y, added) : y;
  };
  const headName = config.tied ? EMBEDDING : OUTPUT_LAYER;
  /** A matrix of the files, as it is there. */
  const matrix = (name: string): Value =>
    once(name, () => base!.stored(graph, (each) => each.name === name).get(name)!);
  /** The inputs of kernels for joined layers with an adapter; undefined: there are none. */
  const stacked = (paths: readonly string[]): Stacked | undefined =>
    graph.model.kernels && joins && adapter ? stackedLayers(graph, config, adapter.lora, paths) : undefined;
  return {
    stacked,
    /** Rows of the embedding, float32 [rows, hiddenSize]. */
    embed(tokens: Value): Value {
      return cast(gather(input(EMBEDDING) ?? matrix(EMBEDDING), tokens), "float32");
    },
    /** A norm's scales, float32. */
    scales: (name: string): Value => vector("float32", [name])!,
    /** The bias of a linear layer, float32, for a kernel that computes the layer without it. */
    bias: (path: string): Value | undefined => vector("float32", [`${path}.bias`]),
    /** Linear layers of x, such as `model.layers.0.mlp.up_proj`: an output for each, or one joined output. */
    linear: (x: Value, ...paths: string[]): Value[] =>
      (joins ? [paths] : paths.map((path) => [path])).map((each) => {
        const biases = each.map((path) => `${path}.bias`);
        const there = stacked(each);
        if (there) {
          const zeros = () => graph.constant(new Array(there.ends.at(-1)).fill(0));
          return fusedLinearAdapted(x, there.matrix, there, vector("float32", biases) ?? zeros());
        }
        const y = layer(x, each);
        const bias = vector(compute, biases);
        return bias ? add(y, cast(bias, y.dtype)) : y;
      }),
    /** Logits, float32 [rows, vocabSize]. */
    head: (x: Value): Value => multiply(x, headName, "float32"),
    /** The matrix of logits, bfloat16 [vocabSize, hiddenSize], for a kernel; undefined: none computes them. */
    narrowHead: (): Value | undefined =>
      graph.model.kernels && stored.get(headName)?.dtype === "BF16" ? matrix(headName) : undefined,
  };
}

/**
 * Returns the rows of a part, at most `most` of `count`. Parts are equal if at most twice as many can be: to join unequal parts on a GPU,
 * ONNX Runtime copies a table of all rows there with every run.
 */
function partRows(count: number, most: number): number {
  const least = Math.ceil(count / most);
  for (let parts = least; parts <= 2 * least; parts++) if (count % parts === 0) return count / parts;
  return most;
}
