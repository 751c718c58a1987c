/** Writes GGUF files for tests: version 3, every field a text or a uint32. */
import fs from "node:fs";
import path from "node:path";
import { policyFolder } from "../../../crds/policy.ts";
import { parseConfig } from "./config.ts";
import { createModelFolder, readTokenizer } from "./folder.ts";
import { initialWeights, parameters } from "./weights.ts";

export interface FixtureTensor {
  name: string;
  shape: readonly number[];
  /** ggml's type, and the tensor's bytes. */
  type: number;
  bytes: Uint8Array;
}

const ALIGNMENT = 32;

export function writeGguf(
  file: string,
  fields: Record<string, string | number>,
  tensors: readonly FixtureTensor[],
): void {
  const uint32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer);
  const uint64 = (value: number) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
  const text = (value: string) => Buffer.concat([uint64(Buffer.byteLength(value)), Buffer.from(value)]);
  const padded = (bytes: Uint8Array) => Buffer.concat([bytes, Buffer.alloc(-bytes.length & (ALIGNMENT - 1))]);
  const parts = [Buffer.from("GGUF"), uint32(3), uint64(tensors.length), uint64(Object.keys(fields).length)];
  for (const [name, value] of Object.entries(fields))
    parts.push(text(name), ...(typeof value === "string" ? [uint32(8), text(value)] : [uint32(4), uint32(value)]));
  let offset = 0;
  for (const { name, shape, type, bytes } of tensors) {
    const dimensions = [...shape].reverse().map(uint64);
    parts.push(text(name), uint32(shape.length), ...dimensions, uint32(type), uint64(offset));
    offset += padded(bytes).length;
  }
  fs.writeFileSync(file, Buffer.concat([padded(Buffer.concat(parts)), ...tensors.map(({ bytes }) => padded(bytes))]));
}

const tokenizer = readTokenizer(policyFolder("quickstart", "", ""));
/** Models with grouped queries; llama has biases, qwen3 has norms of queries and keys. */
const configs = Object.fromEntries(
  (["llama", "qwen3"] as const).map((modelType) => [
    modelType,
    parseConfig({
      ...{ model_type: modelType, vocab_size: 2048, hidden_size: 16, intermediate_size: 24, num_hidden_layers: 2 },
      ...{ num_attention_heads: 4, num_key_value_heads: 2, head_dim: 8, tie_word_embeddings: modelType === "llama" },
      attention_bias: modelType === "llama",
    }),
  ]),
);

/** Their names, and the order of rows in queries and keys of llama: row i and i + size / 2 of a head become rows 2i and 2i + 1. */
const NAMES: readonly (readonly [ours: RegExp, theirs: string])[] = [
  ...([
    [/model\.embed_tokens/, "token_embd"],
    [/model\.norm/, "output_norm"],
    [/lm_head/, "output"],
  ] as const),
  ...([
    [/model\.layers\.(\d+)\./, "blk.$1."],
    [/input_layernorm/, "attn_norm"],
    [/post_attention_layernorm/, "ffn_norm"],
  ] as const),
  ...([
    [/self_attn\.o_proj/, "attn_output"],
    [/self_attn\.(.)_proj/, "attn_$1"],
    [/self_attn\.(.)_norm/, "attn_$1_norm"],
  ] as const),
  [/mlp\.(.*)_proj/, "ffn_$1"],
];

/** Writes a fixture's weights as llama.cpp does, in float32, and a folder with its config.json and a tokenizer. */
export function writeGgufModel(
  directory: string,
  name: string,
  change: (tensors: FixtureTensor[]) => FixtureTensor[] = (tensors) => tensors,
) {
  const config = configs[name]!;
  const heads: Record<string, number> = { q: config.heads, k: config.keyValueHeads };
  const weights = [...initialWeights(config, 0)].map(([ours, data], i) => [ours, data.map((x) => x + i)] as const);
  const tensors = weights.map(([ours, data]): FixtureTensor => {
    const { shape } = parameters(config).find((each) => each.name === ours)!;
    const count = name === "llama" ? heads[/self_attn\.([qk])_proj/.exec(ours)?.[1] ?? ""] : undefined;
    const numbers = count === undefined ? data : paired(data, shape, count);
    const theirs = NAMES.reduce((text, [from, to]) => text.replace(from, to), ours);
    return { name: theirs, shape, type: 0, bytes: new Uint8Array(numbers.slice().buffer) };
  });
  const folder = path.join(directory, `${name}-surroundings`);
  createModelFolder(folder, { config, weights: new Map(weights), tokenizer: tokenizer.files, eosIds: [0] });
  const file = path.join(directory, `${name}.gguf`);
  writeGguf(file, { "general.architecture": name }, change(tensors));
  return { file, folder, config, weights: new Map(weights) };
}

function paired(data: Float32Array, shape: readonly number[], heads: number): Float32Array {
  const columns = shape.length === 1 ? 1 : shape[1]!;
  const size = shape[0]! / heads;
  const moved = new Float32Array(data.length);
  for (let head = 0; head < heads; head++)
    for (let i = 0; i < size / 2; i++)
      for (const [half, to] of [
        [0, 2 * i],
        [1, 2 * i + 1],
      ] as const) {
        const from = head * size + i + (half * size) / 2;
        moved.set(data.subarray(from * columns, (from + 1) * columns), (head * size + to) * columns);
      }
  return moved;
}
