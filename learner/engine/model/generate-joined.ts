/**
 * Linear layers with one input as one product, for a GPU: the frozen matrices lie there one after the other (MappedWeights.joined), and
 * the adapter beside them is two matrices. The first matrix stacks the adapters' A; the second has their B as diagonal blocks, so
 * that each layer reads its own part of the first product: the sum is exactly the sum of the separate adapters.
 */
import { affine } from "../graph/composites.ts";
import { Graph, type Value } from "../graph/graph.ts";
import { layoutOf } from "../graph/parameters.ts";
import { cast, concat, pad } from "../graph/primitives.ts";
import { matmul } from "../graph/products.ts";
import { type DeviceTensor, DTYPES, type DType, elementCount, tensor } from "../graph/tensor.ts";
import type { OnDevice } from "../runtime/runtime.ts";
import type { ModelConfig } from "./config.ts";
import { adapterNames, adapterParameters, adapterScale, type LoraConfig } from "./lora.ts";
import { castFirst, JOINED_PROJECTIONS, type MappedWeights } from "./mapped.ts";
import { parameters } from "./weights.ts";

/** Returns a parameter's name in another layer. */
const inLayer = (name: string, layer: number) => name.replace(/model\.layers\.\d+\./, `model.layers.${layer}.`);

/** Joined layers, and the adapter's matrices beside them: [adapted layers x rank, in] and [sum of out, adapted layers x rank]. */
function joinedLayers(config: ModelConfig, lora: LoraConfig, paths: readonly string[]) {
  const shapes = new Map(parameters({ ...config, layers: 1 }).map(({ name, shape }) => [name, shape]));
  const weights = paths.map((path) => shapes.get(inLayer(`${path}.weight`, 0))!);
  const adapted = paths.filter((path) => lora.targets.some((target) => path.endsWith(target)));
  const [columns, outs] = [adapted.length * lora.rank, weights.map(([out]) => out!)];
  const { a, b } = adapterNames(`joined ${paths[0]}`);
  return {
    ...{ paths, outs, adapted },
    down: { name: a, shape: [columns, weights[0]![1]!] },
    up: { name: b, shape: [outs.reduce((sum, out) => sum + out), columns] },
  };
}

/** The groups of joined layers in the decoder's first layer. */
const inFirstLayer = (config: ModelConfig, lora: LoraConfig) =>
  JOINED_PROJECTIONS.map((projections) => {
    const paths = projections.map((projection) => `model.layers.0.${projection}`);
    return joinedLayers(config, lora, paths);
  }).filter(({ adapted }) => adapted.length > 0);

/** Numbers of the joined matrices of a whole adapter. */
export const joinedNumbers = (config: ModelConfig, lora: LoraConfig): number =>
  inFirstLayer(config, lora)
    .flatMap(({ down, up }) => [down, up])
    .reduce((sum, { shape }) => sum + config.layers * elementCount(shape), 0);

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

/** Makes joined matrices from the adapter's float32 matrices of the first layer. */
function joinGraph(config: ModelConfig, lora: LoraConfig, dtype: DType): Graph {
  const graph = new Graph("join_adapter");
  const given = adapterParameters({ ...config, layers: 1 }, lora);
  const inputs = new Map(given.map(({ name, shape }) => [name, graph.input(name, "float32", shape)]));
  const below = (parts: Value[]) => cast(parts.length > 1 ? concat(parts, 0) : parts[0]!, dtype);
  for (const { paths, outs, adapted, down, up } of inFirstLayer(config, lora)) {
    const ups = paths.map((path, i) => {
      const [place, shape] = [adapted.indexOf(path), [outs[i]!, up.shape[1]!]];
      if (place < 0) return graph.initializer(path, tensor(new Float32Array(elementCount(shape)), shape));
      const after = adapted.length - 1 - place;
      return pad(inputs.get(adapterNames(path).b)!, 1, place * lora.rank, after * lora.rank);
    });
    graph.output(down.name, below(adapted.map((path) => inputs.get(adapterNames(path).a)!)));
    graph.output(up.name, below(ups));
  }
  return graph;
}

export type JoinedAdapter = Awaited<ReturnType<typeof joinedAdapter>>;

/**
 * Joined matrices on a device. They stay where they are when the adapter changes.
 * @throws GraphError `device` where there is no memory left
 */
export async function joinedAdapter(onDevice: OnDevice, config: ModelConfig, lora: LoraConfig, dtype: DType) {
  const graph = joinGraph(config, lora, dtype);
  const shapes = Array.from({ length: config.layers }, (_, layer) =>
    graph.outputs.map(({ name, value }) => ({ name: inLayer(name, layer), shape: value.shape as number[] })),
  ).flat();
  const { offsets, size } = layoutOf(shapes);
  const { bytes } = DTYPES[dtype];
  const buffer = onDevice.runtime.reserve(Math.ceil((bytes * size) / DTYPES.float32.bytes));
  const session = await onDevice.createSession(graph, { threads: 1 }).catch((cause) => {
    buffer.release();
    throw cause;
  });
  const feeds: Record<string, DeviceTensor> = {};
  for (const { name, shape } of shapes) feeds[name] = buffer.viewOfBytes(bytes * offsets.get(name)!, dtype, shape);
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
