/**
 * Slots of the KV cache. Each generates one row at a time. A row that ends leaves its slot to the next one that waits; no row is moved. A
 * slot keeps its prompt's part of the cache until another prompt takes it, so that rows with one prompt read it once: a slot that has it
 * is used again, or copied.
 */
import { Graph } from "../graph/graph.ts";
import { type DeviceTensor, DTYPES, type DType, elementCount, type Tensor, tensor } from "../graph/tensor.ts";
import type { Binding } from "../runtime/binding.ts";
import type { OnDevice } from "../runtime/runtime.ts";
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

export type Feeds = Record<string, Tensor | DeviceTensor>;

export interface SlotOptions {
  readonly config: ModelConfig;
  readonly slots: number;
  /** most tokens of a prompt and its response */
  readonly positions: number;
  /** keys, then values, of each layer: room for `slots` times `positions` tokens */
  readonly cache: readonly Room[];
  /** weights and positions */
  readonly feeds: Feeds;
  readonly session: (kind: "prefill" | "copy" | Sampling) => Promise<Session>;
  /** Returns for how many slots a step is computed where so many are needed: a GPU captures a graph for each number. */
  readonly rounded: (slots: number) => number;
}

/** Attention scores of a layer in one run, numbers. A prompt that has more goes by blocks of so many tokens that a block has no more, */
const SCORES = 1 << 23;
/** but of no less than this. */
const LEAST_BLOCK = 256;
/** A product of a single row is summed in another order than one of several: a row alone would have other log-probs than among others. */
export const LEAST_SLOTS = 2;

type Step = { binding: Binding; drawn: Float32Array };

export class Slots<R extends Row> {
  readonly #o: SlotOptions;
  readonly #rows: (R | undefined)[];
  /** keys of the prompts that slots have */
  readonly #holds: (string | undefined)[];
  /** by sampling and number of slots. `drawn` are tokens, then their probabilities */
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

  /** One more token for each row. Returns the rows by their slots, which they leave by `free`. */
  async step(): Promise<[slot: number, row: R][]> {
    const active = [...this.#rows.entries()].filter((entry): entry is [number, R] => entry[1] !== undefined);
    const count = Math.min(this.#o.slots, this.#o.rounded(Math.max(LEAST_SLOTS, active.at(-1)![0] + 1)));
    const { last, tokens, uniforms } = this.#inputs;
    for (let slot = 0; slot < count; slot++) {
      const row = this.#rows[slot];
      uniforms[slot] = row && row.temperature > 0 ? row.uniform() : -1;
      if (row) continue;
      last[slot] = 0; // a token is computed for an empty slot, too, and overwrites what was there
      this.#holds[slot] = undefined;
    }
    const { binding, drawn } = await this.#step(samplingOf(active), count);
    await binding.run();
    for (const [slot, row] of active) {
      tokens[slot] = drawn[slot]!;
      last[slot]!++;
      row.tokens.push(drawn[slot]!);
      row.logProbs.push(Math.log(drawn[count + slot]!));
    }
    return active;
  }

  /** The slot's row has ended. It keeps its prompt for a row that is admitted before the next step. */
  free(slot: number): void {
    this.#rows[slot] = undefined;
  }

  /** Frees the slots of rows that nobody wants any more. */
  drop(unwanted: (row: R) => boolean): void {
    for (const [slot, row] of this.#rows.entries()) if (row && unwanted(row)) this.free(slot);
  }

  /** What slots have was computed with weights that have changed. */
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

  async #step(sampling: Sampling, count: number): Promise<Step> {
    const key = `${sampling} ${count}`;
    const known = this.#steps.get(key);
    if (known) return known;
    const { session, feeds, positions } = this.#o;
    const decode = await session(sampling);
    const drawn = new Float32Array(2 * count);
    const shapes: Record<string, number[]> = { tokens: [count, 1], inverseTemperatures: [count, 1] };
    const changing = Object.entries(this.#inputs)
      .filter(([name]) => decode.inputNames.includes(name))
      .map(([name, numbers]) => [name, tensor(numbers.subarray(0, count), shapes[name] ?? [count])]);
    const binding = decode.bind(
      { ...feeds, total: tensor(Int32Array.of(positions), []), ...this.#cached(0, count, FROM) },
      { drawn: tensor(drawn, [2, count]), ...this.#cached(0, count, TO) },
      Object.fromEntries(changing),
    );
    this.#steps.set(key, { binding, drawn });
    return { binding, drawn };
  }

  get #slotNumbers(): number {
    return this.#o.positions * tokenNumbers(this.#o.config);
  }

  /** Keys and values of some slots, as the graph calls what it reads or what it writes. */
  #cached(first: number, count: number, names: readonly [string, string]): Feeds {
    const { config, positions, cache } = this.#o;
    const shape = [count, config.keyValueHeads, positions, cachedHeadSize(config)];
    return Object.fromEntries(
      cache.map((part, i) => [`${names[i % 2]}.${i >> 1}`, part.view(first * this.#slotNumbers, shape)]),
    );
  }

  #copied(slot: number, name: string): Feeds {
    const numbers = this.#slotNumbers;
    return Object.fromEntries(this.#o.cache.map((part, i) => [`${name}.${i}`, part.view(slot * numbers, [numbers])]));
  }
}

const FROM = ["keys", "values"] as const;
const TO = ["newKeys", "newValues"] as const;

function samplingOf(active: readonly [number, Row][]): Sampling {
  if (active.every(([, { temperature }]) => temperature === 0)) return "greedy";
  return active.every(([, { temperature, topP }]) => temperature > 0 && topP === 1) ? "all" : "mixed";
}

/** Numbers of a token's keys, or values, in a layer. */
export const tokenNumbers = (config: ModelConfig): number => config.keyValueHeads * cachedHeadSize(config);

/** Copies a slot's part of each layer's keys and values to another: from.N -> to.N */
export function copyGraph({ layers }: ModelConfig, cache: DType): Graph {
  const graph = new Graph("copy_slot");
  for (let part = 0; part < 2 * layers; part++)
    graph.output(`to.${part}`, graph.input(`from.${part}`, cache, ["numbers"]));
  return graph;
}

/** Numbers of the cache in one piece: in this process's memory, or on a device. */
export interface Room {
  view(first: number, shape: readonly number[]): Tensor | DeviceTensor;
  release(): void;
}

/** Zeros. On a device `dtype` may be of half precision. */
export async function room(numbers: number, dtype: DType, onDevice: OnDevice | undefined): Promise<Room> {
  const { bytes } = DTYPES[dtype];
  if (onDevice) {
    const buffer = await onDevice.runtime.allocate(Math.ceil((numbers * bytes) / DTYPES.float32.bytes));
    return {
      view: (first, shape) => buffer.viewOfBytes(first * bytes, dtype, shape),
      release: () => buffer.release(),
    };
  }
  const data = new Float32Array(numbers);
  return {
    view: (first, shape) => tensor(data.subarray(first, first + elementCount(shape)), shape),
    release: () => data.buffer.transfer(0), // garbage collection would take its time
  };
}
