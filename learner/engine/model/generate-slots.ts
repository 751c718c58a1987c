/**
 * Slots of the KV cache. Each generates one row at a time. A row that ends leaves its slot to the next one that waits; no row is moved. A
 * slot keeps its prompt's part of the cache until another prompt takes it, so that rows with one prompt read it once: a slot that has it
 * is used again, or copied.
 */
import { Graph } from "../graph/graph.ts";
import { type DeviceTensor, DTYPES, type DType, type Tensor, tensor } from "../graph/tensor.ts";
import type { Binding } from "../runtime/binding.ts";
import type { DeviceBuffer, HostBuffer } from "../runtime/buffer.ts";
import type { Session } from "../runtime/session.ts";
import type { ModelConfig } from "./config.ts";
import { cachedHeadSize, type Sampling } from "./generate-graph.ts";

/** A prompt and its response so far. */
export interface Row {
  readonly prompt: Int32Array;
  /** equal for equal prompts */
  readonly key: string;
  readonly maxNewTokens: number;
  readonly temperature: number;
  readonly topP: number;
  /** the next random number in [0, 1) */
  readonly uniform: () => number;
  readonly tokens: number[];
  readonly logProbs: number[];
}

export type CachePart = Pick<DeviceBuffer | HostBuffer, "viewOfBytes" | "release">;
export type Feeds = Record<string, Tensor | DeviceTensor>;

export interface SlotOptions {
  readonly config: ModelConfig;
  readonly slots: number;
  /** most tokens of a prompt and its response */
  readonly positions: number;
  /** keys, then values, of each layer: room for `slots` times `positions` tokens */
  readonly cache: readonly CachePart[];
  readonly cacheType: DType;
  /** weights and positions */
  readonly feeds: Feeds;
  readonly session: (kind: "prefill" | "copy" | Sampling) => Promise<Session>;
  /** A GPU computes all slots up to the last row in each step: empty slots cost nothing, and every further range of slots would be another graph to capture. */
  readonly onGpu: boolean;
}

/** Attention scores of a layer in one run, numbers. A prompt that has more goes by blocks of so many tokens that a block has no more, */
const SCORES = 1 << 23;
/** but of no less than this. */
const LEAST_BLOCK = 256;
/** A product of a single row is summed in another order than one of several: a row alone would have other log-probs than among others. */
export const LEAST_SLOTS = 2;

/** Empty slots between two that have rows are computed with them, if there are no more: a further run of the graph costs more. */
const SMALL_GAP = 3;

/** Slots that are computed together. */
type Range = { first: number; count: number };
type Step = { binding: Binding; drawn: Float32Array };

export class Slots<R extends Row> {
  readonly #o: SlotOptions;
  readonly #rows: (R | undefined)[];
  /** keys of the prompts that slots have */
  readonly #holds: (string | undefined)[];
  /** by sampling and slots. `drawn` are tokens, then their probabilities */
  readonly #steps = new Map<string, Step>();
  readonly #inputs: Record<"tokens" | "last", Int32Array> &
    Record<"uniforms" | "inverseTemperatures" | "topPs", Float32Array>;

  constructor(options: SlotOptions) {
    const { slots } = options;
    this.#o = options;
    this.#rows = new Array(slots).fill(undefined);
    this.#holds = new Array(slots).fill(undefined);
    const [integers, floats] = [() => new Int32Array(slots), () => new Float32Array(slots)];
    this.#inputs = {
      ...{ tokens: integers(), last: integers() },
      ...{ uniforms: floats(), inverseTemperatures: floats().fill(1), topPs: floats().fill(1) },
    };
  }

  get empty(): boolean {
    return this.#rows.every((row) => row === undefined);
  }

  /** Takes rows from the front of `waiting`, as many as there are free slots, up to the first that is too long for one. */
  async admit(waiting: R[]): Promise<void> {
    const free = [...this.#rows.keys()].filter((slot) => this.#rows[slot] === undefined);
    const tooLong = waiting.findIndex(({ prompt, maxNewTokens }) => prompt.length + maxNewTokens > this.#o.positions);
    const without: R[] = [];
    for (const row of waiting.splice(0, tooLong < 0 ? free.length : Math.min(tooLong, free.length))) {
      const same = free.findIndex((slot) => this.#holds[slot] === row.key);
      if (same >= 0) this.#place(row, free.splice(same, 1)[0]!);
      else without.push(row);
    }
    for (const row of without) {
      const slot = free.shift()!;
      // another free slot does not have it, so that what is copied is not what another row takes
      const source = row.prompt.length > 1 ? this.#holds.indexOf(row.key) : slot;
      this.#place(row, slot);
      if (source < 0) await this.#read(row.prompt, slot);
      else if (source !== slot)
        await (await this.#o.session("copy")).run(this.#copied(source, "from"), this.#copied(slot, "to"));
    }
  }

  /** One more token for each row. Returns the slots that have one; a row leaves its slot by `free`. */
  async step(): Promise<number[]> {
    const active: number[] = []; // loops, here and below: arrays of all slots for each token would be much garbage
    for (let slot = 0; slot < this.#o.slots; slot++) if (this.#rows[slot]) active.push(slot);
    const sampling = this.#sampling(active);
    for (const range of this.#ranges(active)) await this.#run(sampling, range);
    return active;
  }

  /** The row of a slot that has one. */
  row(slot: number): R {
    return this.#rows[slot]!;
  }

  #sampling(active: readonly number[]): Sampling {
    let [greedy, nuclei] = [0, 0];
    for (const slot of active) {
      const { temperature, topP } = this.#rows[slot]!;
      if (temperature === 0) greedy++;
      else if (topP < 1) nuclei++;
    }
    if (greedy === active.length) return "greedy";
    return greedy + nuclei === 0 ? "all" : "mixed";
  }

  async #run(sampling: Sampling, { first, count }: Range): Promise<void> {
    const { last, tokens, uniforms } = this.#inputs;
    for (let slot = first; slot < first + count; slot++) {
      const row = this.#rows[slot];
      uniforms[slot] = row && row.temperature > 0 ? row.uniform() : -1;
      if (row) continue;
      last[slot] = 0; // a token is computed for an empty slot, too, and overwrites what was there
      this.#holds[slot] = undefined;
    }
    const { binding, drawn } = await this.#step(sampling, { first, count });
    await binding.run();
    for (let i = 0; i < count; i++) {
      const slot = first + i;
      tokens[slot] = drawn[i]!;
      last[slot]!++;
      this.#rows[slot]?.tokens.push(drawn[i]!);
      this.#rows[slot]?.logProbs.push(Math.log(drawn[count + i]!));
    }
  }

  #ranges(active: readonly number[]): Range[] {
    const { slots, onGpu } = this.#o;
    if (onGpu) return [{ first: 0, count: Math.min(slots, roundedUp(active.at(-1)! + 1)) }];
    const ranges: Range[] = [];
    for (const slot of active) {
      const range = ranges.at(-1);
      if (range && slot <= range.first + range.count + SMALL_GAP) range.count = slot + 1 - range.first;
      else ranges.push({ first: Math.min(slot, slots - LEAST_SLOTS), count: LEAST_SLOTS });
    }
    return ranges;
  }

  /** The slot's row has ended. It keeps its prompt for a row that is admitted before the next step. */
  free(slot: number): void {
    this.#rows[slot] = undefined;
  }

  /** Frees the slots of rows that nobody wants any more. */
  drop(unwanted: (row: R) => boolean): void {
    for (const [slot, row] of this.#rows.entries()) if (row && unwanted(row)) this.free(slot);
  }

  /** Forgets the prompts that slots hold: their keys and values were computed with weights that have changed. */
  forget(): void {
    this.#holds.fill(undefined);
  }

  release(): void {
    for (const { binding } of this.#steps.values()) binding.release();
  }

  #place(row: R, slot: number): void {
    const { tokens, last, inverseTemperatures, topPs } = this.#inputs;
    this.#rows[slot] = row;
    this.#holds[slot] = row.key;
    tokens[slot] = row.prompt.at(-1)!;
    last[slot] = row.prompt.length - 1;
    inverseTemperatures[slot] = row.temperature === 0 ? 1 : 1 / row.temperature;
    topPs[slot] = row.topP;
  }

  /** All tokens of a prompt but its last, which is the first to be decoded. */
  async #read(prompt: Int32Array, slot: number): Promise<void> {
    const { config, feeds, session } = this.#o;
    const prefill = await session("prefill");
    const length = prompt.length - 1;
    const columns = Math.floor(SCORES / (config.heads * length));
    const block = columns < length ? Math.max(columns, LEAST_BLOCK) : length;
    for (let begin = 0; begin < length; begin += block) {
      const end = Math.min(length, begin + block);
      const fed = {
        tokens: tensor(prompt.slice(begin, end), [1, end - begin]),
        last: tensor(Int32Array.of(end - 1)),
        total: tensor(Int32Array.of(end), []),
      };
      await prefill.run({ ...feeds, ...fed, ...this.#cached(slot, 1, FROM) }, this.#cached(slot, 1, TO));
    }
  }

  async #step(sampling: Sampling, { first, count }: Range): Promise<Step> {
    const key = `${sampling} ${first} ${count}`;
    const known = this.#steps.get(key);
    if (known) return known;
    const { session, feeds, positions } = this.#o;
    const decode = await session(sampling);
    const drawn = new Float32Array(2 * count);
    const shapes: Record<string, number[]> = { tokens: [count, 1], inverseTemperatures: [count, 1] };
    const changing = Object.entries(this.#inputs)
      .filter(([name]) => decode.inputNames.includes(name))
      .map(([name, numbers]) => [name, tensor(numbers.subarray(first, first + count), shapes[name] ?? [count])]);
    const binding = decode.bind(
      { ...feeds, total: tensor(Int32Array.of(positions), []), ...this.#cached(first, count, FROM) },
      { drawn: tensor(drawn, [2, count]), ...this.#cached(first, count, TO) },
      Object.fromEntries(changing),
    );
    this.#steps.set(key, { binding, drawn });
    return { binding, drawn };
  }

  get #slotNumbers(): number {
    return this.#o.positions * tokenNumbers(this.#o.config);
  }

  /** Keys and values of some slots, as the graph calls what it reads or what it writes. */
  #cached(first: number, count: number, [keys, values]: readonly [string, string]): Feeds {
    const { config, positions } = this.#o;
    const shape = [count, config.keyValueHeads, positions, cachedHeadSize(config)];
    return this.#views(first, shape, (part) => `${part % 2 ? values : keys}.${part >> 1}`);
  }

  #copied(slot: number, name: string): Feeds {
    return this.#views(slot, [this.#slotNumbers], (part) => `${name}.${part}`);
  }

  #views(slot: number, shape: readonly number[], name: (part: number) => string): Feeds {
    const { cache, cacheType } = this.#o;
    const offset = DTYPES[cacheType].bytes * slot * this.#slotNumbers;
    return Object.fromEntries(
      cache.map((part, i) => [name(i), part.viewOfBytes(offset, cacheType as "float32", shape)]),
    );
  }
}

/** Few numbers of slots: powers of two, then multiples of eight. */
const roundedUp = (count: number): number =>
  count <= 8 ? Math.max(LEAST_SLOTS, 2 ** Math.ceil(Math.log2(count))) : 8 * Math.ceil(count / 8);

const FROM = ["keys", "values"] as const;
const TO = ["newKeys", "newValues"] as const;

/** Numbers of a token's keys, or values, in a layer. */
export const tokenNumbers = (config: ModelConfig): number => config.keyValueHeads * cachedHeadSize(config);

/** Copies a slot's part of each layer's keys and values to another: from.N -> to.N */
export function copyGraph({ layers }: ModelConfig, cache: DType): Graph {
  const graph = new Graph("copy_slot");
  for (let part = 0; part < 2 * layers; part++)
    graph.output(`to.${part}`, graph.input(`from.${part}`, cache, ["numbers"]));
  return graph;
}
