/**
 * Samples responses with the weights of a model. Rows of all calls share the slots of one KV cache (continuous batching). Between two tokens
 * other work of this thread runs, such as a new call; while a token is computed the thread is blocked: use it in a worker.
 */
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { OnDevice } from "../runtime/runtime.ts";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { tokenNumbers } from "./generate-graph.ts";
import { type Cache, GenerationModel, graphKey } from "./generate-model.ts";
import { LEAST_SLOTS, Slots } from "./generate-slots.ts";
import type { GeneratorWeights } from "./generate-weights.ts";
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
  /** rows that have no answer yet */
  readonly #open = new Set<PendingRow>();
  /** those among them that have no slot yet */
  #waiting: PendingRow[] = [];
  #isRunning = false;
  /** the KV cache, which all slots share */
  #cache: { numbers: number; memory?: Cache } = { numbers: 0 };
  /** slots in that cache, by what they were made of: a GPU has captured graphs for them */
  readonly #made = new Map<string, Slots<PendingRow>>();

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
    const { seeds, signal } = options;
    this.#check(prompts, options);
    signal?.throwIfAborted();
    const rows = prompts.map((prompt, i) => new PendingRow(prompt, seeds[i]!, options, (part) => listener(i, part)));
    for (const row of rows) this.#open.add(row);
    this.#waiting.push(...[...Map.groupBy(rows, ({ key }) => key).values()].flat()); // equal prompts follow each other
    const abort = () => this.#reject(signal?.reason, options);
    signal?.addEventListener("abort", abort, { once: true });
    if (!this.#isRunning) void this.#run(weights);
    const responses = Promise.all(rows.map(({ answer }) => answer.promise));
    return responses.finally(() => signal?.removeEventListener("abort", abort));
  }

  async release(): Promise<void> {
    this.#forget();
    await this.#model.release();
  }

  /** Generates until no row is left. The rows that end last are answered when everything here is done. */
  async #run(weights: GeneratorWeights): Promise<void> {
    this.#isRunning = true;
    let ended: PendingRow[] = [];
    try {
      while (this.#waiting.length > 0) {
        const slots = await this.#openSlots(weights);
        for (await slots.admit(this.#waiting); !slots.empty; await slots.admit(this.#waiting)) {
          const rows = await slots.step();
          const now = performance.now();
          for (const row of rows) row.tell(now);
          ended = rows.filter((row) => row.ended && this.#open.delete(row));
          if (this.#open.size === 0) break;
          for (const row of ended) row.answer.resolve(row.response());
          await nextTurn();
        }
        if (!this.#model.onGpu) this.#forget();
      }
    } catch (cause) {
      if (!this.#model.onGpu) this.#forget();
      this.#reject(cause);
    } finally {
      this.#isRunning = false;
    }
    for (const row of ended) row.answer.resolve(row.response());
  }

  /** Ends all rows without an answer, or those of a call. */
  #reject(cause: unknown, call?: GenerateOptions): void {
    for (const row of this.#open) {
      if (call && row.call !== call) continue;
      row.ended = true;
      row.answer.reject(cause);
      this.#open.delete(row);
    }
    this.#waiting = this.#waiting.filter(({ ended }) => !ended);
  }

  /** Slots with room for what waits. */
  async #openSlots(weights: GeneratorWeights): Promise<Slots<PendingRow>> {
    const needed = this.#waiting.reduce((most, { positions }) => Math.max(most, positions), 0);
    const { slots: asked = DEFAULT_SLOTS, positions: given = needed } = this.#o;
    const positions = Math.max(given, needed);
    const slots = Math.max(LEAST_SLOTS, Math.floor((asked * given) / positions));
    const numbers = 2 * this.#config.layers * slots * positions * tokenNumbers(this.#config);
    if (this.#cache.numbers < numbers) {
      this.#forget();
      this.#cache = { numbers, memory: await this.#model.allocate(numbers) };
    }
    const feeds = await this.#model.feeds(weights, positions);
    const addresses = Object.values(feeds).map((feed) => ("address" in feed ? feed.address : 0));
    const key = [slots, positions, graphKey(weights), ...addresses].join();
    const options = { model: this.#model, weights, feeds, cache: this.#cache.memory!, slots, positions };
    const found = this.#made.get(key) ?? new Slots<PendingRow>(options);
    this.#made.set(key, found);
    found.forget();
    return found;
  }

  /** Frees the KV cache: a CPU needs the memory for other things, where a GPU keeps it with what it has captured. */
  #forget(): void {
    for (const slots of this.#made.values()) slots.release();
    this.#made.clear();
    this.#cache.memory?.release();
    this.#cache = { numbers: 0 };
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

/** A prompt and its response so far, and who waits for it. */
class PendingRow {
  readonly prompt: Int32Array;
  readonly key: string;
  readonly call: GenerateOptions;
  readonly uniform: () => number;
  readonly answer = Promise.withResolvers<Response>();
  ended = false;
  readonly #listener: (part: ResponsePart) => void;
  readonly #tokens: number[] = [];
  readonly #logProbs: number[] = [];
  /** tokens that the listener knows, and when it was told */
  #told = 0;
  #toldAt = 0;

  constructor(prompt: Int32Array, seed: number, call: GenerateOptions, listener: (part: ResponsePart) => void) {
    this.prompt = prompt;
    this.key = createHash("sha256").update(prompt).digest("base64");
    this.call = call;
    this.uniform = uniforms(seed, "tokens");
    this.#listener = listener;
  }

  get positions(): number {
    return this.prompt.length + this.call.maxNewTokens;
  }

  push(token: number, logProb: number): void {
    this.#tokens.push(token);
    this.#logProbs.push(logProb);
    this.ended = this.call.eosIds.includes(token) || this.#tokens.length === this.call.maxNewTokens;
  }

  /** Tells the listener of the newest tokens: at the end of the response, or where it is streamed every STREAM_MILLISECONDS. */
  tell(now: number): void {
    if (!this.ended && !(this.call.streams && now >= this.#toldAt + STREAM_MILLISECONDS)) return;
    this.#listener({ ...this.response(this.#told), ended: this.ended });
    [this.#told, this.#toldAt] = [this.#tokens.length, now];
  }

  /** The response from token `from` on. */
  response(from = 0): Response {
    return {
      response: Int32Array.from(this.#tokens.slice(from)),
      logProbs: Float32Array.from(this.#logProbs.slice(from)),
      finished: this.call.eosIds.includes(this.#tokens.at(-1)!),
    };
  }
}
