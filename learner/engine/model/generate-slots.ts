/**
 * Rows that are generated side by side, each in a slot of the cache. A row that ends leaves its slot to the next one that waits; no row
 * is moved. A slot keeps its prompt's keys and values until another prompt takes it, so that rows which follow each other with one prompt
 * read it once: a slot that has it is used again, or copied.
 */
import { Graph } from "../graph/graph.ts";
import { type DeviceTensor, DTYPES, elementCount, type Tensor, tensor } from "../graph/tensor.ts";
import type { Binding } from "../runtime/binding.ts";
import type { OnDevice } from "../runtime/runtime.ts";
import type { Session } from "../runtime/session.ts";
import type { ModelConfig } from "./config.ts";
import { cachedHeadSize } from "./generate-graph.ts";

export interface Row {
  /** of its response among all */
  readonly index: number;
  readonly prompt: Int32Array;
  /** equal for equal prompts */
  readonly key: string;
  readonly uniform: () => number;
  readonly tokens: number[];
  readonly logProbs: number[];
}

export type Feeds = Record<string, Tensor | DeviceTensor>;

/** What all slots have in common. */
export interface SlotOptions {
  readonly config: ModelConfig;
  /** that there are at most */
  readonly slots: number;
  /** most tokens of a prompt and its response */
  readonly positions: number;
  readonly cache: "float32" | "bfloat16";
  /** weights and positions */
  readonly feeds: Feeds;
  /** of sampling */
  readonly scalars: Readonly<Record<string, Tensor>>;
  readonly onDevice: OnDevice | undefined;
  readonly decode: Session;
  readonly prefill: Session;
  readonly copy: Session;
}

/** Attention scores of a layer in one run, numbers. A prompt that has more goes by blocks of so many tokens that a block has no more, */
const SCORES = 1 << 23;
/** but of no less than this. */
const LEAST_BLOCK = 256;
/** A product of a single row is summed in another order than one of several: a row alone would have other log-probs than among others. */
const LEAST_SLOTS = 2;

/** float32 or bfloat16 numbers in one piece. */
interface Room {
  view(first: number, shape: readonly number[]): Tensor | DeviceTensor;
  release(): void;
}

export class Slots {
  readonly #options: SlotOptions;
  readonly #rows: (Row | undefined)[];
  /** keys of the prompts that slots have */
  readonly #holds: (string | undefined)[];
  /** keys, then values, of each layer */
  readonly #parts: Room[] = [];
  /** of the first so many slots, and what is drawn for them: tokens, then probabilities */
  readonly #bindings = new Map<number, { binding: Binding; drawn: Float32Array }>();
  readonly #tokens: Int32Array;
  readonly #last: Int32Array;
  readonly #uniforms: Float32Array;

  private constructor(options: SlotOptions) {
    const slots = Math.max(LEAST_SLOTS, options.slots);
    this.#options = options;
    this.#rows = new Array(slots).fill(undefined);
    this.#holds = new Array(slots).fill(undefined);
    [this.#tokens, this.#last, this.#uniforms] = [
      new Int32Array(slots),
      new Int32Array(slots),
      new Float32Array(slots),
    ];
  }

  static async create(options: SlotOptions): Promise<Slots> {
    const made = new Slots(options);
    const numbers = made.#rows.length * made.#slotNumbers;
    try {
      for (let part = 0; part < 2 * options.config.layers; part++)
        made.#parts.push(await room(numbers, options.cache, options.onDevice));
    } catch (cause) {
      made.release(); // a device is full: there is room again for others
      throw cause;
    }
    return made;
  }

  get empty(): boolean {
    return this.#rows.every((row) => row === undefined);
  }

  /** Takes rows from the front of `waiting`, as many as there are free slots. Equal prompts must follow each other. */
  async admit(waiting: Row[]): Promise<void> {
    const free = [...this.#rows.keys()].filter((slot) => this.#rows[slot] === undefined);
    const rows = waiting.splice(0, free.length);
    const without: Row[] = [];
    for (const row of rows) {
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
      else if (source !== slot) await this.#options.copy.run(this.#copied(source, "from"), this.#copied(slot, "to"));
    }
  }

  /** One more token for each row. Returns the rows by their slots, which they leave by `free`. */
  async step(): Promise<[slot: number, row: Row][]> {
    const active = [...this.#rows.entries()].filter((entry): entry is [number, Row] => entry[1] !== undefined);
    const count = Math.max(LEAST_SLOTS, active.at(-1)![0] + 1);
    for (let slot = 0; slot < count; slot++) {
      this.#uniforms[slot] = this.#rows[slot]?.uniform() ?? 0;
      if (this.#rows[slot] !== undefined) continue;
      this.#last[slot] = 0; // a token is computed for an empty slot, too, and overwrites what was there
      this.#holds[slot] = undefined;
    }
    const { binding, drawn } = this.#binding(count);
    await binding.run();
    for (const [slot, row] of active) {
      this.#tokens[slot] = drawn[slot]!;
      this.#last[slot]!++;
      row.tokens.push(drawn[slot]!);
      row.logProbs.push(Math.log(drawn[count + slot]!));
    }
    return active;
  }

  /** The slot's row has ended. It keeps its prompt for a row that is admitted before the next step. */
  free(slot: number): void {
    this.#rows[slot] = undefined;
  }

  release(): void {
    for (const { binding } of this.#bindings.values()) binding.release();
    for (const part of this.#parts) part.release();
  }

  #place(row: Row, slot: number): void {
    this.#rows[slot] = row;
    this.#holds[slot] = row.key;
    this.#tokens[slot] = row.prompt.at(-1)!;
    this.#last[slot] = row.prompt.length - 1;
  }

  /** All tokens of a prompt but its last, which is the first to be decoded. */
  async #read(prompt: Int32Array, slot: number): Promise<void> {
    const { config, feeds, prefill } = this.#options;
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

  #binding(count: number): { binding: Binding; drawn: Float32Array } {
    const known = this.#bindings.get(count);
    if (known) return known;
    const { decode, feeds, scalars, positions } = this.#options;
    const drawn = new Float32Array(2 * count);
    const binding = decode.bind(
      { ...feeds, total: tensor(Int32Array.of(positions), []), ...this.#cached(0, count, FROM) },
      { drawn: tensor(drawn, [2, count]), ...this.#cached(0, count, TO) },
      {
        ...scalars,
        tokens: tensor(this.#tokens.subarray(0, count), [count, 1]),
        last: tensor(this.#last.subarray(0, count)),
        uniforms: tensor(this.#uniforms.subarray(0, count)),
      },
    );
    this.#bindings.set(count, { binding, drawn });
    return { binding, drawn };
  }

  get #slotNumbers(): number {
    const { config, positions } = this.#options;
    return config.keyValueHeads * positions * cachedHeadSize(config);
  }

  /** Keys and values of some slots, as the graph calls what it reads or what it writes. */
  #cached(first: number, count: number, names: readonly [string, string]): Feeds {
    const { config, positions } = this.#options;
    const shape = [count, config.keyValueHeads, positions, cachedHeadSize(config)];
    return Object.fromEntries(
      this.#parts.map((part, i) => [`${names[i % 2]}.${i >> 1}`, part.view(first * this.#slotNumbers, shape)]),
    );
  }

  #copied(slot: number, name: string): Feeds {
    const numbers = this.#slotNumbers;
    return Object.fromEntries(this.#parts.map((part, i) => [`${name}.${i}`, part.view(slot * numbers, [numbers])]));
  }
}

const FROM = ["keys", "values"] as const;
const TO = ["newKeys", "newValues"] as const;

/** Copies a slot's part of each layer's keys and values to another: from.N -> to.N */
export function copyGraph({ layers }: ModelConfig, cache: SlotOptions["cache"]): Graph {
  const graph = new Graph("copy_slot");
  for (let part = 0; part < 2 * layers; part++)
    graph.output(`to.${part}`, graph.input(`from.${part}`, cache, ["numbers"]));
  return graph;
}

/** Zeros: in this process's memory, or on a device. */
async function room(numbers: number, dtype: SlotOptions["cache"], onDevice: OnDevice | undefined): Promise<Room> {
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
