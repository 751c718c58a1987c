/** The parts of a model that generation needs: sessions of its graphs, their weights and positions, and the memory of the KV cache. */
import type { Compute } from "../graph/graph.ts";
import { type DeviceTensor, DTYPES, elementCount, type Tensor, tensor } from "../graph/tensor.ts";
import { type DeviceBuffer, HostBuffer } from "../runtime/buffer.ts";
import { createSession, type OnDevice, usedDevice, usedRuntime } from "../runtime/runtime.ts";
import type { Session } from "../runtime/session.ts";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { cachedHeadSize, generationGraph, type Sampling } from "./generate-graph.ts";
import { JoinedAdapter } from "./generate-joined.ts";
import { type CachePart, copyGraph, type Feeds } from "./generate-slots.ts";
import { CAST_NUMBERS, fedWeights, GPU_CAST_NUMBERS, mappedWeights } from "./generate-weights.ts";
import { HALF_PREFIX, isMultiplied } from "./halved.ts";
import { SAFETENSORS_DTYPES, toStored } from "./halves.ts";
import { adapterParameters, type LoraConfig } from "./lora.ts";
import type { MappedWeights } from "./mapped.ts";
import { rotaryTable } from "./rotary.ts";
import { parameters } from "./weights.ts";

/** Weights by name, in this process's memory or on the device of the generator's sessions. They may change between calls. */
export type Numbers = ReadonlyMap<string, Float32Array | DeviceTensor>;

/** All weights, by transformers' names; or a folder's files as they are, and an adapter beside them. */
export type GeneratorWeights =
  | Numbers
  | { readonly base: MappedWeights; readonly adapter?: { readonly lora: LoraConfig; readonly weights: Numbers } };

const isFed = (weights: GeneratorWeights): weights is Numbers => weights instanceof Map;

/** A token in a decode graph of each way to sample; a prompt in a prefill graph; a prompt's cache to another slot. */
type SessionKind = "prefill" | "copy" | Sampling;

interface Cache {
  readonly parts: readonly CachePart[];
  readonly numbers: number;
}
const NO_CACHE: Cache = { parts: [], numbers: 0 };

/** Makes each part when it is first needed. Between runs of the generator a GPU keeps everything, and a CPU keeps all but the KV cache. */
export class GenerationModel {
  readonly onGpu: boolean;
  readonly #config: ModelConfig;
  readonly #threads: number;
  readonly #onDevice: OnDevice | undefined;
  readonly #sessions = new Map<string, Promise<Session>>();
  #cache = NO_CACHE;
  #positions: { feeds: Feeds; count: number } = { feeds: {}, count: 0 };
  /** copies of the caller's numbers on the device, for one run */
  #placed: DeviceBuffer[] = [];
  #joined: JoinedAdapter | undefined;

  /** @param onDevice default: the device that `useDevice` named */
  constructor(config: ModelConfig, threads: number, onDevice: OnDevice | undefined) {
    this.#config = config;
    this.#threads = threads;
    this.#onDevice = onDevice ?? (usedDevice().kind === "cuda" ? { runtime: usedRuntime(), createSession } : undefined);
    this.onGpu = this.#onDevice?.runtime.device.kind === "cuda";
  }

  /** Number type of the KV cache. The first call on a GPU allocates some of its memory. */
  get cacheType(): Compute {
    return this.onGpu ? this.#onDevice!.runtime.half : "float32";
  }

  session(kind: SessionKind, weights: GeneratorWeights): Promise<Session> {
    const key = kind === "copy" ? kind : kind + graphKey(weights);
    const session = this.#sessions.get(key) ?? this.#newSession(kind, weights);
    this.#sessions.set(key, session);
    return session;
  }

  /** Weights and positions, by the names of the graphs' inputs. */
  async feeds(weights: GeneratorWeights, positions: number): Promise<Feeds> {
    return { ...(await this.#positionFeeds(positions)), ...(await this.#weightFeeds(weights)) };
  }

  /** The cache (keys, then values, of each layer) if it has room for so many numbers of each, else undefined. */
  cache(numbers: number): readonly CachePart[] | undefined {
    return numbers > this.#cache.numbers ? undefined : this.#cache.parts;
  }

  /** Allocates a cache with room for so many numbers of each layer's keys, and frees the last one. */
  async newCache(numbers: number): Promise<readonly CachePart[]> {
    this.#releaseCache();
    const words = Math.ceil((numbers * DTYPES[this.cacheType].bytes) / DTYPES.float32.bytes);
    const parts: CachePart[] = [];
    this.#cache = { parts, numbers: 0 }; // so much it has if there is no memory for all parts
    for (let part = 0; part < 2 * this.#config.layers; part++)
      parts.push((await this.#onDevice?.runtime.allocate(words)) ?? new HostBuffer(words));
    this.#cache = { parts, numbers };
    return parts;
  }

  /** Whether the inputs of this run's graphs stay where they are until the next run. */
  get keeps(): boolean {
    return this.onGpu && this.#placed.length === 0;
  }

  endRun(): void {
    for (const buffer of this.#placed.splice(0)) buffer.release();
    if (!this.onGpu) this.#releaseCache();
  }

  async release(): Promise<void> {
    this.#releaseCache();
    await this.#joined?.release();
    for (const session of await Promise.all(this.#sessions.values())) await session.release();
    this.#sessions.clear();
  }

  #releaseCache(): void {
    for (const part of this.#cache.parts) part.release();
    this.#cache = NO_CACHE;
  }

  /** The dtype of products: half precision on a GPU, unless the files hold float32, or float16 beside bfloat16. */
  #compute(weights: GeneratorWeights): Compute {
    const half = this.cacheType;
    const narrow =
      isFed(weights) || weights.base.tensors.every(({ dtype }) => ["BF16", SAFETENSORS_DTYPES[half]].includes(dtype));
    return narrow ? half : "float32";
  }

  /** Whether linear layers with one input are one product. */
  #joins(weights: GeneratorWeights): boolean {
    if (!this.onGpu || !this.#onDevice?.joins || isFed(weights)) return false;
    const { tensors } = weights.base;
    return tensors.every(({ dtype }) => dtype === tensors[0]!.dtype);
  }

  async #newSession(kind: SessionKind, weights: GeneratorWeights): Promise<Session> {
    const [config, cache] = [this.#config, this.cacheType];
    const frozen = isFed(weights) ? undefined : weights;
    const how = { castAtOnce: this.onGpu ? GPU_CAST_NUMBERS : CAST_NUMBERS, joins: this.#joins(weights) };
    const graph =
      kind === "copy"
        ? copyGraph(config, cache)
        : generationGraph(
            config,
            (of) => (frozen ? mappedWeights(of, frozen.base, frozen.adapter?.lora, how) : fedWeights(of, config)),
            { sampling: kind === "prefill" ? undefined : kind, cache, compute: this.#compute(weights) },
          );
    const create = this.#onDevice?.createSession ?? createSession;
    const captures = kind !== "prefill" && kind !== "copy";
    return create(graph, { threads: this.#threads, captures, ...frozen?.base.sessionOptions });
  }

  /** The weights by the names of the graph's inputs. */
  async #weightFeeds(weights: GeneratorWeights): Promise<Feeds> {
    const { adapter } = isFed(weights) ? {} : weights;
    const adapted = adapter ? adapterParameters(this.#config, adapter.lora) : [];
    const shapes = isFed(weights) ? parameters(this.#config) : adapted;
    const numbers = isFed(weights) ? weights : adapter?.weights;
    const compute = this.#compute(weights);
    if (adapter && this.#joins(weights)) {
      this.#joined ??= await JoinedAdapter.create(this.#onDevice!, this.#config, adapter.lora, compute);
      await this.#joined.write(adapter.weights as ReadonlyMap<string, DeviceTensor>);
      return this.#joined.feeds;
    }
    const feeds: Feeds = {};
    for (const { name, shape } of shapes) {
      const half = compute !== "float32" && isMultiplied(name);
      const input = half ? HALF_PREFIX + name : name;
      const given = numbers!.get(input) ?? numbers!.get(name);
      if (given === undefined) throw new ModelError("weights", `parameter ${name} is missing`);
      if (!("address" in given) && given.length !== elementCount(shape)) {
        const problem = `parameter ${name} has ${given.length} numbers; config.json asks for [${shape}]`;
        throw new ModelError("weights", problem);
      }
      feeds[input] = "address" in given ? given : await this.#put(given, shape, half ? compute : "float32");
    }
    return feeds;
  }

  /** Cosines and sines of at least so many positions. */
  async #positionFeeds(positions: number): Promise<Feeds> {
    if (this.#positions.count >= positions) return this.#positions.feeds;
    const width = cachedHeadSize(this.#config) / 2;
    const { cosines, sines } = rotaryTable(this.#config, positions, width);
    const feeds = {
      cosines: await this.#put(cosines, [positions, width], this.cacheType),
      sines: await this.#put(sines, [positions, width], this.cacheType),
    };
    if (this.onGpu) this.#placed.splice(-2); // they stay for as long as the device is used
    if (this.onGpu || !this.#onDevice) this.#positions = { feeds, count: positions };
    return feeds;
  }

  /** Numbers of this process where the sessions read them: here, or in a copy on the device. */
  async #put(numbers: Float32Array, shape: readonly number[], dtype: Compute): Promise<Tensor | DeviceTensor> {
    if (!this.#onDevice) return tensor(numbers, shape);
    const buffer = await this.#onDevice.runtime.place(toStored(SAFETENSORS_DTYPES[dtype], numbers));
    this.#placed.push(buffer);
    return buffer.viewOfBytes(0, dtype, shape);
  }
}

/** A key that is equal for weights that can share a graph, because only their numbers differ. */
export function graphKey(weights: GeneratorWeights): string {
  return isFed(weights) ? "" : JSON.stringify([weights.base.folder, weights.adapter?.lora]);
}

/** The error for weights whose logits are not finite. */
export function notFinite(weights: GeneratorWeights): ModelError {
  if (!isFed(weights)) return weights.base.notFinite();
  return new ModelError("generation", "the model's logits are not finite; its weights have diverged");
}
