/**
 * Makes a Hugging Face folder of a GGUF file, for tests: a Llama model with tied embeddings and a tokenizer of GPT-2's kind; F32, Q8_0 and
 * Q4_1. The formats are from ggml's docs/gguf.md and ggml-common.h; names and the order of rows are from transformers'
 * modeling_gguf_pytorch_utils.py.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { saveWeights } from "../../learner/engine/model/files.ts";
import { elementCount } from "../../learner/engine/model/weights.ts";

type Value = number | boolean | string | Value[];
interface Tensor {
  /** [rows, columns], or [numbers] */
  shape: number[];
  type: number;
  /** bytes from the start of the file */
  offset: number;
}

const NUMBERS: Record<number, (view: DataView, at: number) => [value: number | boolean, bytes: number]> = {
  0: (view, at) => [view.getUint8(at), 1],
  1: (view, at) => [view.getInt8(at), 1],
  2: (view, at) => [view.getUint16(at, true), 2],
  3: (view, at) => [view.getInt16(at, true), 2],
  4: (view, at) => [view.getUint32(at, true), 4],
  5: (view, at) => [view.getInt32(at, true), 4],
  6: (view, at) => [view.getFloat32(at, true), 4],
  7: (view, at) => [view.getUint8(at) !== 0, 1],
  10: (view, at) => [Number(view.getBigUint64(at, true)), 8],
  12: (view, at) => [view.getFloat64(at, true), 8],
};
const [TEXT, LIST] = [8, 9];
const BLOCK = 32;

export function readGguf(file: string) {
  const bytes = readFileSync(file);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  const value = (type: number): Value => {
    if (type === TEXT) {
      const length = value(10) as number;
      at += length;
      return bytes.toString("utf8", at - length, at);
    }
    if (type === LIST) {
      const [of, count] = [value(4) as number, value(10) as number];
      return Array.from({ length: count }, () => value(of));
    }
    const read = NUMBERS[type];
    if (!read) throw new Error(`${file}: a value of type ${type}`);
    const [found, size] = read(view, at);
    at += size;
    return found;
  };
  if (bytes.toString("latin1", 0, 4) !== "GGUF") throw new Error(`${file} is no GGUF file`);
  at = 8;
  const [tensorCount, fieldCount] = [value(10) as number, value(10) as number];
  const fields = new Map<string, Value>();
  for (let i = 0; i < fieldCount; i++) {
    const name = value(TEXT) as string;
    fields.set(name, value(value(4) as number));
  }
  const tensors = new Map<string, Tensor>();
  for (let i = 0; i < tensorCount; i++) {
    const name = value(TEXT) as string;
    const dims = Array.from({ length: value(4) as number }, () => value(10) as number);
    tensors.set(name, { shape: dims.reverse(), type: value(4) as number, offset: value(10) as number });
  }
  const alignment = (fields.get("general.alignment") as number | undefined) ?? 32;
  const start = Math.ceil(at / alignment) * alignment;
  for (const tensor of tensors.values()) tensor.offset += start;
  return { fields, tensors, numbers: (tensor: Tensor) => numbersOf(view, tensor) };
}

/** Returns a tensor's numbers as float32, as gguf's quants.py computes them. */
function numbersOf(view: DataView, { shape, type, offset }: Tensor): Float32Array {
  const numbers = new Float32Array(elementCount(shape));
  const round = Math.fround;
  let at = offset;
  const each: Record<number, (i: number) => void> = {
    0: (i) => {
      for (let j = 0; j < BLOCK; j++, at += 4) numbers[i + j] = view.getFloat32(at, true);
    },
    3: (i) => {
      const [scale, least] = [view.getFloat16(at, true), view.getFloat16(at + 2, true)];
      for (let j = 0; j < BLOCK / 2; j++) {
        const byte = view.getUint8(at + 4 + j);
        numbers[i + j] = round(scale * (byte & 15)) + least;
        numbers[i + j + BLOCK / 2] = round(scale * (byte >> 4)) + least;
      }
      at += 4 + BLOCK / 2;
    },
    8: (i) => {
      const scale = view.getFloat16(at, true);
      for (let j = 0; j < BLOCK; j++) numbers[i + j] = scale * view.getInt8(at + 2 + j);
      at += 2 + BLOCK;
    },
  };
  const read = each[type];
  if (!read || numbers.length % BLOCK !== 0) throw new Error(`a tensor of type ${type} with shape ${shape}`);
  for (let i = 0; i < numbers.length; i += BLOCK) read(i);
  return numbers;
}

const PARTS: Record<string, string> = {
  ...{ attn_norm: "input_layernorm", ffn_norm: "post_attention_layernorm" },
  ...{ attn_q: "self_attn.q_proj", attn_k: "self_attn.k_proj", attn_v: "self_attn.v_proj" },
  ...{ attn_output: "self_attn.o_proj", ffn_gate: "mlp.gate_proj", ffn_up: "mlp.up_proj", ffn_down: "mlp.down_proj" },
};

function nameOf(name: string): string {
  if (name === "token_embd.weight") return "model.embed_tokens.weight";
  if (name === "output_norm.weight") return "model.norm.weight";
  const [, layer, part] = /^blk\.(\d+)\.(\w+)\.weight$/.exec(name) ?? [];
  if (part === undefined || !PARTS[part]) throw new Error(`unknown tensor ${name}`);
  return `model.layers.${layer}.${PARTS[part]}.weight`;
}

/** llama.cpp rotates neighbours and transformers halves of a head: rows 2i and 2i + 1 of a head become its rows i and i + size / 2. */
function unpaired(numbers: Float32Array, [rows, columns]: number[], heads: number): Float32Array {
  const size = rows! / heads;
  const moved = new Float32Array(numbers.length);
  for (let row = 0; row < rows!; row++) {
    const [head, i] = [Math.floor(row / size), row % size];
    const from = head * size + (i < size / 2 ? 2 * i : 2 * (i - size / 2) + 1);
    moved.set(numbers.subarray(from * columns!, (from + 1) * columns!), row * columns!);
  }
  return moved;
}

/** @param dtype of the matrices and vectors that are written */
export function convertGguf(file: string, folder: string, dtype: "BF16" | "F32"): void {
  const { fields, tensors, numbers } = readGguf(file);
  const number = (name: string) => fields.get(name) as number;
  const llama = (name: string) => number(`llama.${name}`);
  const heads: Record<string, number> = {
    attn_q: llama("attention.head_count"),
    attn_k: llama("attention.head_count_kv"),
  };
  const config = {
    ...{ architectures: ["LlamaForCausalLM"], model_type: "llama", vocab_size: llama("vocab_size") },
    ...{ hidden_size: llama("embedding_length"), intermediate_size: llama("feed_forward_length") },
    ...{
      num_hidden_layers: llama("block_count"),
      num_attention_heads: heads.attn_q,
      num_key_value_heads: heads.attn_k,
    },
    ...{ max_position_embeddings: llama("context_length"), rope_theta: llama("rope.freq_base") },
    ...{ rms_norm_eps: llama("attention.layer_norm_rms_epsilon"), hidden_act: "silu", tie_word_embeddings: true },
    torch_dtype: dtype === "BF16" ? "bfloat16" : "float32",
  };
  const [tokens, types] = [fields.get("tokenizer.ggml.tokens"), fields.get("tokenizer.ggml.token_type")] as [
    string[],
    number[],
  ];
  const eos = number("tokenizer.ggml.eos_token_id");
  const plain = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  const isControl = 3;
  const added = tokens.flatMap((content, id) => (types[id] === isControl ? [{ id, content, ...plain }] : []));
  const merges = (fields.get("tokenizer.ggml.merges") as string[]).map((merge) => merge.split(" "));
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
  const json = {
    "config.json": config,
    "generation_config.json": { eos_token_id: eos },
    "tokenizer.json": {
      ...{ version: "1.0", truncation: null, padding: null, added_tokens: added, normalizer: null },
      ...{ pre_tokenizer: byteLevel, post_processor: null, decoder: byteLevel },
      model: {
        type: "BPE",
        unk_token: null,
        fuse_unk: false,
        byte_fallback: false,
        ignore_merges: false,
        vocab,
        merges,
      },
    },
    "tokenizer_config.json": { eos_token: tokens[eos], chat_template: fields.get("tokenizer.chat_template") },
  };
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of Object.entries(json)) writeFileSync(join(folder, name), JSON.stringify(content));
  const sources = [...tensors].map(([name, tensor]) => {
    const count = heads[/\.(attn_[qk])\./.exec(name)?.[1] ?? ""];
    const read = () => (count ? unpaired(numbers(tensor), tensor.shape, count) : numbers(tensor));
    return { name: nameOf(name), shape: tensor.shape, read };
  });
  saveWeights(folder, sources, { dtype });
}
