import { type DeviceTensor, type Tensor, tensor } from "../graph/tensor.ts";
import type { OnDevice } from "../runtime/numbers.ts";
import { createSession, usedDevice } from "../runtime/runtime.ts";
import type { Session } from "../runtime/session.ts";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { FusedWeights, fusedParameters } from "./fuse.ts";
import { Cache, type Layout, type Prompt, type Row } from "./generate-cache.ts";
import { decodeGraph, MASKED, prefillGraph, type Sampling, type WeightsOf } from "./generate-graphs.ts";
import { prefill } from "./generate-prefill.ts";
import { CAST_NUMBERS, fusedInputs, GPU_CAST_NUMBERS, mappedInitializers } from "./generate-weights.ts";
import { type Adapter, adapterFeeds, type LoraConfig } from "./lora.ts";
import { MappedWeights } from "./mapped.ts";
import { uniforms } from "./random.ts";
import { type RotaryTable, rotaryTable } from "./rotary.ts";

export interface GenerateOptions {
  /** one per row: the same seed, prompt and weights give the same response */
  readonly seeds: readonly number[];
  /** 0: the most probable token, with log-probs at temperature 1 */
  readonly temperature: number;
  /** sample from the smallest set of tokens that has this probability; 1: from all, at no cost */
  readonly topP: number;
  readonly maxNewTokens: number;
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

/** By transformers' name, which may change from call to call; or those of a folder's files, as they are or adapted. */
export type GeneratorWeights =
  | ReadonlyMap<string, Float32Array>
  | MappedWeights
  | { readonly base: MappedWeights; readonly adapter: Adapter }
  | { readonly fused: DeviceFeeds }
  | { readonly base: MappedWeights; readonly lora: LoraConfig; readonly fed: DeviceFeeds };

/** Where the generator's sessions run, by the names of their inputs: `weights.` and those of fuse.ts, or an adapter's. */
export type DeviceFeeds = Readonly<Record<string, DeviceTensor>>;

type Feeds = Record<string, Tensor | DeviceTensor>;

/** Weights that are in the session itself, and the adapter whose matrices are fed. */
interface Frozen {
  readonly mapped: MappedWeights;
  readonly lora: LoraConfig | undefined;
}

/** Tokens between two looks at which rows have ended. Measured with 64 rows, see test/bench/generate.ts. */
const CHUNK_TOKENS = 16;
/** Rows leave the batch when this fraction of the work is saved by it. */
const COMPACTION_GAIN = 0.1;
/** The prompt's length is padded to a multiple of this: a product with 192 columns takes two thirds of one with 185. */
const ALIGNMENT = 16;

/** How many multiplications reading one cached number is worth. */
const CACHE_COST = 8;

/**
 * Samples responses with a model whose weights the caller owns. Everything blocks this thread: use it in a worker.
 *
 * Prompts that are equal are read once. Rows that have ended leave the batch. A row's tokens depend on its prompt, its
 * seed and the weights; the rest of the batch moves its log-probs by float rounding only.
 */
export class Generator {
  readonly #config: ModelConfig;
  readonly #threads: number;
  readonly #fused: FusedWeights;
  readonly #onDevice: OnDevice | undefined;
  readonly #forGpu: boolean;
  readonly #sessions = new Map<string, Session>();
  #rotary: RotaryTable | undefined;

  /** @param forGpu whether the graphs have the shapes that a GPU prefers; they run anywhere. Default: where `useDevice` named one */
  constructor(
    config: ModelConfig,
    {
      threads,
      onDevice,
      forGpu = usedDevice().kind === "cuda",
    }: { threads: number; onDevice?: OnDevice | undefined; forGpu?: boolean },
  ) {
    this.#config = config;
    this.#threads = threads;
    this.#onDevice = onDevice;
    this.#forGpu = forGpu;
    this.#fused = new FusedWeights(config);
  }

  /**
   * @throws ModelError `generation` for a request that cannot be served or weights that are not finite
   */
  async generate(
    weights: GeneratorWeights,
    prompts: readonly Int32Array[],
    options: GenerateOptions,
  ): Promise<Response[]> {
    this.#check(prompts, options);
    if (prompts.length === 0) return [];
    const { frozen, feeds } = this.#take(weights);
    const longest = Math.max(...prompts.map((prompt) => prompt.length));
    Object.assign(feeds, this.#rotaryFeeds(longest + options.maxNewTokens));

    const distinct = new Map<string, Prompt>();
    const rows = prompts.map((tokens, index): Row => {
      const key = tokens.join();
      if (!distinct.has(key)) distinct.set(key, { tokens, cache: undefined });
      return {
        prompt: distinct.get(key)!,
        uniform: uniforms(options.seeds[index], "tokens"),
        tokens: [],
        logProbs: [],
        finished: false,
        last: tokens[tokens.length - 1],
      };
    });
    if (prompts.some((prompt) => prompt.length > 1)) {
      await prefill(await this.#session("prefill", frozen), this.#config, feeds, [...distinct.values()]);
    }
    await this.#decode(feeds, rows, options, frozen);
    return rows.map(({ tokens, logProbs, finished }) => ({
      response: Int32Array.from(tokens),
      logProbs: Float32Array.from(logProbs),
      finished,
    }));
  }

  async release(): Promise<void> {
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(sessions.map((session) => session.release()));
  }

  #check(prompts: readonly Int32Array[], { seeds, temperature, topP, maxNewTokens }: GenerateOptions): void {
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

  #take(weights: GeneratorWeights): { frozen?: Frozen; feeds: Feeds } {
    if (weights instanceof MappedWeights) return { frozen: { mapped: weights, lora: undefined }, feeds: {} };
    if ("fused" in weights) return { feeds: { ...weights.fused } };
    if ("fed" in weights) return { frozen: { mapped: weights.base, lora: weights.lora }, feeds: { ...weights.fed } };
    if (!("base" in weights)) return { feeds: this.#weightFeeds(weights) };
    const { base, adapter } = weights;
    const feeds = adapterFeeds(base.config, adapter);
    return { frozen: { mapped: base, lora: adapter.lora }, feeds };
  }

  #weightFeeds(weights: ReadonlyMap<string, Float32Array>): Record<string, Tensor> {
    const fused = this.#fused.fuse(weights);
    return Object.fromEntries(
      fusedParameters(this.#config).map(({ name, shape }) => [`weights.${name}`, tensor(fused.get(name)!, shape)]),
    );
  }

  #rotaryFeeds(positions: number): Record<string, Tensor> {
    if (this.#rotary === undefined || this.#rotary.positions < positions) {
      this.#rotary = rotaryTable(this.#config, positions);
    }
    const shape = [this.#rotary.positions, this.#config.headSize / 2];
    return { cosines: tensor(this.#rotary.cosines, shape), sines: tensor(this.#rotary.sines, shape) };
  }

  async #session(kind: "prefill" | Sampling, frozen: Frozen | undefined, grouped = false): Promise<Session> {
    const key = JSON.stringify([kind, grouped, frozen?.mapped.folder, frozen?.lora]);
    let session = this.#sessions.get(key);
    if (session === undefined) {
      const weightsOf: WeightsOf = (graph) =>
        frozen
          ? mappedInitializers(graph, frozen.mapped, frozen.lora, this.#forGpu ? GPU_CAST_NUMBERS : CAST_NUMBERS)
          : fusedInputs(graph, this.#config);
      const graph =
        kind === "prefill"
          ? prefillGraph(this.#config, weightsOf)
          : decodeGraph(this.#config, kind, grouped, weightsOf, this.#forGpu);
      const create = this.#onDevice?.createSession ?? createSession;
      session = await create(graph, { threads: this.#threads, ...frozen?.mapped.sessionOptions });
      this.#sessions.set(key, session);
    }
    return session;
  }

  async #decode(weights: Feeds, rows: Row[], options: GenerateOptions, frozen?: Frozen): Promise<void> {
    const { temperature, topP } = options;
    const sampling = temperature === 0 ? "greedy" : topP < 1 ? "nucleus" : "all";
    const constants = {
      ...weights,
      inverseTemperature: tensor(Float32Array.of(temperature === 0 ? 1 : 1 / temperature), []),
      topP: tensor(Float32Array.of(topP), []),
    };
    const cache = new Cache(this.#config, rows.length * options.maxNewTokens, this.#onDevice?.numbers);
    try {
      await this.#decodeChunks(cache, constants, sampling, rows, options, frozen);
    } finally {
      cache.release();
    }
  }

  /** CHUNK_TOKENS tokens of all rows at a time, until all have ended. */
  async #decodeChunks(
    cache: Cache,
    constants: Feeds,
    sampling: Sampling,
    rows: Row[],
    { maxNewTokens, eosIds }: GenerateOptions,
    frozen?: Frozen,
  ): Promise<void> {
    for (let past = 0, layout: Layout | undefined; past < maxNewTokens; ) {
      const active = rows.filter((row) => !row.finished);
      if (active.length === 0) return;
      const next = this.#layout(active);
      if (layout === undefined || this.#layoutWork(next) < (1 - COMPACTION_GAIN) * this.#layoutWork(layout)) {
        await cache.arrange(layout, next, past);
        layout = next;
      }
      const session = await this.#session(sampling, frozen, layout.group > 1);
      const steps = Math.min(CHUNK_TOKENS, maxNewTokens - past);
      const results = await session.run(
        { ...constants, ...cache.feeds(layout, past), ...this.#rowFeeds(layout, past, steps) },
        { tokens: null, logProbs: null, ...cache.targets(layout, past + steps) },
      );
      cache.swap();
      take(layout, results, steps, eosIds, frozen?.mapped);
      past += steps;
    }
  }

  /** Puts rows into slots. The group size is the one with the least work. */
  #layout(rows: Row[]): Layout {
    const byPrompt = new Map<Prompt, Row[]>();
    for (const row of rows) {
      const same = byPrompt.get(row.prompt);
      if (same === undefined) byPrompt.set(row.prompt, [row]);
      else same.push(row);
    }
    let longest = 1;
    let most = 1;
    for (const [prompt, same] of byPrompt) {
      longest = Math.max(longest, prompt.tokens.length - 1);
      most = Math.max(most, same.length);
    }
    const promptLength = Math.ceil(longest / ALIGNMENT) * ALIGNMENT;
    let best = { group: 1, slots: rows.length, promptLength };
    for (let parts = 1; parts < most; parts++) {
      const group = Math.ceil(most / parts);
      let slots = 0;
      for (const same of byPrompt.values()) slots += Math.ceil(same.length / group);
      const shape = { group, slots, promptLength };
      if (this.#work(shape) < this.#work(best)) best = shape;
    }
    const slots: Layout["slots"] = [];
    for (const same of byPrompt.values()) {
      for (let first = 0; first < same.length; first += best.group) {
        slots.push(Array.from({ length: best.group }, (_, i) => same[first + i]));
      }
    }
    return { group: best.group, slots, promptLength };
  }

  /** Relative cost of one step: matrix products for every row and hole, and reading the prompt's cache for every slot. */
  #work({ group, slots, promptLength }: { group: number; slots: number; promptLength: number }): number {
    const { layers, hiddenSize, intermediateSize, vocabSize, keyValueHeads, headSize } = this.#config;
    const parameters = layers * hiddenSize * (2 * hiddenSize + 3 * intermediateSize) + vocabSize * hiddenSize;
    const cached = 2 * layers * keyValueHeads * headSize * promptLength;
    return slots * (group * parameters + CACHE_COST * cached);
  }

  #layoutWork({ group, slots, promptLength }: Layout): number {
    return this.#work({ group, slots: slots.length, promptLength });
  }

  #rowFeeds({ group, slots, promptLength }: Layout, past: number, steps: number): Record<string, Tensor> {
    const { keyValueHeads } = this.#config;
    const count = slots.length * group;
    const copies = group === 1 ? keyValueHeads : 1; // see decodeGraph
    const token = new BigInt64Array(count);
    const positions = new BigInt64Array(count * keyValueHeads);
    const padding = new Float32Array(slots.length * copies * promptLength);
    const uniform = new Float32Array(steps * count);
    for (const [slot, members] of slots.entries()) {
      const length = members[0]!.prompt.tokens.length - 1;
      for (let copy = slot * copies; copy < (slot + 1) * copies; copy++)
        padding.fill(MASKED, copy * promptLength, (copy + 1) * promptLength - length);
      positions.fill(BigInt(length + past), slot * keyValueHeads * group, (slot + 1) * keyValueHeads * group);
      for (const [member, row] of members.entries()) {
        if (row === undefined) continue;
        const index = slot * group + member;
        token[index] = BigInt(row.last);
        // a row's numbers are drawn by itself alone, so that its tokens do not depend on the rest of the batch
        for (let step = 0; step < steps; step++) uniform[step * count + index] = row.uniform();
      }
    }
    return {
      steps: tensor(BigInt64Array.of(BigInt(steps)), []),
      token: tensor(token, [slots.length, group]),
      positions: tensor(positions, [count * keyValueHeads, 1]),
      padding: tensor(padding, [slots.length * copies, 1, 1, promptLength]),
      uniforms: tensor(uniform, [steps, count]),
    };
  }
}

/** Appends a chunk's tokens to its rows, up to the first that ends them. */
function take(
  { group, slots }: Layout,
  results: Record<string, Tensor>,
  steps: number,
  eosIds: readonly number[],
  mapped: MappedWeights | undefined,
): void {
  const tokens = results.tokens.data as BigInt64Array;
  const logProbs = results.logProbs.data as Float32Array;
  const count = slots.length * group;
  for (const [slot, members] of slots.entries()) {
    for (const [member, row] of members.entries()) {
      for (let step = 0; row !== undefined && step < steps && !row.finished; step++) {
        const index = step * count + slot * group + member;
        if (Number.isNaN(logProbs[index])) {
          if (mapped) throw mapped.notFinite();
          throw new ModelError("generation", "the model's logits are not finite; its weights have diverged");
        }
        row.last = Number(tokens[index]);
        row.tokens.push(row.last);
        row.logProbs.push(logProbs[index]);
        row.finished = eosIds.includes(row.last);
      }
    }
  }
}
