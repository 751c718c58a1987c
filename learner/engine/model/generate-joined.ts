/**
 * Linear layers with one input as one product, for a GPU: the frozen matrices lie there one after the other (MappedWeights.joined), and
 * the adapter beside them is two matrices. The first has their A's below each other; the second their B's as blocks of a diagonal, so
 * that each layer reads its own part of the first product: what is added is exactly what each adapter adds by itself.
 */
import { affine } from "../graph/composites.ts";
import { Graph, type Value } from "../graph/graph.ts";
import { cast, concat, matmul, pad } from "../graph/primitives.ts";
import { type DeviceTensor, DTYPES, type DType, elementCount, tensor } from "../graph/tensor.ts";
import type { DeviceBuffer } from "../runtime/buffer.ts";
import type { OnDevice } from "../runtime/runtime.ts";
import type { Session } from "../runtime/session.ts";
import type { ModelConfig } from "./config.ts";
import { adaptedLayers, adapterNames, adapterParameters, adapterScale, type LoraConfig } from "./lora.ts";
import { castFirst, JOINED_PROJECTIONS, type MappedWeights } from "./mapped.ts";
import { parameters } from "./weights.ts";

interface Group {
  readonly first: string;
  readonly names: { a: string; b: string };
  /** numbers of the layers' outputs, each with its place among the adapted ones where it has an adapter */
  readonly layers: readonly { path: string; out: number; place: number | undefined }[];
  readonly adapted: number;
  /** numbers of the input, and of all outputs */
  readonly size: number;
  readonly out: number;
}

/** The adapter's matrices beside joined layers, [count of them x rank, in] and [sum of out, count x rank]. */
const namesOf = (first: string) => adapterNames(`joined ${first}`);

function groups(config: ModelConfig, lora: LoraConfig): Group[] {
  const adapted = new Set(adaptedLayers(config, lora).map(({ path }) => path));
  const shapes = new Map(parameters(config).map(({ name, shape }) => [name, shape]));
  return Array.from({ length: config.layers }, (_, layer) => layer).flatMap((layer) =>
    JOINED_PROJECTIONS.flatMap((projections): Group[] => {
      const paths = projections.map((projection) => `model.layers.${layer}.${projection}`);
      let count = 0;
      const layers = paths.map((path) => ({
        ...{ path, out: shapes.get(`${path}.weight`)![0]! },
        place: adapted.has(path) ? count++ : undefined,
      }));
      const [first, size] = [paths[0]!, shapes.get(`${paths[0]}.weight`)![1]!];
      const out = layers.reduce((sum, layer) => sum + layer.out, 0);
      return count > 0 ? [{ first, names: namesOf(first), layers, adapted: count, size, out }] : [];
    }),
  );
}

/** Numbers of the joined matrices of a whole adapter. */
export const joinedNumbers = (config: ModelConfig, lora: LoraConfig): number =>
  groups(config, lora).reduce((sum, { adapted, size, out }) => sum + adapted * lora.rank * (size + out), 0);

/** Adds the linear layers `paths` of x [rows, in] to a graph, without biases: [rows, sum of their outputs]. The adapter's matrices are inputs. */
export function joinedLinear(graph: Graph, mapped: MappedWeights, lora?: LoraConfig) {
  const { compute } = graph.model;
  const byFirst = new Map(lora ? groups(mapped.config, lora).map((group) => [group.first, group]) : []);
  const transposed = { transB: true };
  return (x: Value, paths: readonly string[]): Value => {
    const [input, weight] = [cast(x, compute), castFirst(mapped.joinedRows(graph, paths), compute)];
    const group = byFirst.get(paths[0]!);
    if (!group) return matmul(input, weight, transposed);
    const columns = group.adapted * lora!.rank;
    const down = graph.input(group.names.a, compute, [columns, group.size]);
    const up = graph.input(group.names.b, compute, [group.out, columns]);
    const added = matmul(matmul(input, down, transposed), up, { ...transposed, alpha: adapterScale(lora!) });
    return affine(input, weight, added); // the product added to the adapter's: once it is rounded, small changes would be lost
  };
}

/** The adapter's matrices of the first layer, float32, to joined ones. */
function joinGraph(config: ModelConfig, lora: LoraConfig, dtype: DType): Graph {
  const graph = new Graph("join_adapter");
  const { rank } = lora;
  const first = { ...config, layers: 1 };
  const inputs = new Map(
    adapterParameters(first, lora).map(({ name, shape }) => [name, graph.input(name, "float32", shape)]),
  );
  for (const { names, layers, adapted } of groups(first, lora)) {
    const downs = layers.flatMap(({ path, place }) => (place === undefined ? [] : [inputs.get(adapterNames(path).a)!]));
    const ups = layers.map(({ path, out, place }) => {
      const shape = [out, adapted * rank];
      if (place === undefined) return graph.initializer(path, tensor(new Float32Array(elementCount(shape)), shape));
      return pad(inputs.get(adapterNames(path).b)!, 1, place * rank, (adapted - 1 - place) * rank);
    });
    for (const [name, parts] of [
      [names.a, downs],
      [names.b, ups],
    ] as const)
      graph.output(name, cast(parts.length > 1 ? concat(parts, 0) : parts[0]!, dtype));
  }
  return graph;
}

/** The name in the first layer, and the same in another. */
const inLayer = (name: string, layer: number) => name.replace("model.layers.0.", `model.layers.${layer}.`);

/** Joined matrices on a device. They stay where they are when the adapter changes. */
export class JoinedAdapter {
  readonly #session: Session;
  readonly #layers: number;
  readonly #buffer: DeviceBuffer;
  readonly feeds: Readonly<Record<string, DeviceTensor>>;

  private constructor(session: Session, layers: number, buffer: DeviceBuffer, feeds: Record<string, DeviceTensor>) {
    this.#session = session;
    this.#layers = layers;
    this.#buffer = buffer;
    this.feeds = feeds;
  }

  /** @throws GraphError `device` where there is no memory left */
  static async create(onDevice: OnDevice, config: ModelConfig, lora: LoraConfig, dtype: DType): Promise<JoinedAdapter> {
    const graph = joinGraph(config, lora, dtype);
    const session = await onDevice.createSession(graph, { threads: 1 });
    const places: { name: string; shape: number[]; place: number }[] = [];
    let end = 0;
    for (let layer = 0; layer < config.layers; layer++)
      for (const { name, value } of graph.outputs) {
        const shape = value.shape as number[];
        places.push({ name: inLayer(name, layer), shape, place: end });
        end += Math.ceil((DTYPES[dtype].bytes * elementCount(shape)) / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
      }
    const buffer = onDevice.runtime.reserve(end / DTYPES.float32.bytes);
    const feeds = places.map(({ name, shape, place }) => [name, buffer.viewOfBytes(place, dtype, shape)]);
    return new JoinedAdapter(session, config.layers, buffer, Object.fromEntries(feeds));
  }

  /** Joins an adapter's newest numbers, float32, by the names of `adapterParameters`. */
  async write(weights: ReadonlyMap<string, DeviceTensor>): Promise<void> {
    const { inputNames, outputNames } = this.#session;
    for (let layer = 0; layer < this.#layers; layer++) {
      const given = inputNames.map((name) => [name, weights.get(inLayer(name, layer))]);
      const wanted = outputNames.map((name) => [name, this.feeds[inLayer(name, layer)]]);
      await this.#session.run(Object.fromEntries(given), Object.fromEntries(wanted));
    }
  }

  async release(): Promise<void> {
    this.#buffer.release();
    await this.#session.release();
  }
}

const ALIGNMENT_BYTES = 256;
