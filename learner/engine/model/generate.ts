/**
 * Samples responses with the weights of a model. Rows of all calls share the slots of one KV cache (continuous batching). Between two tokens
 * other work of this thread runs, such as a new call; while a token is computed the thread is blocked: use it in a worker.
 */
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { OnDevice } from "../runtime/runtime.ts";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { GenerationModel, type GeneratorWeights, graphKey, notFinite } from "./generate-model.ts";
import { LEAST_SLOTS, type Row, Slots, tokenNumbers } from "./generate-slots.ts";
import { uniforms } from "./random.ts";

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
 * A row's response depends on its prompt, its seed, its options and the weights alone. On a CPU this holds bit for bit, whatever the other
 * rows, their order and the number of slots are. A GPU sums products in an order that depends on their size, so that log-probs move by rounding.
 */
export class Generator {
  readonly #config: ModelConfig;
  readonly #o: GeneratorOptions;
  readonly #model: GenerationModel;
  readonly #calls = new Set<Call>();
  #waiting: Pending[] = [];
  #isRunning = false;
  #slots: Slots<Pending> | undefined;
  /** slots of earlier runs, which a GPU has captured graphs for, by what they were made of */
  readonly #made = new Map<string, Slots<Pending>>();

  constructor(config: ModelConfig, options: GeneratorOptions) {
    this.#config = config;
    this.#o = options;
    this.#model = new GenerationModel(config, options.threads, options.onDevice);
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
    await this.#model.release();
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
    let cache = this.#model.cache(numbers);
    if (!cache) {
      this.#forgetSlots();
      cache = await this.#model.newCache(numbers);
    }
    const { cacheType, onGpu } = this.#model;
    const feeds = await this.#model.feeds(weights, positions);
    const addresses = Object.values(feeds).map((feed) => ("address" in feed ? feed.address : 0));
    const key = [slots, positions, graphKey(weights), ...addresses].join();
    const found = this.#made.get(key);
    found?.forget();
    const session = (kind: Parameters<GenerationModel["session"]>[0]) => this.#model.session(kind, weights);
    const config = this.#config;
    this.#slots = found ?? new Slots({ config, slots, positions, feeds, cache, cacheType, onGpu, session });
    this.#made.set(key, this.#slots);
    return this.#slots;
  }

  /** Keeps the slots on a GPU, unless inputs of their graphs are freed after this run. */
  #closeSlots(): void {
    this.#slots = undefined;
    if (this.#model.keeps) return;
    this.#forgetSlots();
    this.#model.endRun();
  }

  #forgetSlots(): void {
    for (const slots of this.#made.values()) slots.release();
    this.#made.clear();
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
