import { Template } from "@huggingface/jinja";
import { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import { ModelError } from "./errors.ts";

type Json = Record<string, unknown>;

export interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** The files that describe a tokenizer, parsed. */
export interface TokenizerFiles {
  readonly tokenizer: Json; // tokenizer.json
  readonly tokenizerConfig: Json; // tokenizer_config.json
  /** chat_template.jinja, where newer model folders keep what older ones have in tokenizer_config.json */
  readonly chatTemplate?: string;
}

/** Text to token ids and back, and chats to text, with the results of Python's `tokenizers` and `transformers`. */
export class Tokenizer {
  readonly files: TokenizerFiles;
  /** one more than the largest id; a model's vocabulary may be padded beyond it */
  readonly size: number;
  readonly #tokenizer: HuggingFaceTokenizer;
  readonly #template: Template | undefined;
  readonly #variables: Json;

  /** @throws ModelError `tokenizer` naming the file that cannot be used */
  constructor(files: TokenizerFiles, source = "the model folder") {
    this.files = files;
    try {
      this.#tokenizer = new HuggingFaceTokenizer(files.tokenizer, files.tokenizerConfig);
      this.size = this.#tokenizer.model!.vocab.length;
    } catch (cause) {
      const reason = (cause as Error).message;
      throw new ModelError("tokenizer", `cannot use tokenizer.json of ${source}: ${reason}`, { cause });
    }
    const template = files.chatTemplate ?? defaultTemplate(files.tokenizerConfig.chat_template);
    try {
      this.#template = template === undefined ? undefined : new Template(template);
    } catch (cause) {
      const reason = (cause as Error).message;
      throw new ModelError("tokenizer", `cannot parse the chat template of ${source}: ${reason}`, { cause });
    }
    this.#variables = {};
    for (const name of ["bos_token", "eos_token", "pad_token", "unk_token"]) {
      const content = tokenText(files.tokenizerConfig[name]);
      if (content !== undefined) this.#variables[name] = content;
    }
  }

  /** Special tokens in the text become their ids; none are added. */
  encode(text: string): Int32Array {
    return Int32Array.from(this.#tokenizer.encode(text, { add_special_tokens: false }).ids);
  }

  /** Bytes that are no UTF-8 become U+FFFD. */
  decode(ids: ArrayLike<number>, { skipSpecialTokens = true } = {}): string {
    if (ids.length === 0) return ""; // the library refuses it
    return this.#tokenizer.decode(Array.from(ids), {
      skip_special_tokens: skipSpecialTokens,
      clean_up_tokenization_spaces: this.files.tokenizerConfig.clean_up_tokenization_spaces === true,
    });
  }

  /** The id of a token such as `<|im_end|>`. */
  tokenId(token: string): number | undefined {
    return this.#tokenizer.token_to_id(token);
  }

  /** The eos token of tokenizer_config.json; a model folder may name more, see `folder.ts`. */
  get eosId(): number | undefined {
    const token = this.#variables.eos_token;
    return token === undefined ? undefined : this.tokenId(token as string);
  }

  /** A chat as the text that the model was trained on, up to where the assistant's answer begins. */
  applyChatTemplate(messages: readonly Message[], { addGenerationPrompt = true } = {}): string {
    if (this.#template === undefined) {
      throw new ModelError("tokenizer", "the model has no chat template; add chat_template to tokenizer_config.json");
    }
    try {
      return this.#template.render({
        ...this.#variables,
        messages: messages.map(({ role, content }) => ({ role, content })),
        add_generation_prompt: addGenerationPrompt,
      });
    } catch (cause) {
      throw new ModelError("tokenizer", `the chat template failed: ${(cause as Error).message}`, { cause });
    }
  }

  encodeChat(messages: readonly Message[]): Int32Array {
    return this.encode(this.applyChatTemplate(messages));
  }
}

/** Some models have several templates, of which one is called default. */
function defaultTemplate(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return undefined;
  return (value as { name: string; template: string }[]).find(({ name }) => name === "default")?.template;
}

/** Tokens are written as text or as `{ content }`. */
function tokenText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const content = (value as { content?: unknown } | null | undefined)?.content;
  return typeof content === "string" ? content : undefined;
}
