/**
 * Makes config.json and tokenizer of a GGUF file's own fields, for tests: a Llama model with tied embeddings and a tokenizer of GPT-2's kind,
 * whose pattern is known here.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readGguf } from "../../learner/engine/model/gguf.ts";

/** @param folder is made, without weights */
export function writeSurroundings(file: string, folder: string): void {
  const { fields } = readGguf(file);
  const number = (name: string) => fields.get(name) as number;
  const llama = (name: string) => number(`llama.${name}`);
  const config = {
    ...{ architectures: ["LlamaForCausalLM"], model_type: "llama", vocab_size: llama("vocab_size") },
    ...{ hidden_size: llama("embedding_length"), intermediate_size: llama("feed_forward_length") },
    ...{
      num_hidden_layers: llama("block_count"),
      num_attention_heads: llama("attention.head_count"),
      num_key_value_heads: llama("attention.head_count_kv"),
    },
    ...{ max_position_embeddings: llama("context_length"), rope_theta: llama("rope.freq_base") },
    ...{ rms_norm_eps: llama("attention.layer_norm_rms_epsilon"), hidden_act: "silu", tie_word_embeddings: true },
    torch_dtype: "bfloat16",
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
}
