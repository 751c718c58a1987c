/**
 * Slots of the KV cache. Each generates one row at a time. When a row ends, the next waiting row takes its slot; no row is moved. A
 * slot keeps its prompt's part of the cache until another prompt takes it, so that rows with one prompt read it once: a slot that has it
 * is used again, or copied.
 */
import { DTYPES, tensor } from "../graph/tensor.ts";
import type { Binding } from "../runtime/binding.ts";
import { cachedHeadSize, FROM, type Sampling, TO, tokenNumbers } from "./generate-graph.ts";
import type { Cache, Feeds, GenerationModel } from "./generate-model.ts";
import type { Row } from "./generate-row.ts";
import type { GeneratorWeights } from "./generate-weights.ts";

interface SlotOptions {
  readonly model: GenerationModel;
  readonly weights: GeneratorWeights;
  /** weights and positions */
  readonly feeds: Feeds;
  readonly cache: Cache;
  readonly slots: number;
  /** most tokens of a prompt and its response */
  readonly positions: number;
}

/** Attention scores of a layer in one run, numbers. A prompt with more scores is computed in blocks that have at most this number, */
const SCORES = 1 << 23;
/** but no block is smaller than this. */
const LEAST_BLOCK = 256;
/** A product of one row is summed in another order than one of several rows, and would give the same row other log-probs. */
export const LEAST_SLOTS = 2;

/** Up to this many empty slots between two used ones are computed with them, because a further run of the graph costs more. */
const SMALL_GAP = 3;

/** Slots of one run of the graph. */
type Range = { first: number; count: number };
type Step = { binding: Binding; drawn: Float32Array };

export class Slots {
  readonly #o: SlotOptions;
  readonly #rows: (Row | undefined)[];
  /** keys of the prompts that slots have */
  readonly #holds: (string | undefined)[];
  /** steps by sampling and slots. `drawn` has tokens, then their probabilities */
  readonly #steps = new Map<string, Step>();
  /** inputs that change from step to step, a number for each slot */
  readonly #inputs;

  constructor(options: SlotOptions) {
    const { slots } = options;
    this.#o = options;
    this.#rows = new Array(slots).fill(undefined);
    this.#holds = new Array(slots).fill(undefined);
    const [integers, floats] = [() => new Int32Array(slots), () => new Float32Array(slots)];
    this.#inputs = {
      tokens: integers(),
      last: integers(),
      uniforms: floats(),
      inverseTemperatures: floats().fill(1),
      topPs: floats().fill(1),
    };
  }

  get empty(): boolean {
    return this.#rows.every((row) => !row || row.ended);
  }

  /** Takes rows from the front of `waiting`, as many as there are free slots, up to the first row that is too long for a slot. */
  async admit(waiting: Row[]): Promise<void> {
    const free = [...this.#rows.keys()].filter((slot) => !this.#row(slot));
    const next = waiting.slice(0, free.length);
    const tooLong = next.findIndex(({ positions }) => positions > this.#o.positions);
    const without = waiting.splice(0, tooLong < 0 ? next.length : tooLong).filter((row) => {
      const same = free.findIndex((slot) => this.#holds[slot] === row.key);
      if (same >= 0) this.#place(row, free.splice(same, 1)[0]!);
      return same < 0;
    });
    for (const row of without) {
      const slot = free.shift()!;
      // another free slot does not have it, so the copied slot is not given to another row
      const source = this.#holds.indexOf(row.key);
      this.#place(row, slot);
      if (row.prompt.length === 1) continue;
      if (source < 0) await this.#read(row.prompt, slot);
      else await (await this.#session("copy")).run(this.#cached(source, 1, FROM), this.#cached(slot, 1, TO));
    }
  }

  /** Generates one more token for each row, and returns these rows. @throws ModelError `generation` where logits are not finite */
  async step(): Promise<Row[]> {
    const active = [...this.#rows.keys()].filter((slot) => this.#row(slot));
    const rows = active.map((slot) => this.#rows[slot]!);
    const ways = new Set(rows.map(samplingOf));
    const sampling = ways.size > 1 ? "mixed" : samplingOf(rows[0]!);
    for (const range of this.#ranges(active)) await this.#run(sampling, range);
    return rows;
  }

  /** Forgets the prompts that slots hold: their keys and values were computed with weights that have changed. */
  forget(): void {
    this.#holds.fill(undefined);
  }

  release(): void {
    for (const { binding } of this.#steps.values()) binding.release();
  }

  /** Returns the row of a used slot. */
  #row(slot: number): Row | undefined {
    return this.#rows[slot]?.ended ? undefined : this.#rows[slot];
  }

  #place(row: Row, slot: number): void {
    const { tokens, last, inverseTemperatures, topPs } = this.#inputs;
    this.#rows[slot] = row;
    this.#holds[slot] = row.key;
    tokens[slot] = row.prompt.at(-1)!;
    last[slot] = row.prompt.length - 1;
    inverseTemperatures[slot] = row.call.temperature === 0 ? 1 : 1 / row.call.temperature;
    topPs[slot] = row.call.topP;
  }

  /** Returns all tokens of a prompt except the last, which the first decode step reads. */
  async #read(prompt: Int32Array, slot: number): Promise<void> {
    const { model, feeds } = this.#o;
    const prefill = await this.#session("prefill");
    const length = prompt.length - 1;
    const columns = Math.floor(SCORES / (model.config.heads * length));
    const block = columns < length ? Math.max(columns, LEAST_BLOCK) : length;
    for (let begin = 0; begin < length; begin += block) {
      const end = Math.min(length, begin + block);
      const fed = {
        tokens: tensor(prompt.slice(begin, end)),
        last: tensor(Int32Array.of(end - 1)),
        total: tensor(Int32Array.of(end), []),
      };
      await prefill.run({ ...feeds, ...fed, ...this.#cached(slot, 1, FROM) }, this.#cached(slot, 1, TO));
    }
  }

  /** A GPU computes all slots up to the last row: empty slots cost nothing, and every further range would be another graph to capture. */
  #ranges(active: readonly number[]): Range[] {
    const { model, slots } = this.#o;
    if (model.onGpu) return [{ first: 0, count: Math.min(slots, roundedUp(active.at(-1)! + 1)) }];
    const ranges: Range[] = [];
    for (const slot of active) {
      const range = ranges.at(-1);
      if (range && slot <= range.first + range.count + SMALL_GAP) range.count = slot + 1 - range.first;
      else ranges.push({ first: Math.min(slot, slots - LEAST_SLOTS), count: LEAST_SLOTS });
    }
    return ranges;
  }

  async #run(sampling: Sampling, { first, count }: Range): Promise<void> {
    const { last, tokens, uniforms } = this.#inputs;
    for (let slot = first; slot < first + count; slot++) {
      const row = this.#row(slot);
      uniforms[slot] = row && row.call.temperature > 0 ? row.uniform() : -1;
      if (row) continue;
      last[slot] = 0; // the step also computes a token for an empty slot, and overwrites the slot's first position
      this.#holds[slot] = undefined;
    }
    const { binding, drawn } = await this.#step(sampling, { first, count });
    await binding.run();
    for (let i = 0; i < count; i++) {
      const slot = first + i;
      tokens[slot] = drawn[i]!;
      last[slot]!++;
      const logProb = Math.log(drawn[count + i]!);
      if (Number.isNaN(logProb) && this.#row(slot)) throw this.#o.model.notFinite(this.#o.weights);
      this.#row(slot)?.push(drawn[i]!, logProb);
    }
  }

  async #step(sampling: Sampling, { first, count }: Range): Promise<Step> {
    const key = `${sampling} ${first} ${count}`;
    const known = this.#steps.get(key);
    if (known) return known;
    const { feeds, positions } = this.#o;
    const decode = await this.#session(sampling);
    const drawn = new Float32Array(2 * count);
    const changing = Object.entries(this.#inputs)
      .filter(([name]) => decode.inputNames.includes(name))
      .map(([name, numbers]) => [name, tensor(numbers.subarray(first, first + count))]);
    const binding = decode.bind(
      { ...feeds, total: tensor(Int32Array.of(positions), []), ...this.#cached(first, count, FROM) },
      { drawn: tensor(drawn, [2, count]), ...this.#cached(first, count, TO) },
      Object.fromEntries(changing),
    );
    this.#steps.set(key, { binding, drawn });
    return { binding, drawn };
  }

  #session(kind: Parameters<GenerationModel["session"]>[0]) {
    return this.#o.model.session(kind, this.#o.weights);
  }

  /** Keys and values of some slots, by the names of a graph's inputs or outputs. The cache has a part for each layer's keys and values. */
  #cached(first: number, count: number, names: readonly string[]): Feeds {
    const { model, cache, slots, positions } = this.#o;
    const { config, cacheType } = model;
    const shape = [count, config.keyValueHeads, positions, cachedHeadSize(config)];
    const slotBytes = DTYPES[cacheType].bytes * positions * tokenNumbers(config);
    const feeds: Feeds = {};
    for (let part = 0; part < 2 * config.layers; part++) {
      const name = `${names[part % 2]}.${part >> 1}`;
      feeds[name] = cache.viewOfBytes(slotBytes * (part * slots + first), cacheType as "float32", shape);
    }
    return feeds;
  }
}

/** Rounds a number of slots up to one of few: powers of two, then multiples of eight. */
const roundedUp = (count: number): number =>
  count <= 8 ? Math.max(LEAST_SLOTS, 2 ** Math.ceil(Math.log2(count))) : 8 * Math.ceil(count / 8);

const samplingOf = ({ call: { temperature, topP } }: Row): Sampling =>
  temperature === 0 ? "greedy" : topP < 1 ? "mixed" : "all";
