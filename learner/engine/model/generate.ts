/**
 * Samples responses with the weights of a model. Rows of all calls share the slots of one KV cache (continuous batching). Between two
 * tokens other work of this thread runs, such as a new call; while a token is computed the thread is blocked: use it in a worker.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { tokenNumbers } from "./generate-graph.ts";
import { type Cache, GenerationModel, type GenerationOptions, graphKey } from "./generate-model.ts";
import { type GenerateOptions, type Listener, type Response, Row } from "./generate-row.ts";
import { LEAST_SLOTS, Slots } from "./generate-slots.ts";
import type { GeneratorWeights } from "./generate-weights.ts";

export type { GenerateOptions, Listener, Response, ResponsePart } from "./generate-row.ts";

export interface GeneratorOptions extends GenerationOptions {
  /** rows that are generated side by side; further ones wait. It changes no response. Default DEFAULT_SLOTS */
  readonly slots?: number | undefined;
  /** Most tokens of a prompt with its response in a slot; longer rows leave fewer slots in the memory. Default: what the rows need. */
  readonly positions?: number | undefined;
}

export const DEFAULT_SLOTS = 64;

/**
 * Samples responses with a model whose weights the caller owns. Calls that overlap must have the same weights.
 *
 * A row's response depends on its prompt, its seed, its options and the weights alone. On a CPU this holds bit for bit, whatever the other
 * rows, their order and the number of slots are. A GPU sums products in an order that depends on their size, so that log-probs move by
 * rounding.
 */
export class Generator {
  readonly #config: ModelConfig;
  readonly #o: GeneratorOptions;
  readonly #model: GenerationModel;
  /** rows that have no answer yet */
  readonly #open = new Set<Row>();
  /** rows that have no slot yet */
  #waiting: Row[] = [];
  /** resolves when the slots are empty; undefined while nothing is generated */
  #running: Promise<void> | undefined;
  /** the KV cache, which all slots share */
  #cache: { numbers: number; memory?: Cache } = { numbers: 0 };
  /** slots in the cache, by their sizes: a GPU has captured graphs for them */
  readonly #made = new Map<string, Slots>();

  constructor(config: ModelConfig, options: GeneratorOptions) {
    this.#config = config;
    this.#o = options;
    this.#model = new GenerationModel(config, options);
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
    if (prompts.length === 0) return [];
    // The end of a call that was aborted: its weights may be others.
    while (this.#running && this.#open.size === 0) await this.#running;
    signal?.throwIfAborted();
    const rows = prompts.map((prompt, i) => new Row(prompt, seeds[i]!, options, (part) => listener(i, part)));
    for (const row of rows) this.#open.add(row);
    this.#waiting.push(...[...Map.groupBy(rows, ({ key }) => key).values()].flat()); // equal prompts follow each other
    const abort = () => this.#reject(signal?.reason, options);
    signal?.addEventListener("abort", abort, { once: true });
    this.#running ??= this.#run(weights);
    const responses = Promise.all(rows.map(({ answer }) => answer.promise));
    return responses.finally(() => signal?.removeEventListener("abort", abort));
  }

  async release(): Promise<void> {
    this.#forget();
    await this.#model.release();
  }

  /** Generates until no row is left. The rows that end last are answered when everything here is done. */
  async #run(given: GeneratorWeights): Promise<void> {
    let ended: Row[] = [];
    try {
      const weights = this.#model.widened(given);
      while (this.#waiting.length > 0) {
        const slots = await this.#openSlots(weights);
        for (await slots.admit(this.#waiting); !slots.empty; await slots.admit(this.#waiting)) {
          const rows = await slots.step();
          const now = performance.now();
          for (const row of rows) row.report(now);
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
      this.#running = undefined;
    }
    for (const row of ended) row.answer.resolve(row.response());
  }

  /** Rejects the unanswered rows of `call`; without `call`, the rows of every call. */
  #reject(cause: unknown, call?: GenerateOptions): void {
    for (const row of this.#open) {
      if (call && row.call !== call) continue;
      row.ended = true;
      row.answer.reject(cause);
      this.#open.delete(row);
    }
    this.#waiting = this.#waiting.filter(({ ended }) => !ended);
  }

  /** Returns slots with room for the waiting rows. */
  async #openSlots(weights: GeneratorWeights): Promise<Slots> {
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
    const found = this.#made.get(key) ?? new Slots(options);
    this.#made.set(key, found);
    found.forget();
    return found;
  }

  /** Frees the KV cache on a CPU, which needs the memory for other things. A GPU keeps it with its captured graphs. */
  #forget(): void {
    for (const slots of this.#made.values()) slots.release();
    this.#made.clear();
    this.#cache.memory?.release();
    this.#cache = { numbers: 0 };
  }

  #check(prompts: readonly Int32Array[], { seeds, temperature, topP, maxNewTokens }: GenerateOptions): void {
    const { maxPositions, vocabSize } = this.#config;
    const refuse = (isWrong: boolean, problem: string) => {
      if (isWrong) throw new ModelError("generation", `cannot generate: ${problem}`);
    };
    refuse(seeds.length !== prompts.length, `${seeds.length} seeds for ${prompts.length} prompts; give one each`);
    refuse(!Number.isFinite(temperature) || temperature < 0, `temperature is ${temperature}; expected 0 or more`);
    refuse(!(topP > 0 && topP <= 1), `topP is ${topP}; expected a number in (0, 1]`);
    refuse(!Number.isInteger(maxNewTokens) || maxNewTokens < 1, `maxNewTokens is ${maxNewTokens}; expected 1 or more`);
    for (const [index, prompt] of prompts.entries()) {
      refuse(prompt.length === 0, `prompt ${index} is empty; begin it with some token`);
      const total = `prompt ${index} and maxNewTokens are ${prompt.length + maxNewTokens} tokens`;
      refuse(prompt.length + maxNewTokens > maxPositions, `${total}; the model has ${maxPositions} positions`);
      const outside = prompt.find((token) => token < 0 || token >= vocabSize);
      refuse(outside !== undefined, `prompt ${index} has token ${outside}; the vocabulary is ${vocabSize}`);
    }
  }
}
