/**
 * Linear layers with one input as one product, for a GPU: the frozen matrices lie there one after the other, with the adapters' A below
 * them (`joinedParts`). Each adapted layer reads its own part of x A^T, so the sum is exactly the sum of the separate adapters.
 *
 * | | matrices of the adapters' B | products |
 * | --- | --- | --- |
 * | our own kernels (graph/fused.ts) | transposed, side by side | one with W and A; the kernel after it multiplies B |
 * | ONNX Runtime's operators | diagonal blocks | three: A, B, and W, to which it is added |
 */
import { affine } from "../graph/composites.ts";
import type { AdapterUp } from "../graph/fused.ts";
import { Graph, type Value } from "../graph/graph.ts";
import { layoutOf } from "../graph/parameters.ts";
import { cast, concat, pad, transpose } from "../graph/primitives.ts";
import { matmul } from "../graph/products.ts";
import { type DeviceTensor, DTYPES, type DType, elementCount, tensor } from "../graph/tensor.ts";
import type { JoinedParts } from "../runtime/files.ts";
import type { OnDevice } from "../runtime/runtime.ts";
import type { ModelConfig } from "./config.ts";
import { type SafetensorsDType, storedBytes } from "./halves.ts";
import { adapterNames, adapterParameters, adapterScale, type LoraConfig } from "./lora.ts";
import { castFirst, JOINED_PROJECTIONS, type MappedWeights } from "./mapped.ts";
import type { StoredTensor } from "./safetensors.ts";
import { parameters } from "./weights.ts";

/** Returns a parameter's name in another layer. */
const inLayer = (name: string, layer: number) => name.replace(/model\.layers\.\d+\./, `model.layers.${layer}.`);

/** Rows of A below W are a multiple of this: kernels load 16 bytes of a product at a time. */
const ROW_MULTIPLE = 16;

/** Joined layers, and the adapter's matrices beside them: A [adapted layers x rank, in], below W in `stacked`; B in two forms. */
function joinedLayers(config: ModelConfig, lora: LoraConfig, paths: readonly string[]) {
  const shapes = new Map(parameters({ ...config, layers: 1 }).map(({ name, shape }) => [name, shape]));
  const weights = paths.map((path) => shapes.get(inLayer(`${path}.weight`, 0))!);
  const adapted = paths.filter((path) => lora.targets.some((target) => path.endsWith(target)));
  const [columns, outs, size] = [adapted.length * lora.rank, weights.map(([out]) => out!), weights[0]![1]!];
  const out = outs.reduce((sum, each) => sum + each);
  const rows = ROW_MULTIPLE * Math.ceil(columns / ROW_MULTIPLE);
  const { a, b } = adapterNames(`joined ${paths[0]}`);
  return {
    paths,
    outs,
    adapted,
    down: { name: a, shape: [columns, size] },
    stacked: { name: `stacked ${paths[0]}`, shape: [out + rows, size] },
    /** diagonal blocks */
    up: { name: b, shape: [out, columns] },
    /** of our own kernels */
    transposed: { name: `transposed ${b}`, shape: [lora.rank, out] },
    rows,
  };
}

/** The groups of joined layers in a layer of the decoder. */
const inLayerOf = (config: ModelConfig, lora: LoraConfig, layer: number) =>
  JOINED_PROJECTIONS.map((projections) => {
    const paths = projections.map((projection) => `model.layers.${layer}.${projection}`);
    return joinedLayers(config, lora, paths);
  });
const isAdapted = ({ adapted }: { adapted: readonly string[] }) => adapted.length > 0;
const inFirstLayer = (config: ModelConfig, lora: LoraConfig) => inLayerOf(config, lora, 0).filter(isAdapted);

/** The dtype of joined matrices beside files in `stored`: beside a cache in bfloat16, matrices in float16 are cast to float32. */
const besideFiles = (stored: SafetensorsDType): SafetensorsDType => (stored === "BF16" ? "BF16" : "F32");

/** Bytes of the joined matrices of a whole adapter on a GPU. */
export const joinedBytes = (config: ModelConfig, stored: readonly StoredTensor[], lora: LoraConfig): number =>
  inFirstLayer(config, lora)
    .flatMap(({ down, up }) => [down, up])
    .reduce((sum, { shape }) => sum + config.layers * storedBytes(besideFiles(stored[0]!.dtype), shape), 0);

type FrozenMatrices = Pick<MappedWeights, "config" | "matrices">;

/** Matrices that a device should have one after the other, with room for A below. */
export const joinedParts = (mapped: FrozenMatrices, lora: LoraConfig): JoinedParts[] =>
  Array.from({ length: mapped.config.layers }, (_, layer) =>
    inLayerOf(mapped.config, lora, layer).map(({ paths, rows, down }) => {
      const parts = mapped.matrices(paths);
      return { parts, room: storedBytes(besideFiles(parts[0]!.dtype), [rows, down.shape[1]!]) };
    }),
  ).flat();

/** What the kernels of joined and adapted layers read. */
export interface Stacked extends AdapterUp {
  /** W and the A below it, [sum of out and more, in] */
  matrix: Value;
  /** the columns at which the layers end */
  ends: number[];
  /** the place of each layer's A; a layer without an adapter has some place, and a B of zeros */
  places: number[];
}

/**
 * The matrices of the layers `paths` as inputs of a graph that our kernels compute; undefined if the adapter changes none of these layers.
 */
export function stackedLayers(graph: Graph, config: ModelConfig, lora: LoraConfig, paths: readonly string[]) {
  const layers = joinedLayers(config, lora, paths);
  if (!isAdapted(layers)) return undefined;
  const [matrix, up] = [layers.stacked, layers.transposed].map(({ name, shape }) =>
    graph.input(name, graph.model.compute, shape),
  );
  const ends = layers.outs.map((_, i) => layers.outs.slice(0, i + 1).reduce((sum, out) => sum + out));
  const places = paths.map((path) => Math.max(0, layers.adapted.indexOf(path)));
  return { matrix: matrix!, up: up!, scale: adapterScale(lora), ends, places } satisfies Stacked;
}

/** The linear layers `paths` of x [rows, in], without biases: [rows, sum of their outputs]. The adapter's matrices are inputs. */
export function joinedLinear(x: Value, mapped: MappedWeights, lora: LoraConfig | undefined, paths: readonly string[]) {
  const { graph } = x;
  const { compute } = graph.model;
  const [input, weight] = [cast(x, compute), castFirst(mapped.joinedRows(graph, paths), compute)];
  const layers = lora && joinedLayers(mapped.config, lora, paths);
  const transposed = { transB: true };
  if (!layers || layers.adapted.length === 0) return matmul(input, weight, transposed);
  const [down, up] = [layers.down, layers.up].map(({ name, shape }) => graph.input(name, compute, shape));
  const added = matmul(matmul(input, down!, transposed), up!, { ...transposed, alpha: adapterScale(lora) });
  return affine(input, weight, added); // adds the product to the adapter's output: added to a rounded product, small changes would be lost
}

/** Makes joined matrices from the adapter's float32 matrices of the first layer. @param fused for our own kernels */
function joinGraph(config: ModelConfig, lora: LoraConfig, dtype: DType, fused: boolean): Graph {
  const graph = new Graph("join_adapter");
  const given = adapterParameters({ ...config, layers: 1 }, lora);
  const inputs = new Map(given.map(({ name, shape }) => [name, graph.input(name, "float32", shape)]));
  const below = (parts: Value[]) => (parts.length > 1 ? concat(parts, 0) : parts[0]!);
  for (const { paths, outs, adapted, down, up, transposed } of inFirstLayer(config, lora)) {
    const ups = paths.map((path, i) => {
      const [place, shape] = [adapted.indexOf(path), [outs[i]!, fused ? lora.rank : up.shape[1]!]];
      if (place < 0) return graph.initializer(path, tensor(new Float32Array(elementCount(shape)), shape));
      const each = inputs.get(adapterNames(path).b)!;
      return fused ? each : pad(each, 1, place * lora.rank, (adapted.length - 1 - place) * lora.rank);
    });
    graph.output(down.name, cast(below(adapted.map((path) => inputs.get(adapterNames(path).a)!)), dtype));
    if (fused) graph.output(transposed.name, cast(transpose(below(ups), [1, 0]), dtype));
    else graph.output(up.name, cast(below(ups), dtype));
  }
  return graph;
}

export type JoinedAdapter = Awaited<ReturnType<typeof joinedAdapter>>;

/**
 * Joined matrices on a device. They stay where they are when the adapter changes. @param fused for our own kernels.
 * @throws GraphError `device` where there is no memory left
 */
export async function joinedAdapter(
  onDevice: OnDevice,
  mapped: FrozenMatrices,
  { lora, dtype, fused }: { lora: LoraConfig; dtype: DType; fused: boolean },
) {
  const { config } = mapped;
  const graph = joinGraph(config, lora, dtype, fused);
  const layers = Array.from({ length: config.layers }, (_, layer) => inLayerOf(config, lora, layer).filter(isAdapted));
  const ups = layers.flat().map(({ up, transposed }) => (fused ? transposed : up));
  const { offsets, size } = layoutOf(ups);
  const { bytes } = DTYPES[dtype];
  const feeds: Record<string, DeviceTensor> = {};
  for (const { paths, down, stacked } of layers.flat()) {
    const matrices = mapped.matrices(paths);
    const [first] = matrices;
    const above = matrices.reduce((sum, { length }) => sum + length, 0);
    feeds[down.name] = await onDevice.files!.view(first!, above, dtype, down.shape);
    feeds[stacked.name] = await onDevice.files!.view(first!, 0, dtype, stacked.shape);
  }
  const buffer = onDevice.runtime.reserve(Math.ceil((bytes * size) / DTYPES.float32.bytes));
  const session = await onDevice.createSession(graph, { threads: 1 }).catch((cause) => {
    buffer.release();
    throw cause;
  });
  for (const { name, shape } of ups) feeds[name] = buffer.viewOfBytes(bytes * offsets.get(name)!, dtype, shape);
  return {
    /** Returns the joined matrices by the names of the graph's inputs. */
    feeds,
    /** Joins an adapter's newest numbers, float32, by the names of `adapterParameters`: one layer at a time, in the memory of one. */
    async write(weights: ReadonlyMap<string, DeviceTensor>): Promise<void> {
      const { inputNames, outputNames } = session;
      for (let layer = 0; layer < config.layers; layer++) {
        const given = inputNames.map((name) => [name, weights.get(inLayer(name, layer))]);
        const wanted = outputNames.map((name) => [name, feeds[inLayer(name, layer)]]);
        await session.run(Object.fromEntries(given), Object.fromEntries(wanted));
      }
    },
    async release(): Promise<void> {
      buffer.release();
      await session.release();
    },
  };
}
