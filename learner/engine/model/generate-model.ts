/** The parts of a model that generation needs: sessions of its graphs, their weights and positions, and the memory of the KV cache. */
import type { Compute } from "../graph/graph.ts";
import { type DeviceTensor, DTYPES, elementCount, type Tensor, tensor } from "../graph/tensor.ts";
import { type DeviceBuffer, HostBuffer } from "../runtime/buffer.ts";
import { createSession, type OnDevice, usedDevice, usedRuntime } from "../runtime/runtime.ts";
import type { Session } from "../runtime/session.ts";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { cachedHeadSize, copyGraph, generationGraph, type Sampling } from "./generate-graph.ts";
import { type JoinedAdapter, joinedAdapter } from "./generate-joined.ts";
import { servesLayers } from "./generate-layers.ts";
import { CAST_NUMBERS, filesOf, type GeneratorWeights, GPU_CAST_NUMBERS, inputsOf } from "./generate-weights.ts";
import { HALF_PREFIX, isMultiplied } from "./halved.ts";
import { SAFETENSORS_DTYPES, toStored } from "./halves.ts";
import type { MappedWeights } from "./mapped.ts";
import { rotaryTable } from "./rotary.ts";
import { wideMatrices } from "./widened.ts";

export type Cache = Pick<DeviceBuffer | HostBuffer, "viewOfBytes" | "release">;
export type Feeds = Record<string, Tensor | DeviceTensor>;

/** Kinds of sessions: prefill of a prompt; copy of a prompt's cache to another slot; decode of a token, one for each method of sampling. */
type SessionKind = "prefill" | "copy" | Sampling;

export interface GenerationOptions {
  readonly threads: number;
  /** default: the device that `useDevice` named */
  readonly onDevice?: OnDevice | undefined;
  /** on a CPU half-precision matrices are cast to float32 once, and not for every token: the same bits, and 4 bytes a number. Default false */
  readonly widens?: boolean | undefined;
}

/** Makes each part at its first use. */
export class GenerationModel {
  readonly config: ModelConfig;
  readonly onGpu: boolean;
  readonly #threads: number;
  readonly #onDevice: OnDevice | undefined;
  readonly #sessions = new Map<string, Promise<Session>>();
  /** this process's numbers on the device, by the names of inputs. Their addresses stay, because captured graphs read them. */
  readonly #copies = new Map<string, DeviceBuffer>();
  #positions: { feeds: Feeds; count: number } = { feeds: {}, count: 0 };
  #joined: JoinedAdapter | undefined;
  readonly #widens: boolean;
  /** copies of half-precision matrices, by folder */
  readonly #wide = new Map<string, ReturnType<typeof wideMatrices>>();

  /** @param onDevice default: the device that `useDevice` named */
  constructor(config: ModelConfig, { threads, onDevice, widens = false }: GenerationOptions) {
    this.config = config;
    this.#threads = threads;
    this.#onDevice = onDevice ?? (usedDevice().kind === "cuda" ? { runtime: usedRuntime(), createSession } : undefined);
    this.onGpu = this.#onDevice?.runtime.device.kind === "cuda";
    this.#widens = widens && !this.onGpu;
  }

  /** Returns the weights with float32 copies of half-precision matrices, if this model widens. The first call for a folder makes the copies. */
  widened(weights: GeneratorWeights): GeneratorWeights {
    if (!this.#widens || !("base" in weights)) return weights;
    const { base } = weights;
    if (!this.#wide.has(base.folder)) this.#wide.set(base.folder, wideMatrices(base));
    return { ...weights, wide: this.#wide.get(base.folder) };
  }

  /** Number type of the KV cache. The first call on a GPU allocates some of its memory. */
  get cacheType(): Compute {
    return this.onGpu ? this.#onDevice!.runtime.half : "float32";
  }

  session(kind: SessionKind, weights: GeneratorWeights): Promise<Session> {
    const key = kind === "copy" ? kind : kind + graphKey(weights);
    const session = this.#sessions.get(key) ?? this.#newSession(kind, weights);
    this.#sessions.set(key, session);
    session.catch(() => this.#sessions.delete(key)); // the next call may have memory again
    return session;
  }

  /** Weights and positions, by the names of the graphs' inputs. */
  async feeds(weights: GeneratorWeights, positions: number): Promise<Feeds> {
    return { ...(await this.#positionFeeds(positions)), ...(await this.#weightFeeds(weights)) };
  }

  /** Returns this many zeros of the cache's type. */
  async allocate(numbers: number): Promise<Cache> {
    const words = Math.ceil((numbers * DTYPES[this.cacheType].bytes) / DTYPES.float32.bytes);
    return (await this.#onDevice?.runtime.allocate(words)) ?? new HostBuffer(words);
  }

  /** The error for weights whose logits are not finite. */
  notFinite(weights: GeneratorWeights): ModelError {
    const diverged = "the model's logits are not finite; its weights have diverged";
    return filesOf(weights).base?.notFinite() ?? new ModelError("generation", diverged);
  }

  async release(): Promise<void> {
    await this.#joined?.release();
    const sessions = await Promise.allSettled(this.#sessions.values());
    for (const each of sessions) if (each.status === "fulfilled") await each.value.release();
    this.#sessions.clear();
    for (const copy of this.#copies.values()) copy.release();
    this.#copies.clear();
    this.#wide.clear();
  }

  /**
   * Returns the form of the weights in a graph. Products are in half precision on a GPU, unless the files hold float32, or float16 beside bfloat16. Layers
   * with one input are joined where the device can have the files' matrices one after the other.
   */
  #options({ base }: { base?: MappedWeights }) {
    const cache = this.cacheType;
    const dtypes = new Set(base?.tensors.map(({ dtype }) => dtype));
    const isHalf = [...dtypes].every((dtype) => dtype === "BF16" || dtype === SAFETENSORS_DTYPES[cache]);
    const isNarrow = isHalf && dtypes.size <= 1;
    const joins = this.onGpu && this.#onDevice!.files !== undefined && dtypes.size === 1;
    const castAtOnce = this.onGpu ? GPU_CAST_NUMBERS : CAST_NUMBERS;
    const compute: Compute = isNarrow ? cache : "float32";
    const { kernels } = compute === "bfloat16" && this.onGpu ? this.#onDevice!.runtime : {};
    const serves = kernels && servesLayers(kernels, this.config);
    return { cache, compute, joins, castAtOnce, kernels: serves ? kernels : undefined } as const;
  }

  async #newSession(kind: SessionKind, weights: GeneratorWeights): Promise<Session> {
    const files = filesOf(weights);
    const options = this.#options(files);
    const sampling = kind === "prefill" || kind === "copy" ? undefined : kind;
    const graph =
      kind === "copy"
        ? copyGraph(this.config, options.cache)
        : generationGraph(this.config, weights, { sampling, ...options });
    const captures = sampling !== undefined;
    const create = this.#onDevice?.createSession ?? createSession;
    return create(graph, { threads: this.#threads, captures, ...files.base?.sessionOptions });
  }

  /** The weights by the names of the graph's inputs. */
  async #weightFeeds(weights: GeneratorWeights): Promise<Feeds> {
    const files = filesOf(weights);
    const { compute, joins, kernels } = this.#options(files);
    if (files.adapter && joins) {
      const { lora, weights: numbers } = files.adapter;
      const form = { lora, dtype: compute, fused: kernels !== undefined };
      this.#joined ??= await joinedAdapter(this.#onDevice!, files.base!, form);
      await this.#joined.write(numbers as ReadonlyMap<string, DeviceTensor>);
      return this.#joined.feeds;
    }
    const feeds: Feeds = {};
    const { shapes, numbers } = inputsOf(this.config, weights);
    for (const { name, shape } of shapes) {
      const half = compute !== "float32" && isMultiplied(name);
      const input = half ? HALF_PREFIX + name : name;
      const given = numbers.get(input) ?? numbers.get(name);
      if (given === undefined) throw new ModelError("weights", `parameter ${name} is missing`);
      if (!("address" in given) && given.length !== elementCount(shape)) {
        const problem = `parameter ${name} has ${given.length} numbers; config.json asks for [${shape}]`;
        throw new ModelError("weights", problem);
      }
      feeds[input] = "address" in given ? given : await this.#put(input, given, shape, half ? compute : "float32");
    }
    return feeds;
  }

  /** Returns cosines and sines of at least this many positions. */
  async #positionFeeds(positions: number): Promise<Feeds> {
    if (this.#positions.count >= positions) return this.#positions.feeds;
    const shape = [positions, cachedHeadSize(this.config) / 2] as const;
    const { cosines, sines } = rotaryTable(this.config, ...shape);
    const put = (name: string, numbers: Float32Array) => this.#put(name, numbers, shape, this.cacheType);
    const feeds = { cosines: await put("cosines", cosines), sines: await put("sines", sines) };
    this.#positions = { feeds, count: positions };
    return feeds;
  }

  /** Returns numbers where the sessions read them: in this process, or in a copy on the device. */
  async #put(name: string, numbers: Float32Array, shape: readonly number[], dtype: Compute) {
    if (!this.#onDevice) return tensor(numbers, shape);
    const { runtime } = this.#onDevice;
    const key = `${name} ${shape}`;
    const copy = await runtime.place(toStored(SAFETENSORS_DTYPES[dtype], numbers), this.#copies.get(key));
    this.#copies.set(key, copy);
    return copy.viewOfBytes(0, dtype, shape);
  }
}

/** Returns a key that is equal for weights that can share a graph, because only their numbers differ. */
export function graphKey(weights: GeneratorWeights): string {
  const { base, adapter, wide } = filesOf(weights);
  return base ? JSON.stringify([base.folder, adapter?.lora, wide !== undefined]) : "";
}
