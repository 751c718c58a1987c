import { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import { ModelError } from "./errors.ts";
import type { Json } from "./json.ts";
import { Template } from "./template/template.ts";

export interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

export interface TokenizerFiles {
  readonly tokenizer: Json; // tokenizer.json
  readonly tokenizerConfig: Json; // tokenizer_config.json
  /** chat_template.jinja, in which newer model folders keep the template that older ones have in tokenizer_config.json */
  readonly chatTemplate?: string;
}

/** Special tokens that a chat template can name, as in transformers. */
const NAMED_TOKENS = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/**
 * Converts text to token ids and back, and chats to text, with the results of Python's `tokenizers` and `transformers`: exactly
 * for Qwen2.5, Qwen3 and Llama 3 (tokenizer.parity.ts), except for scripts whose compositions are newer than Python's.
 */
export class Tokenizer {
  readonly files: TokenizerFiles;
  /** one more than the largest id; a model's vocabulary may be padded beyond it */
  readonly size: number;
  /** characters of the longest token: a text of n times as many characters has at least n tokens */
  readonly longestToken: number;
  readonly #tokenizer: HuggingFaceTokenizer;
  readonly #template: Template | undefined;
  readonly #variables: Json;
  /** The added tokens, special or not, that text of a message must not become. */
  readonly #addedTokens: readonly string[];
  /** What hides these tokens' names in messages while a chat is encoded. */
  #hidden: HiddenNames | undefined;

  /** @throws ModelError `tokenizer` naming the file that cannot be used */
  constructor(files: TokenizerFiles, source = "the model folder") {
    this.files = files;
    refuseUnsupported(files.tokenizer, source);
    try {
      this.#tokenizer = new HuggingFaceTokenizer(files.tokenizer, files.tokenizerConfig);
      cutExactly(this.#tokenizer.pre_tokenizer, files.tokenizer.pre_tokenizer as Json | undefined);
      decodeBytesExactly(this.#tokenizer.decoder);
      const { vocab } = this.#tokenizer.model!;
      this.size = vocab.length;
      this.longestToken = (vocab as string[]).reduce((most, { length }) => Math.max(most, length), 1);
    } catch (cause) {
      throw refusal(`cannot use tokenizer.json of ${source}`, cause);
    }
    this.#separateAddedTokens();
    this.#addedTokens = this.#revealHiddenNames();
    const template = files.chatTemplate ?? defaultTemplate(files.tokenizerConfig.chat_template);
    try {
      this.#template = template === undefined ? undefined : new Template(template);
    } catch (cause) {
      throw refusal(`cannot parse the chat template of ${source}`, cause);
    }
    const named = NAMED_TOKENS.map((name) => [name, tokenText(files.tokenizerConfig[name])]);
    this.#variables = Object.fromEntries(named.filter(([, text]) => text !== undefined));
  }

  /**
   * Special tokens in the text become their ids. A surrogate without its other half becomes U+FFFD.
   * @param addSpecialTokens adds the tokens that tokenizer.json puts around a text, such as Llama 3's at its beginning
   */
  encode(text: string, { addSpecialTokens = false } = {}): Int32Array {
    return Int32Array.from(this.#tokenizer.encode(text, { add_special_tokens: addSpecialTokens }).ids);
  }

  /** Bytes that are no UTF-8 become U+FFFD, also if `ids` end within a character. Unknown ids are left out. */
  decode(ids: ArrayLike<number>, { skipSpecialTokens = true } = {}): string {
    if (ids.length === 0) return ""; // the library refuses it
    return this.#tokenizer.decode(Array.from(ids), {
      skip_special_tokens: skipSpecialTokens,
      // Llama 3's files request it, but it removes spaces from programs; transformers 5 ignores it for BPE too
      clean_up_tokenization_spaces: false,
    });
  }

  tokenId(token: string): number | undefined {
    return this.#tokenizer.token_to_id(token);
  }

  /** The eos token of tokenizer_config.json; a model folder may name more, see `folder.ts`. */
  get eosId(): number | undefined {
    const token = this.#variables.eos_token;
    return token === undefined ? undefined : this.tokenId(token as string);
  }

  get hasChatTemplate(): boolean {
    return this.#template !== undefined;
  }

  /**
   * Returns a chat as the text that the model was trained on, up to the assistant's answer: the result of transformers'
   * `apply_chat_template` without tools.
   *
   * @throws ModelError `tokenizer`, one line, when there is no template or it refuses these messages
   */
  applyChatTemplate(messages: readonly Message[], { addGenerationPrompt = true } = {}): string {
    if (this.#template === undefined) {
      throw new ModelError("tokenizer", "the model has no chat template; add chat_template to tokenizer_config.json");
    }
    // templates read messages[0], which is an error in Python and undefined in our Jinja
    if (messages.length === 0) throw new ModelError("tokenizer", "a chat without messages; give at least one");
    try {
      return this.#template.render({
        ...this.#variables,
        tools: null,
        documents: null,
        add_generation_prompt: addGenerationPrompt,
        messages: messages.map(({ role, content }) => ({ role, content })),
      });
    } catch (cause) {
      const { message, name } = cause as Error;
      const what = message.replace(/\s+/g, " ").trim() || name;
      throw new ModelError("tokenizer", `the chat template failed: ${what}`, { cause });
    }
  }

  /**
   * Returns a chat as token ids [time], up to the assistant's answer. Only the template's own `<|im_start|>`, `<think>` and so on
   * and the ones in the assistant's messages become tokens of that name; in other messages they are text.
   *
   * Each such name in a message is hidden by characters that no message has, which the library turns back before it makes words. Not
   * covered, because no tokenizer of Qwen or Llama has it: a name that arises from a message and the template together, or from the
   * normalizer (`normalized: true`).
   *
   * @param answerPrefix the beginning of the answer. Its tokens follow the template's; names of tokens in it become tokens
   * @throws ModelError `tokenizer` as `applyChatTemplate`
   */
  encodeChat(messages: readonly Message[], answerPrefix = ""): Int32Array {
    const chat = this.#encodeMessages(messages);
    return answerPrefix === "" ? chat : Int32Array.of(...chat, ...this.encode(answerPrefix));
  }

  #encodeMessages(messages: readonly Message[]): Int32Array {
    const text = messages.map(({ content }) => content).join("\n");
    const foreign = messages.filter(({ role }) => role !== "assistant");
    const found = this.#addedTokens.filter((token) => foreign.some(({ content }) => content.includes(token)));
    if (found.length === 0) return this.encode(this.applyChatTemplate(messages));
    const hidden = new HiddenNames(found, text);
    const written = this.applyChatTemplate(
      messages.map((message) =>
        foreign.includes(message) ? { ...message, content: hidden.hide(message.content) } : message,
      ),
    );
    this.#hidden = hidden;
    try {
      return this.encode(written);
    } finally {
      this.#hidden = undefined;
    }
  }

  /** Words become tokens of the model's own vocabulary alone, as in Python; the library would let them become added tokens too. */
  #separateAddedTokens(): void {
    const { vocab } = this.files.tokenizer.model as { vocab?: unknown };
    if (typeof vocab !== "object" || vocab === null || Array.isArray(vocab)) return; // Unigram's list
    for (const { content } of this.#tokenizer.get_added_tokens_decoder().values())
      if (!Object.hasOwn(vocab, content)) this.#tokenizer.model!.tokens_to_ids.delete(content);
  }

  /**
   * Makes the library turn hidden names back after its search for added tokens and before it makes words.
   * @returns the names of the added tokens, except white space, which is text
   */
  #revealHiddenNames(): string[] {
    const added = [...this.#tokenizer.get_added_tokens_decoder().values()].map(({ content }) => content);
    const names = new Set(added.filter((content) => content.trim() !== ""));
    const wordsOf = this.#tokenizer.pre_tokenizer;
    const wordsOfPlain = (text: string, options?: Json): string[] => {
      const plain = this.#hidden?.reveal(text) ?? text;
      const words: string[] = wordsOf ? wordsOf(plain, options) : [plain];
      // With `ignore_merges` a word that is in the vocabulary is that token.
      return this.#hidden ? words.flatMap((word) => (names.has(word) ? [...word] : [word])) : words;
    };
    this.#tokenizer.pre_tokenizer = wordsOfPlain as unknown as typeof wordsOf;
    return [...names];
  }
}

/**
 * Hides names of tokens in text: a mark behind the first character breaks a longer name, and another character replaces a name of a
 * single character.
 */
class HiddenNames {
  readonly #names: readonly string[];
  readonly #mark: string;
  /** The replacement of each name of a single character. */
  readonly #replacements = new Map<string, string>();

  /** @param text all text that is encoded together */
  constructor(names: readonly string[], text: string) {
    this.#names = names;
    const unused = unusedCharacters(text);
    this.#mark = unused.next().value;
    for (const name of names) if ([...name].length === 1) this.#replacements.set(name, unused.next().value);
  }

  /** Returns `text` without any of the names, also if they overlap. */
  hide(text: string): string {
    for (const name of this.#names) {
      const replacement = this.#replacements.get(name);
      const [first] = name;
      if (replacement !== undefined) text = text.replaceAll(name, replacement);
      else while (text.includes(name)) text = text.replaceAll(name, first + this.#mark + name.slice(first!.length));
    }
    return text;
  }

  reveal(text: string): string {
    for (const [name, replacement] of this.#replacements) text = text.replaceAll(replacement, name);
    return text.replaceAll(this.#mark, "");
  }
}

const refusal = (what: string, cause: unknown) =>
  new ModelError("tokenizer", `${what}: ${(cause as Error).message}`, { cause });

/** Characters that `text` does not contain, from the last private-use plane, which fonts and scripts do not use. */
function* unusedCharacters(text: string): Generator<string, never> {
  const used = new Set(text);
  for (let point = 0x100000; ; point++) {
    const character = String.fromCodePoint(point);
    if (!used.has(character)) yield character;
  }
}

/** Some models have several templates, one of them named default. */
function defaultTemplate(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const named = Array.isArray(value) ? (value as ({ name?: unknown; template?: unknown } | null)[]) : [];
  const template = named.find((each) => each?.name === "default")?.template;
  return typeof template === "string" ? template : undefined;
}

/** Tokens are written as text or as `{ content }`. */
function tokenText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const content = (value as { content?: unknown } | null | undefined)?.content;
  return typeof content === "string" ? content : undefined;
}

/** The words of GPT-2. JavaScript's own `\s` has U+FEFF and lacks U+0085. */
const GPT2_WORDS =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

/** Makes the library's ByteLevel, Digits (whose digits are ASCII's alone) and Metaspace (which never splits) cut text as Python does. */
function cutExactly(preTokenizer: unknown, json?: Json): void {
  const part = (preTokenizer ?? {}) as {
    tokenizers?: unknown[];
    config?: Json;
    pattern?: RegExp;
    pre_tokenize_text: (text: string, options?: Json) => string[];
  };
  for (const [i, each] of (part.tokenizers ?? []).entries())
    cutExactly(each, ((json?.pretokenizers ?? []) as Json[])[i]);
  if (part.config?.type === "ByteLevel") part.pattern = GPT2_WORDS;
  if (part.config?.type === "Digits")
    part.pattern = part.config.individual_digits ? /\P{N}+|\p{N}/gu : /\P{N}+|\p{N}+/gu;
  if (json?.type === "Metaspace" && json.split !== false) {
    const whole = part.pre_tokenize_text.bind(part);
    part.pre_tokenize_text = (text, options) => whole(text, options).flatMap((word) => wordsAfter(word, json));
  }
}

/** Python's MergedWithNext: each replacement of a space begins a word. */
function wordsAfter(text: string, { replacement = "▁" }: Json): string[] {
  const parts = text.split(replacement as string);
  return parts.map((part, i) => (i === 0 ? part : `${replacement}${part}`)).filter((word) => word !== "");
}

/** Bytes of `<0x..>` tokens as in Python: U+FEFF stays, and bytes that are no UTF-8 become U+FFFD one by one. */
function decodeBytesExactly(decoder: unknown): void {
  const { decoders = [], text_decoder } = (decoder ?? {}) as { decoders?: unknown[]; text_decoder?: unknown };
  for (const each of decoders) decodeBytesExactly(each);
  if (text_decoder === undefined || (decoder as { config: Json }).config.type !== "ByteFallback") return;
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const decode = (bytes: Uint8Array) => {
    try {
      return strict.decode(bytes);
    } catch {
      return "\ufffd".repeat(bytes.length);
    }
  };
  Object.assign(decoder as object, { text_decoder: { decode } });
}

/** Pre-tokenizers that cut as Python does. Others are of encoders such as BERT. */
const EXACT = ["Sequence", "Split", "ByteLevel", "Digits", "Punctuation", "Metaspace"];

/** Refuses settings that would silently give other token ids than Python's tokenizers. */
function refuseUnsupported({ model, added_tokens, pre_tokenizer }: Json, source: string): void {
  const refuse = (field: string, value: unknown) => {
    throw new ModelError("tokenizer", `tokenizer.json of ${source}: ${field} is ${value}, which is not supported`);
  };
  const refusePart = (part: Json | null | undefined): void => {
    const { type, behavior, pretokenizers } = part ?? {};
    if (type !== undefined && !EXACT.includes(type as string)) refuse("a pre_tokenizer", type);
    if (type === "Split" && !["Isolated", "Removed"].includes(behavior as string))
      refuse("behavior of the pre_tokenizer Split", behavior);
    if (Array.isArray(pretokenizers)) for (const each of pretokenizers as Json[]) refusePart(each);
  };
  refusePart(pre_tokenizer as Json | null | undefined);
  const dropout = (model as Json | undefined)?.dropout ?? 0;
  if (dropout !== 0) refuse("model.dropout", dropout);
  const vocab = ((model as Json | undefined)?.vocab ?? {}) as Json;
  for (const token of Array.isArray(added_tokens) ? (added_tokens as Json[]) : []) {
    const name = JSON.stringify(token?.content);
    if (token?.single_word === true) refuse(`single_word of the added token ${name}`, true);
    const { content, id } = token ?? {};
    const inVocab = Object.hasOwn(vocab, content as string) ? vocab[content as string] : id;
    // Python would use the vocabulary's id.
    if (inVocab !== id) refuse(`the id of the added token ${name}`, `${id} but ${inVocab} in the vocabulary`);
  }
}
