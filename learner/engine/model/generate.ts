/** Samples responses with the weights of a model. Everything blocks this thread: use it in a worker. */
import { type DeviceTensor, DTYPES, elementCount, type Tensor, tensor } from "../graph/tensor.ts";
import type { DeviceBuffer } from "../runtime/buffer.ts";
import { createSession, type OnDevice, usedDevice, usedRuntime } from "../runtime/runtime.ts";
import type { Session } from "../runtime/session.ts";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { cachedHeadSize, generationGraph, type Sampling } from "./generate-graph.ts";
import { copyGraph, type Feeds, type Row, Slots } from "./generate-slots.ts";
import { CAST_NUMBERS, fedWeights, GPU_CAST_NUMBERS, mappedWeights } from "./generate-weights.ts";
import { HALF_PREFIX, isMultiplied } from "./halved.ts";
import { toStored } from "./halves.ts";
import { adapterParameters, type LoraConfig } from "./lora.ts";
import type { MappedWeights } from "./mapped.ts";
import { uniforms } from "./random.ts";
import { rotaryTable } from "./rotary.ts";
import { parameters } from "./weights.ts";

export interface GenerateOptions {
  /** one per row: the same seed, prompt and weights give the same response */
  readonly seeds: readonly number[];
  /** 0: the most probable token, with log-probs at temperature 1 */
  readonly temperature: number;
  /** sample from the smallest set of tokens that has this probability; 1: from all, at no cost */
  readonly topP: number;
  readonly maxNewTokens: number;
  /** responses that are generated side by side; left out: all. It changes no response */
  readonly slots?: number;
  /** a response ends with the first of these, and includes it */
  readonly eosIds: readonly number[];
}

export interface Response {
  readonly response: Int32Array;
  /** float32 [response length], under softmax(logits / temperature) over the whole vocabulary, also when topP < 1 (as verl does) */
  readonly logProbs: Float32Array;
  /** whether it ended with an EOS token */
  readonly finished: boolean;
}

/** By name: in this process's memory, or where the generator's sessions run. They may change from call to call. */
export type Numbers = ReadonlyMap<string, Float32Array | DeviceTensor>;

/** All weights, by transformers' names; or a folder's files as they are, and an adapter beside them. */
export type GeneratorWeights =
  | Numbers
  | { readonly base: MappedWeights; readonly adapter?: { readonly lora: LoraConfig; readonly weights: Numbers } };

type Frozen = Exclude<GeneratorWeights, Numbers>;
const isFed = (weights: GeneratorWeights): weights is Numbers => weights instanceof Map;

/**
 * Samples responses with a model whose weights the caller owns.
 *
 * A row's response depends on its prompt, its seed and the weights alone: on a CPU bit by bit, whatever other rows there are, their order
 * and the number of slots. On a GPU, where products are summed in an order that depends on their size, log-probs move by rounding.
 */
export class Generator {
  readonly #config: ModelConfig;
  readonly #threads: number;
  readonly #onDevice: OnDevice | undefined;
  readonly #sessions = new Map<string, Session>();

  /** @param onDevice left out: the device that `useDevice` named */
  constructor(config: ModelConfig, { threads, onDevice }: { threads: number; onDevice?: OnDevice | undefined }) {
    this.#config = config;
    this.#threads = threads;
    this.#onDevice = onDevice ?? (usedDevice().kind === "cuda" ? { runtime: usedRuntime(), createSession } : undefined);
  }

  /**
   * @param onResponse called as soon as a response has ended, with the index of its prompt
   * @throws ModelError `generation` for a request that cannot be served or weights that are not finite
   */
  async generate(
    weights: GeneratorWeights,
    prompts: readonly Int32Array[],
    options: GenerateOptions,
    onResponse: (index: number, response: Response) => void = () => {},
  ): Promise<Response[]> {
    this.#check(prompts, options);
    if (prompts.length === 0) return [];
    const responses = new Array<Response>(prompts.length);
    const place = new Placement(this.#onDevice);
    let slots: Slots | undefined;
    try {
      slots = await this.#slots(weights, prompts, options, place);
      const waiting = rowsOf(prompts, options.seeds);
      for (await slots.admit(waiting); !slots.empty; await slots.admit(waiting)) {
        for (const [slot, { index, tokens, logProbs }] of await slots.step()) {
          if (Number.isNaN(logProbs.at(-1))) throw notFinite(weights);
          const finished = options.eosIds.includes(tokens.at(-1)!);
          if (!finished && tokens.length < options.maxNewTokens) continue;
          slots.free(slot);
          responses[index] = { response: Int32Array.from(tokens), logProbs: Float32Array.from(logProbs), finished };
          onResponse(index, responses[index]);
        }
      }
      return responses;
    } finally {
      slots?.release();
      place.release();
    }
  }

  async release(): Promise<void> {
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(sessions.map((session) => session.release()));
  }

  #check(prompts: readonly Int32Array[], { seeds, temperature, topP, maxNewTokens, slots = 1 }: GenerateOptions): void {
    const refuse = (problem: string): never => {
      throw new ModelError("generation", `cannot generate: ${problem}`);
    };
    if (seeds.length !== prompts.length) refuse(`${seeds.length} seeds for ${prompts.length} prompts; give one each`);
    if (!(temperature >= 0 && Number.isFinite(temperature)))
      refuse(`temperature is ${temperature}; expected 0 or more`);
    if (!(topP > 0 && topP <= 1)) refuse(`topP is ${topP}; expected a number in (0, 1]`);
    if (!Number.isInteger(maxNewTokens) || maxNewTokens < 1)
      refuse(`maxNewTokens is ${maxNewTokens}; expected 1 or more`);
    if (!Number.isInteger(slots) || slots < 1) refuse(`slots is ${slots}; expected 1 or more`);
    for (const [index, prompt] of prompts.entries()) {
      if (prompt.length === 0) refuse(`prompt ${index} is empty; begin it with some token`);
      const total = prompt.length + maxNewTokens;
      if (total > this.#config.maxPositions) {
        refuse(
          `prompt ${index} and maxNewTokens are ${total} tokens; the model has ${this.#config.maxPositions} positions`,
        );
      }
      const outside = prompt.find((token) => token < 0 || token >= this.#config.vocabSize);
      if (outside !== undefined)
        refuse(`prompt ${index} has token ${outside}; the vocabulary is ${this.#config.vocabSize}`);
    }
  }

  async #slots(
    weights: GeneratorWeights,
    prompts: readonly Int32Array[],
    { temperature, topP, maxNewTokens, slots = prompts.length }: GenerateOptions,
    place: Placement,
  ): Promise<Slots> {
    const config = this.#config;
    const sampling = temperature === 0 ? "greedy" : topP < 1 ? "nucleus" : "all";
    const positions = prompts.reduce((most, { length }) => Math.max(most, length), 0) + maxNewTokens;
    const cache = this.#onGpu ? "bfloat16" : "float32";
    const feeds = {
      ...(await this.#weightFeeds(weights, place)),
      ...(await this.#positionFeeds(positions, place)),
    };
    const scalars = {
      inverseTemperature: tensor(Float32Array.of(temperature === 0 ? 1 : 1 / temperature), []),
      topP: tensor(Float32Array.of(topP), []),
    };
    return Slots.create({
      ...{ config, positions, cache, feeds, scalars, onDevice: this.#onDevice, slots: Math.min(slots, prompts.length) },
      decode: await this.#session(sampling, weights),
      prefill: await this.#session("prefill", weights),
      copy: await this.#session("copy", weights),
    });
  }

  get #onGpu(): boolean {
    return this.#onDevice?.runtime.device.kind === "cuda";
  }

  /** On a GPU bfloat16, but of files that hold something else. */
  #compute(weights: GeneratorWeights): "float32" | "bfloat16" {
    const narrow = isFed(weights) || weights.base.tensors.every(({ dtype }) => dtype === "BF16");
    return this.#onGpu && narrow ? "bfloat16" : "float32";
  }

  async #session(kind: "prefill" | "copy" | Sampling, weights: GeneratorWeights): Promise<Session> {
    const frozen = isFed(weights) ? undefined : weights;
    const lora = frozen?.adapter?.lora;
    const key = JSON.stringify(kind === "copy" ? kind : [kind, frozen?.base.folder, lora]);
    const known = this.#sessions.get(key);
    if (known) return known;
    const cache = this.#onGpu ? "bfloat16" : "float32";
    const sampling = kind === "prefill" || kind === "copy" ? undefined : kind;
    const graph =
      kind === "copy"
        ? copyGraph(this.#config, cache)
        : generationGraph(
            this.#config,
            (of) =>
              frozen
                ? mappedWeights(of, frozen.base, lora, this.#onGpu ? GPU_CAST_NUMBERS : CAST_NUMBERS)
                : fedWeights(of, this.#config),
            { sampling, cache, compute: this.#compute(weights) },
          );
    const create = this.#onDevice?.createSession ?? createSession;
    const captures = sampling !== undefined;
    const session = await create(graph, { threads: this.#threads, captures, ...frozen?.base.sessionOptions });
    this.#sessions.set(key, session);
    return session;
  }

  /** By the names of the graph's inputs. */
  async #weightFeeds(weights: GeneratorWeights, place: Placement): Promise<Feeds> {
    const { adapter } = isFed(weights) ? { adapter: undefined } : weights;
    const shapes = isFed(weights)
      ? parameters(this.#config)
      : adapter
        ? adapterParameters(this.#config, adapter.lora)
        : [];
    const numbers = isFed(weights) ? weights : adapter?.weights;
    const narrow = this.#compute(weights) === "bfloat16";
    const feeds: Feeds = {};
    for (const { name, shape } of shapes) {
      const half = narrow && isMultiplied(name);
      const input = half ? HALF_PREFIX + name : name;
      const given = numbers!.get(input) ?? numbers!.get(name);
      if (given === undefined) throw new ModelError("weights", `parameter ${name} is missing`);
      if (!("address" in given) && given.length !== elementCount(shape))
        throw new ModelError(
          "weights",
          `parameter ${name} has ${given.length} numbers; config.json asks for [${shape}]`,
        );
      feeds[input] = "address" in given ? given : await place.put(given, shape, half ? "bfloat16" : "float32");
    }
    return feeds;
  }

  /** Cosines and sines, with zeros where heads have them. */
  async #positionFeeds(positions: number, place: Placement): Promise<Feeds> {
    const table = rotaryTable(this.#config, positions);
    const [half, wide] = [this.#config.headSize / 2, cachedHeadSize(this.#config) / 2];
    const widened = (numbers: Float32Array) => {
      const all = new Float32Array(positions * wide);
      for (let at = 0; at < positions; at++) all.set(numbers.subarray(at * half, (at + 1) * half), at * wide);
      return place.put(all, [positions, wide], this.#onGpu ? "bfloat16" : "float32");
    };
    return { cosines: await widened(table.cosines), sines: await widened(table.sines) };
  }
}

/** Rows with equal prompts follow each other, in the order in which each prompt first comes. */
function rowsOf(prompts: readonly Int32Array[], seeds: readonly number[]): Row[] {
  const rows = prompts.map(
    (prompt, index): Row => ({
      ...{ index, prompt, key: prompt.join(), tokens: [], logProbs: [] },
      uniform: uniforms(seeds[index]!, "tokens"),
    }),
  );
  return [...Map.groupBy(rows, ({ key }) => key).values()].flat();
}

function notFinite(weights: GeneratorWeights): ModelError {
  if (!isFed(weights)) return (weights as Frozen).base.notFinite();
  return new ModelError("generation", "the model's logits are not finite; its weights have diverged");
}

/** Where numbers of this process are for the sessions that read them: here, or in a copy on the device. */
class Placement {
  readonly #onDevice: OnDevice | undefined;
  readonly #buffers: DeviceBuffer[] = [];

  constructor(onDevice: OnDevice | undefined) {
    this.#onDevice = onDevice;
  }

  async put(
    numbers: Float32Array,
    shape: readonly number[],
    dtype: "float32" | "bfloat16",
  ): Promise<Tensor | DeviceTensor> {
    if (!this.#onDevice) return tensor(numbers, shape);
    const { runtime } = this.#onDevice;
    const bytes = dtype === "bfloat16" ? toStored("BF16", numbers) : toStored("F32", numbers);
    const words = new Float32Array(Math.ceil(bytes.length / DTYPES.float32.bytes));
    new Uint8Array(words.buffer).set(bytes);
    const buffer = runtime.reserve(words.length);
    this.#buffers.push(buffer);
    await runtime.write(buffer, words);
    return buffer.viewOfBytes(0, dtype, shape);
  }

  release(): void {
    for (const buffer of this.#buffers) buffer.release();
  }
}
