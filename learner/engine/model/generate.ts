/**
 * Samples responses with the weights of a model. Rows of all calls share the slots of one KV cache (continuous batching). Between two tokens
 * other work of this thread runs, such as a new call; while a token is computed the thread is blocked: use it in a worker.
 */
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Compute } from "../graph/graph.ts";
import { type DeviceTensor, DTYPES, elementCount, type Tensor, tensor } from "../graph/tensor.ts";
import { type DeviceBuffer, HostBuffer } from "../runtime/buffer.ts";
import { createSession, type OnDevice, usedDevice, usedRuntime } from "../runtime/runtime.ts";
import type { Session } from "../runtime/session.ts";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { cachedHeadSize, generationGraph, type Sampling } from "./generate-graph.ts";
import { JoinedAdapter } from "./generate-joined.ts";
import { type CachePart, copyGraph, type Feeds, LEAST_SLOTS, type Row, Slots, tokenNumbers } from "./generate-slots.ts";
import { CAST_NUMBERS, fedWeights, GPU_CAST_NUMBERS, mappedWeights } from "./generate-weights.ts";
import { HALF_PREFIX, isMultiplied } from "./halved.ts";
import { SAFETENSORS_DTYPES, toStored } from "./halves.ts";
import { adapterParameters, type LoraConfig } from "./lora.ts";
import type { MappedWeights } from "./mapped.ts";
import { uniforms } from "./random.ts";
import { rotaryTable } from "./rotary.ts";
import { parameters } from "./weights.ts";

export interface GenerateOptions {
  /** one per prompt: the same seed, prompt and weights give the same response */
  readonly seeds: readonly number[];
  /** 0: the most probable token, with log-probs at temperature 1 */
  readonly temperature: number;
  /** sample from the smallest set of tokens that has this probability; 1: from all, at no cost */
  readonly topP: number;
  readonly maxNewTokens: number;
  /** a response ends with the first of these, and includes it */
  readonly eosIds: readonly number[];
  /** the listener is told of tokens every `STREAM_MILLISECONDS`, not once at the end of a response */
  readonly streams?: boolean;
  /** ends the call's rows at once: its promise rejects with the signal's reason */
  readonly signal?: AbortSignal;
}

export interface Response {
  readonly response: Int32Array;
  /** float32 [response length], under softmax(logits / temperature) over the whole vocabulary, also when topP < 1 (as verl does) */
  readonly logProbs: Float32Array;
  /** whether it ended with an EOS token */
  readonly finished: boolean;
}

/** The tokens of a response since the listener was last told of it: all of them, where nothing is streamed. */
export interface ResponsePart extends Response {
  readonly ended: boolean;
}

/** @param index of the response's prompt */
export type Listener = (index: number, part: ResponsePart) => void;

/** By name: in this process's memory, or where the generator's sessions run. They may change between calls. */
export type Numbers = ReadonlyMap<string, Float32Array | DeviceTensor>;

/** All weights, by transformers' names; or a folder's files as they are, and an adapter beside them. */
export type GeneratorWeights =
  | Numbers
  | { readonly base: MappedWeights; readonly adapter?: { readonly lora: LoraConfig; readonly weights: Numbers } };

const isFed = (weights: GeneratorWeights): weights is Numbers => weights instanceof Map;

export interface GeneratorOptions {
  readonly threads: number;
  /** default: the device that `useDevice` named */
  readonly onDevice?: OnDevice | undefined;
  /** rows that are generated side by side; further ones wait. It changes no response. Default DEFAULT_SLOTS */
  readonly slots?: number | undefined;
  /** tokens of a prompt and its response that a slot has room for; longer rows get fewer slots in the same memory. Default: what rows need */
  readonly positions?: number | undefined;
}

export const DEFAULT_SLOTS = 64;
/** How often a listener is told of a response that is streamed. */
export const STREAM_MILLISECONDS = 20;

interface Call {
  readonly options: GenerateOptions;
  readonly listener: Listener;
  readonly responses: Response[];
  left: number;
  readonly resolve: (responses: Response[]) => void;
  readonly reject: (cause: unknown) => void;
}

interface Pending extends Row {
  readonly call: Call;
  readonly index: number;
  /** tokens that the listener knows, and when it was told */
  told: number;
  toldAt: number;
}

/**
 * Samples responses with a model whose weights the caller owns. Calls that overlap must have the same weights.
 *
 * A row's response depends on its prompt, its seed, its options and the weights alone: on a CPU bit by bit, whatever other rows there are,
 * their order and the number of slots. On a GPU, where products are summed in an order that depends on their size, log-probs move by rounding.
 */
export class Generator {
  readonly #config: ModelConfig;
  readonly #o: GeneratorOptions;
  readonly #onDevice: OnDevice | undefined;
  readonly #onGpu: boolean;
  readonly #sessions = new Map<string, Promise<Session>>();
  readonly #calls = new Set<Call>();
  #waiting: Pending[] = [];
  #isRunning = false;
  #slots: Slots<Pending> | undefined;
  /** slots of earlier runs, which a GPU has captured graphs for, by what they were made of */
  readonly #made = new Map<string, Slots<Pending>>();
  #cache: { parts: CachePart[]; numbers: number } = { parts: [], numbers: 0 };
  #positions: { feeds: Feeds; count: number } = { feeds: {}, count: 0 };
  /** copies of the caller's numbers on the device, for one run */
  #placed: DeviceBuffer[] = [];

  #joined: JoinedAdapter | undefined;

  constructor(config: ModelConfig, options: GeneratorOptions) {
    this.#config = config;
    this.#o = options;
    const onGpu = usedDevice().kind === "cuda";
    this.#onDevice = options.onDevice ?? (onGpu ? { runtime: usedRuntime(), createSession } : undefined);
    this.#onGpu = this.#onDevice?.runtime.device.kind === "cuda";
  }

  /** @throws ModelError `generation` for a request that cannot be served or weights that are not finite; the signal's reason */
  async generate(
    weights: GeneratorWeights,
    prompts: readonly Int32Array[],
    options: GenerateOptions,
    listener: Listener = () => {},
  ): Promise<Response[]> {
    const { signal } = options;
    this.#check(prompts, options);
    signal?.throwIfAborted();
    if (prompts.length === 0) return [];
    const { promise, resolve, reject } = Promise.withResolvers<Response[]>();
    const call: Call = { options, listener, responses: [], left: prompts.length, resolve, reject };
    this.#calls.add(call);
    this.#waiting.push(...rowsOf(prompts, call));
    const abort = () => {
      this.#waiting = this.#waiting.filter((row) => row.call !== call);
      this.#slots?.drop((row) => row.call === call);
      this.#calls.delete(call);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
    if (!this.#isRunning) void this.#run(weights);
    return promise.finally(() => signal?.removeEventListener("abort", abort));
  }

  async release(): Promise<void> {
    this.#forgetSlots();
    this.#releaseCache();
    await this.#joined?.release();
    for (const session of await Promise.all(this.#sessions.values())) await session.release();
    this.#sessions.clear();
  }

  /** Generates until no row is left. A call is answered after its last token; the last call when everything here is done. */
  async #run(weights: GeneratorWeights): Promise<void> {
    this.#isRunning = true;
    let ended: Call[] = [];
    try {
      while (this.#waiting.length > 0) {
        const slots = await this.#openSlots(weights);
        for (await slots.admit(this.#waiting); !slots.empty; await slots.admit(this.#waiting)) {
          ended = this.#endedCalls(slots, await slots.step(), weights);
          if (this.#calls.size === 0) break;
          for (const call of ended.splice(0)) call.resolve(call.responses);
          await nextTurn();
        }
        this.#closeSlots();
      }
    } catch (cause) {
      this.#slots?.drop(() => true);
      this.#closeSlots();
      this.#waiting = [];
      for (const call of this.#calls) call.reject(cause);
      this.#calls.clear();
    } finally {
      this.#isRunning = false;
    }
    for (const call of ended) call.resolve(call.responses);
  }

  /** Tells of the rows' newest tokens, and frees the slots of those that have ended. Returns the calls whose last row has. */
  #endedCalls(slots: Slots<Pending>, active: readonly number[], weights: GeneratorWeights): Call[] {
    const calls: Call[] = [];
    const now = performance.now();
    for (const slot of active) {
      const row = slots.row(slot);
      const { call, index, tokens, logProbs, told } = row;
      if (Number.isNaN(logProbs.at(-1))) throw notFinite(weights);
      const finished = call.options.eosIds.includes(tokens.at(-1)!);
      const ended = finished || tokens.length === row.maxNewTokens;
      if (!ended && !(call.options.streams && now >= row.toldAt + STREAM_MILLISECONDS)) continue;
      const since = (from: number) => ({
        ...{ response: Int32Array.from(tokens.slice(from)), logProbs: Float32Array.from(logProbs.slice(from)) },
        finished,
      });
      if (ended) {
        slots.free(slot);
        call.responses[index] = since(0);
        call.left--;
      }
      const part = ended && told === 0 ? call.responses[index]! : since(told);
      call.listener(index, { ...part, ended });
      [row.told, row.toldAt] = [tokens.length, now];
      if (call.left === 0) calls.push(call);
    }
    for (const call of calls) this.#calls.delete(call); // here: an error above must reject these calls, too
    return calls;
  }

  /** Slots with room for what waits, in one cache that all of them share. */
  async #openSlots(weights: GeneratorWeights): Promise<Slots<Pending>> {
    const needed = this.#waiting.reduce((most, row) => Math.max(most, row.prompt.length + row.maxNewTokens), 0);
    const { slots: asked = DEFAULT_SLOTS, positions: given = needed } = this.#o;
    const positions = Math.max(given, needed);
    const slots = Math.max(LEAST_SLOTS, Math.floor((asked * given) / positions));
    const numbers = slots * positions * tokenNumbers(this.#config);
    if (numbers > this.#cache.numbers) {
      this.#forgetSlots();
      this.#releaseCache();
      const words = Math.ceil((numbers * DTYPES[this.#cacheType].bytes) / DTYPES.float32.bytes);
      for (let part = 0; part < 2 * this.#config.layers; part++)
        this.#cache.parts.push((await this.#onDevice?.runtime.allocate(words)) ?? new HostBuffer(words));
      this.#cache.numbers = numbers;
    }
    const feeds = { ...(await this.#positionFeeds(positions)), ...(await this.#weightFeeds(weights)) };
    const addresses = Object.values(feeds).map((feed) => ("address" in feed ? feed.address : 0));
    const key = [slots, positions, this.#nameOf(weights), ...addresses].join();
    const found = this.#made.get(key);
    found?.forget();
    this.#slots =
      found ??
      new Slots<Pending>({
        ...{ config: this.#config, slots, positions, feeds },
        ...{ cache: this.#cache.parts, cacheType: this.#cacheType, onGpu: this.#onGpu },
        session: (kind) => this.#session(kind, weights),
      });
    this.#made.set(key, this.#slots);
    return this.#slots;
  }

  /** On a GPU slots are kept, unless what they read goes away with this run. */
  #closeSlots(): void {
    this.#slots = undefined;
    if (this.#onGpu && this.#placed.length === 0) return;
    this.#forgetSlots();
    for (const buffer of this.#placed.splice(0)) buffer.release();
    if (!this.#onGpu) this.#releaseCache();
  }

  #forgetSlots(): void {
    for (const slots of this.#made.values()) slots.release();
    this.#made.clear();
  }

  #releaseCache(): void {
    for (const part of this.#cache.parts) part.release();
    this.#cache = { parts: [], numbers: 0 };
  }

  #check(prompts: readonly Int32Array[], { seeds, temperature, topP, maxNewTokens }: GenerateOptions): void {
    const { maxPositions, vocabSize } = this.#config;
    const refuse = (problem: string): never => {
      throw new ModelError("generation", `cannot generate: ${problem}`);
    };
    if (seeds.length !== prompts.length) refuse(`${seeds.length} seeds for ${prompts.length} prompts; give one each`);
    if (!(temperature >= 0 && Number.isFinite(temperature)))
      refuse(`temperature is ${temperature}; expected 0 or more`);
    if (!(topP > 0 && topP <= 1)) refuse(`topP is ${topP}; expected a number in (0, 1]`);
    if (!Number.isInteger(maxNewTokens) || maxNewTokens < 1)
      refuse(`maxNewTokens is ${maxNewTokens}; expected 1 or more`);
    for (const [index, prompt] of prompts.entries()) {
      if (prompt.length === 0) refuse(`prompt ${index} is empty; begin it with some token`);
      const total = prompt.length + maxNewTokens;
      if (total > maxPositions)
        refuse(`prompt ${index} and maxNewTokens are ${total} tokens; the model has ${maxPositions} positions`);
      const outside = prompt.find((token) => token < 0 || token >= vocabSize);
      if (outside !== undefined) refuse(`prompt ${index} has token ${outside}; the vocabulary is ${vocabSize}`);
    }
  }

  get #cacheType(): Compute {
    return this.#onGpu ? this.#onDevice!.runtime.half : "float32";
  }

  /** On a GPU half precision, but of files that hold float32, or float16 beside bfloat16. */
  #compute(weights: GeneratorWeights): Compute {
    const half = this.#cacheType;
    const narrow =
      isFed(weights) || weights.base.tensors.every(({ dtype }) => ["BF16", SAFETENSORS_DTYPES[half]].includes(dtype));
    return narrow ? half : "float32";
  }

  /** Whether linear layers with one input are one product. */
  #joins(weights: GeneratorWeights): boolean {
    if (!this.#onGpu || !this.#onDevice?.joins || isFed(weights)) return false;
    const { tensors } = weights.base;
    return tensors.every(({ dtype }) => dtype === tensors[0]!.dtype);
  }

  /** What a session is made for. */
  #nameOf(weights: GeneratorWeights): string {
    return isFed(weights) ? "" : JSON.stringify([weights.base.folder, weights.adapter?.lora]);
  }

  #session(kind: "prefill" | "copy" | Sampling, weights: GeneratorWeights): Promise<Session> {
    const key = kind === "copy" ? kind : kind + this.#nameOf(weights);
    const session = this.#sessions.get(key) ?? this.#newSession(kind, weights);
    this.#sessions.set(key, session);
    return session;
  }

  async #newSession(kind: "prefill" | "copy" | Sampling, weights: GeneratorWeights): Promise<Session> {
    const [config, cache] = [this.#config, this.#cacheType];
    const frozen = isFed(weights) ? undefined : weights;
    const how = { castAtOnce: this.#onGpu ? GPU_CAST_NUMBERS : CAST_NUMBERS, joins: this.#joins(weights) };
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
    return create(graph, { threads: this.#o.threads, captures, ...frozen?.base.sessionOptions });
  }

  /** By the names of the graph's inputs. */
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

  /** Cosines and sines of at least so many positions, with zeros where heads have them. */
  async #positionFeeds(positions: number): Promise<Feeds> {
    if (this.#positions.count >= positions) return this.#positions.feeds;
    const table = rotaryTable(this.#config, positions);
    const [half, wide] = [this.#config.headSize / 2, cachedHeadSize(this.#config) / 2];
    const widened = async (numbers: Float32Array) => {
      const all = new Float32Array(positions * wide);
      for (let at = 0; at < positions; at++) all.set(numbers.subarray(at * half, (at + 1) * half), at * wide);
      return this.#put(all, [positions, wide], this.#cacheType);
    };
    const feeds = { cosines: await widened(table.cosines), sines: await widened(table.sines) };
    if (this.#onGpu) this.#placed.splice(-2); // they stay for as long as the device is used
    if (this.#onGpu || !this.#onDevice) this.#positions = { feeds, count: positions };
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

/** Rows with equal prompts follow each other, in the order in which each prompt first comes. */
function rowsOf(prompts: readonly Int32Array[], call: Call): Pending[] {
  const { seeds, temperature, topP, maxNewTokens } = call.options;
  const rows = prompts.map(
    (prompt, index): Pending => ({
      ...{ call, index, prompt, key: createHash("sha256").update(prompt).digest("base64"), told: 0, toldAt: 0 },
      ...{ temperature, topP, maxNewTokens, tokens: [], logProbs: [], uniform: uniforms(seeds[index]!, "tokens") },
    }),
  );
  return [...Map.groupBy(rows, ({ key }) => key).values()].flat();
}

function notFinite(weights: GeneratorWeights): ModelError {
  if (!isFed(weights)) return weights.base.notFinite();
  return new ModelError("generation", "the model's logits are not finite; its weights have diverged");
}
