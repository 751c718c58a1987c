import { type DeviceTensor, elementCount, type Tensor, tensor } from "../graph/tensor.ts";
import type { Numbers, OnDevice } from "../runtime/numbers.ts";
import type { ModelConfig } from "./config.ts";

/** A row of the batch while it is being generated. */
export interface Row {
  readonly prompt: Prompt;
  readonly uniform: () => number;
  readonly tokens: number[];
  readonly logProbs: number[];
  finished: boolean;
  last: number;
}

/** A distinct prompt and where its keys and values are (of all tokens but the last, which is the first to be decoded). */
export interface Prompt {
  readonly tokens: Int32Array;
  /** per layer keys, values, each [prompts, head, length, headSize], padded on the left; `index` is this prompt's */
  cache: { parts: readonly Float32Array[]; index: number; length: number } | undefined;
}

/** Rows laid out as [slots, group]; a hole is undefined. All rows of a slot have the same prompt. */
export interface Layout {
  readonly group: number;
  readonly slots: (Row | undefined)[][];
  readonly promptLength: number;
}

/**
 * Keys and values of a layout: its slots' prompts, and what its rows have generated. On a device they stay there from run to
 * run; rows are moved in this process's memory.
 */
export class Cache {
  readonly #config: ModelConfig;
  readonly #prompt: readonly Numbers[]; // per layer keys, values, each [slot, head, prompt, headSize]
  #prompts: readonly Prompt[] = []; // by slot
  #promptLength = 0;
  #past: readonly Numbers[]; // per layer keys, values, each [slot, head, group, past, headSize]
  #next: readonly Numbers[];

  /**
   * @param tokens most that will be generated, of all rows together
   * @param numbers where the sessions run; default: here
   */
  constructor(config: ModelConfig, tokens: number, numbers: OnDevice["numbers"] = () => new HostNumbers()) {
    this.#config = config;
    const parts = (capacity?: number) => Array.from({ length: 2 * config.layers }, () => numbers(capacity));
    this.#prompt = parts();
    const capacity = tokens * config.keyValueHeads * config.headSize;
    [this.#past, this.#next] = [parts(capacity), parts(capacity)];
  }

  feeds({ group, slots, promptLength }: Layout, past: number): Record<string, Tensor | DeviceTensor> {
    const { layers, keyValueHeads, headSize } = this.#config;
    const feeds: Record<string, Tensor | DeviceTensor> = {};
    const shape = [slots.length * keyValueHeads * group, 1, past, headSize];
    const heads = group === 1 ? [slots.length * keyValueHeads, 1] : [slots.length, keyValueHeads];
    const promptShape = [...heads, promptLength, headSize];
    for (let layer = 0; layer < layers; layer++) {
      feeds[`promptKeys.${layer}`] = this.#prompt[2 * layer].tensor(promptShape);
      feeds[`promptValues.${layer}`] = this.#prompt[2 * layer + 1].tensor(promptShape);
      feeds[`pastKeys.${layer}`] = this.#past[2 * layer].tensor(shape);
      feeds[`pastValues.${layer}`] = this.#past[2 * layer + 1].tensor(shape);
    }
    return feeds;
  }

  /** What the next run writes the longer past into. */
  targets({ group, slots }: Layout, past: number): Record<string, Tensor | DeviceTensor> {
    const { layers, keyValueHeads, headSize } = this.#config;
    const shape = [slots.length * keyValueHeads * group, 1, past, headSize];
    const targets: Record<string, Tensor | DeviceTensor> = {};
    for (let layer = 0; layer < layers; layer++) {
      targets[`keys.${layer}`] = this.#next[2 * layer].tensor(shape);
      targets[`values.${layer}`] = this.#next[2 * layer + 1].tensor(shape);
    }
    return targets;
  }

  swap(): void {
    [this.#past, this.#next] = [this.#next, this.#past];
  }

  /** Moves rows from one layout to another. */
  async arrange(from: Layout | undefined, to: Layout, past: number): Promise<void> {
    await this.#arrangePrompts(to);
    const { layers, keyValueHeads, headSize } = this.#config;
    const block = past * headSize;
    const places = new Map<Row, [slot: number, member: number]>();
    for (const [slot, members] of from?.slots.entries() ?? []) {
      for (const [member, row] of members.entries()) if (row !== undefined) places.set(row, [slot, member]);
    }
    const before = (from?.slots.length ?? 0) * keyValueHeads * (from?.group ?? 0) * block;
    for (let part = 0; part < 2 * layers; part++) {
      const read = await this.#past[part].read(before);
      const target = this.#next[part].scratch(to.slots.length * keyValueHeads * to.group * block);
      for (const [slot, members] of to.slots.entries()) {
        for (const [member, row] of members.entries()) {
          const place = row && places.get(row);
          for (let head = 0; head < keyValueHeads; head++) {
            const at = ((slot * keyValueHeads + head) * to.group + member) * block;
            if (place === undefined)
              target.fill(0, at, at + block); // a hole must hold something finite
            else {
              const source = ((place[0] * keyValueHeads + head) * from!.group + place[1]) * block;
              target.set(read.subarray(source, source + block), at);
            }
          }
        }
      }
      await this.#next[part].set(target);
    }
    this.swap();
  }

  release(): void {
    for (const parts of [this.#prompt, this.#past, this.#next]) for (const numbers of parts) numbers.release();
    for (const prompt of this.#prompts) {
      for (const part of prompt.cache?.parts ?? []) {
        const buffer = part.buffer as ArrayBuffer;
        if (!buffer.detached) buffer.transfer(0); // garbage collection would take its time
      }
      prompt.cache = undefined;
    }
  }

  /** One block per slot, however many rows share it. Where a block came from is freed, part by part: there are no two copies. */
  async #arrangePrompts({ slots, promptLength }: Layout): Promise<void> {
    const prompts = slots.map((members) => members[0]!.prompt);
    const same = prompts.length === this.#prompts.length && prompts.every((prompt, i) => prompt === this.#prompts[i]);
    if (same && promptLength === this.#promptLength) return;
    const { layers, keyValueHeads, headSize } = this.#config;
    const size = keyValueHeads * headSize * promptLength;
    const arranged: Float32Array[] = [];
    for (let part = 0; part < 2 * layers; part++) {
      const target = new Float32Array(prompts.length * size);
      const read = new Set<ArrayBufferLike>();
      for (const [slot, { tokens, cache }] of prompts.entries()) {
        if (cache === undefined) continue; // a prompt of one token has nothing before it
        const source = cache.parts[part];
        const length = tokens.length - 1;
        for (let head = 0; head < keyValueHeads; head++) {
          const end = (cache.index * keyValueHeads + head + 1) * cache.length * headSize;
          const at = slot * size + ((head + 1) * promptLength - length) * headSize;
          target.set(source.subarray(end - length * headSize, end), at);
        }
        read.add(source.buffer);
      }
      for (const buffer of read) (buffer as ArrayBuffer).transfer(0); // garbage collection would take its time
      arranged.push(target);
      await this.#prompt[part].set(target);
    }
    for (const prompt of this.#prompts) prompt.cache = undefined;
    for (const [index, prompt] of prompts.entries())
      if (prompt.tokens.length > 1) prompt.cache = { parts: arranged, index, length: promptLength };
    this.#prompts = prompts;
    this.#promptLength = promptLength;
  }
}

/** Numbers in this process's memory. */
class HostNumbers implements Numbers {
  #data: Float32Array = new Float32Array();

  tensor(shape: readonly number[]): Tensor {
    this.#data = this.scratch(elementCount(shape));
    return tensor(this.#data, shape);
  }

  async read(length: number): Promise<Float32Array> {
    return this.#data.subarray(0, length);
  }

  /** A view of the same memory where it suffices, with room to grow where it does not. */
  scratch(length: number): Float32Array {
    const { buffer } = this.#data;
    if (buffer.byteLength >= length * 4) return new Float32Array(buffer, 0, length);
    return new Float32Array(new ArrayBuffer(length * 8), 0, length);
  }

  async set(numbers: Float32Array): Promise<void> {
    this.#data = numbers;
  }

  release(): void {
    this.#data = new Float32Array();
  }
}
