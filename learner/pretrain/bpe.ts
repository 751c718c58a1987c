import { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import type { TokenizerFiles } from "../engine/index.ts";

/** They have the first ids. The first one pads, the last one ends a response. */
const SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] as const;

/**
 * Python file of a policy folder. AutoTokenizer of transformers 5 takes Qwen2's own pre-tokenizer for every qwen2 model, whatever
 * tokenizer.json says, unless `auto_map` of tokenizer_config.json names a class. Without `trust_remote_code` it then reads tokenizer.json
 * as it is; with it, it loads this class, which does the same.
 */
export const TOKENIZER_CODE = {
  name: "tokenization_policy.py",
  text: `from transformers import PreTrainedTokenizerFast


class PolicyTokenizer(PreTrainedTokenizerFast):
    """Reads tokenizer.json as it is."""
`,
};

const CHAT_TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/**
 * Learns a byte-level BPE vocabulary (Sennrich et al. 2016, over bytes as in GPT-2): the most frequent pair of neighbours becomes a token
 * (of equally frequent pairs, the one with the lower ids), until there are `vocabSize` tokens or no pair occurs twice.
 * The configuration needs the file TOKENIZER_CODE beside it.
 * @param vocabSize all tokens: special tokens, the 256 bytes, and merges
 * @param pattern units that merges never cross: a word with the white space before it, so that common code is one token
 */
export function trainBpe(
  texts: Iterable<string>,
  { vocabSize, pattern = "\\s*\\S+" }: { vocabSize: number; pattern?: string },
): TokenizerFiles {
  const tokens = [...SPECIAL_TOKENS, ...byteCharacters()];
  if (vocabSize < tokens.length)
    throw new RangeError(`vocabSize is ${vocabSize}; the bytes and special tokens alone are ${tokens.length}`);
  const untrained = new HuggingFaceTokenizer(tokenizerJson(pattern, tokens, []), {});
  const words = countWords(texts, untrained, tokens);
  const merges = learnMerges(words, tokens, vocabSize);
  return {
    tokenizer: tokenizerJson(pattern, tokens, merges),
    tokenizerConfig: {
      tokenizer_class: "PreTrainedTokenizerFast",
      auto_map: { AutoTokenizer: [null, "tokenization_policy.PolicyTokenizer"] }, // [slow, fast], see TOKENIZER_CODE
      eos_token: SPECIAL_TOKENS[2],
      pad_token: SPECIAL_TOKENS[0],
      clean_up_tokenization_spaces: false,
      model_max_length: 32768,
      chat_template: CHAT_TEMPLATE,
    },
  };
}

interface Word {
  ids: number[];
  readonly count: number;
}

/**
 * Cuts texts into pieces of bytes, with the same pre-tokenizer as the encoder. Special tokens are cut out, because their names would
 * otherwise have two ids.
 */
function countWords(texts: Iterable<string>, tokenizer: HuggingFaceTokenizer, tokens: readonly string[]): Word[] {
  const special = new RegExp(SPECIAL_TOKENS.map((token) => token.replace(/\W/g, "\\$&")).join("|"));
  const counts = new Map<string, number>();
  for (const text of texts) {
    for (const part of text.split(special)) {
      for (const piece of tokenizer.pre_tokenizer!(part)) counts.set(piece, (counts.get(piece) ?? 0) + 1);
    }
  }
  const ids = new Map(tokens.map((token, id) => [token, id]));
  return [...counts].map(([piece, count]) => ({ ids: Array.from(piece, (byte) => ids.get(byte)!), count }));
}

/** Appends tokens until there are `vocabSize`. Returns the merged pairs, in order. */
function learnMerges(words: Word[], tokens: string[], vocabSize: number): [string, string][] {
  const merges: [string, string][] = [];
  const ids = new Map(tokens.map((token, id) => [token, id]));
  const keyOf = (left: number, right: number) => left * vocabSize + right;
  const counts = new Map<number, number>();
  const holders = new Map<number, Set<Word>>(); // only words that contain a merged pair are examined again
  const count = (word: Word, sign: 1 | -1) => {
    for (let i = 1; i < word.ids.length; i++) {
      const key = keyOf(word.ids[i - 1], word.ids[i]);
      const total = (counts.get(key) ?? 0) + sign * word.count;
      if (total > 0) counts.set(key, total);
      else counts.delete(key);
      if (sign < 0) continue;
      if (!holders.has(key)) holders.set(key, new Set());
      holders.get(key)!.add(word);
    }
  };
  for (const word of words) count(word, 1);
  while (tokens.length < vocabSize) {
    let best = -1;
    let most = 1; // a pair that occurs once is not worth a token
    for (const [key, occurrences] of counts) {
      if (occurrences > most || (occurrences === most && best >= 0 && key < best)) [best, most] = [key, occurrences];
    }
    if (best < 0) break;
    const [left, right] = [Math.floor(best / vocabSize), best % vocabSize];
    merges.push([tokens[left], tokens[right]]);
    const token = tokens[left] + tokens[right];
    const id = ids.get(token) ?? tokens.length; // another pair may have made the same token before
    if (id === tokens.length) tokens.push(token);
    ids.set(token, id);
    for (const word of holders.get(best)!) {
      count(word, -1);
      word.ids = merged(word.ids, left, right, id);
      count(word, 1);
    }
    holders.delete(best);
  }
  return merges;
}

function merged(ids: number[], left: number, right: number, id: number): number[] {
  const result: number[] = [];
  for (let i = 0; i < ids.length; i++) {
    if (ids[i] === left && ids[i + 1] === right) {
      result.push(id);
      i++;
    } else result.push(ids[i]);
  }
  return result;
}

/** Returns the character of each byte: printable ones unchanged, the others from U+0100 on (GPT-2's bytes_to_unicode). */
function byteCharacters(): string[] {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    return String.fromCodePoint(printable ? byte : next++);
  });
}

function tokenizerJson(pattern: string, tokens: string[], merges: [string, string][]) {
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: SPECIAL_TOKENS.map((content, id) => ({ id, content, ...flags })),
    normalizer: null,
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false },
        { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges: merges.map((pair) => [...pair]),
    },
  };
}
