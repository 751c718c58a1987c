/** Converts texts, token ids and messages to prompts that fit the model's context. */
import type { Message } from "../engine/index.ts";
import type { Encoded, EncodeOptions } from "./encoder.ts";
import { type Fields, RequestError, refusedField } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import type { ServedModel } from "./model.ts";

const ROLES: Record<string, Message["role"]> = {
  system: "system",
  user: "user",
  assistant: "assistant",
  developer: "system", // OpenAI's newer name
};

/** A prompt before it is tokenized. */
export type Prompt = Int32Array | string | readonly Message[];

/** @throws RequestError unless the value is a text, a list of token ids, or a list of these */
export function completionPrompts(value: unknown, model: ServedModel): Prompt[] {
  const several = Array.isArray(value) && typeof value[0] !== "number";
  const prompts: unknown[] = several ? value : [value];
  if (prompts.length === 0) throw refusedField("prompt", value, "give at least one prompt");
  if (prompts.length > LIMITS.choices) {
    const problem = `prompt has ${prompts.length} prompts; give at most ${LIMITS.choices}`;
    throw new RequestError(400, problem, { param: "prompt" });
  }
  return prompts.map((prompt, index) => {
    const name = several ? `prompt[${index}]` : "prompt";
    if (typeof prompt !== "string") return tokenIds(prompt, name, model);
    refuseFarTooLong(prompt, name, model);
    return prompt;
  });
}

/**
 * Returns the token ids of prompts, int32 [prompt] each.
 *
 * @param check refuses a prompt's number of tokens
 * @throws RequestError for a prompt without tokens, for messages that the chat template refuses, and after `seconds`
 */
export async function tokenized(
  prompts: readonly Prompt[],
  model: ServedModel,
  { addSpecialTokens, seconds, signal, check }: TokenizeOptions,
): Promise<Int32Array[]> {
  const all: Int32Array[] = [];
  let milliseconds = seconds * 1000;
  for (const [index, prompt] of prompts.entries()) {
    const encoded = await encodedPrompt(prompt, model, { addSpecialTokens, milliseconds, signal });
    milliseconds -= encoded.milliseconds;
    const { tokens } = encoded;
    if (tokens.length === 0) {
      const name = typeof prompt !== "string" ? "messages" : prompts.length > 1 ? `prompt[${index}]` : "prompt";
      throw refusedField(name, prompt, "begin it with some token");
    }
    check(tokens.length);
    all.push(tokens);
  }
  return all;
}

interface TokenizeOptions {
  /** Whether texts get the tokens that tokenizer.json puts around a text. Messages have those of the template. */
  readonly addSpecialTokens: boolean;
  /** The deadline of all prompts together. */
  readonly seconds: number;
  /** Ends the work between two prompts, with the signal's reason. */
  readonly signal: AbortSignal | undefined;
  readonly check: (tokens: number) => void;
}

async function encodedPrompt(prompt: Prompt, model: ServedModel, options: EncodeOptions): Promise<Encoded> {
  if (prompt instanceof Int32Array) return { tokens: prompt, milliseconds: 0 };
  try {
    return await model.encoder.encode(prompt, { ...options, answerPrefix: model.answerPrefix });
  } catch (cause) {
    const { code, message } = cause as Error & { code?: unknown };
    if (cause instanceof RequestError || typeof prompt === "string" || code !== "tokenizer") throw cause;
    throw new RequestError(400, `${message}; or give /v1/completions a prompt`, { param: "messages", cause });
  }
}

function tokenIds(prompt: unknown, name: string, { vocabSize }: ServedModel): Int32Array {
  if (!Array.isArray(prompt)) throw refusedField(name, prompt, "give a text, a list of token ids, or a list of these");
  if (prompt.length === 0) throw refusedField(name, prompt, "begin it with some token");
  const wrong = prompt.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
  if (wrong < 0) return Int32Array.from(prompt as number[]);
  throw refusedField(`${name}[${wrong}]`, prompt[wrong], `token ids are whole numbers from 0 to ${vocabSize - 1}`);
}

/** @throws RequestError unless the value is a list of messages */
export function chatMessages(value: unknown, model: ServedModel): Message[] {
  if (!Array.isArray(value) || value.length === 0) throw refusedField("messages", value, "give a list of messages");
  const messages = value.map(messageOf);
  refuseFarTooLong(messages.map(({ content }) => content).join(""), "messages", model);
  return messages;
}

function messageOf(value: unknown, index: number): Message {
  const name = `messages[${index}]`;
  const { role, content, ...others } = Object(value) as Fields;
  if (typeof role !== "string" || !Object.hasOwn(ROLES, role))
    throw refusedField(`${name}.role`, role, `known are ${Object.keys(ROLES).join(", ")}`);
  // allows clients to send back a message of this server's or OpenAI's answers unchanged
  const other = Object.entries(others).find(([, given]) => given !== null && JSON.stringify(given) !== "[]");
  if (other) throw refusedField(`${name}.${other[0]}`, other[1], "this server does not support it; leave it out");
  return { role: ROLES[role]!, content: textOf(content, `${name}.content`) };
}

/** Joins several parts as lines of one text, like vLLM and llama.cpp. */
function textOf(content: unknown, name: string): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content) || content.length === 0) throw refusedField(name, content, "give a text");
  const texts = content.map((part, index) => {
    const { type, text } = Object(part) as Fields;
    if (type === "text" && typeof text === "string") return text;
    throw refusedField(`${name}[${index}]`, part, 'give {"type": "text", "text": "..."}, the only kind here');
  });
  return texts.join("\n");
}

/** Refuses text that cannot fit, because all clients would wait while it is tokenized. */
function refuseFarTooLong(text: string, name: string, { tokenizer, maxPositions }: ServedModel): void {
  const least = Math.ceil(text.length / tokenizer.longestToken);
  if (least > maxPositions) throw tooLong(maxPositions, `${name} has at least ${least} tokens; shorten it`);
}

/** @param length tokens of a prompt @param lengthField the field of `maxTokens` @throws RequestError `context_length_exceeded` */
export function checkContext(
  length: number,
  maxTokens: number | undefined,
  lengthField: string,
  { maxPositions }: ServedModel,
): void {
  if (length + (maxTokens ?? 1) <= maxPositions) return;
  const room = maxPositions - length;
  if (room < 1) throw tooLong(maxPositions, `the prompt has ${length}; shorten it`);
  const asked = `the prompt has ${length} and ${lengthField} is ${maxTokens}`;
  throw tooLong(maxPositions, `${asked}; shorten the prompt, or lower ${lengthField} to ${room}`, lengthField);
}

/** Clients search the message for "maximum context length". */
function tooLong(positions: number, but: string, param: string | null = null): RequestError {
  const message = `This model's maximum context length is ${positions} tokens, but ${but}`;
  return new RequestError(400, message, { param, code: "context_length_exceeded" });
}
