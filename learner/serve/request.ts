/** From the JSON of `/v1/completions` and `/v1/chat/completions` to a request that the engine can serve, or a refusal. */
import { randomInt } from "node:crypto";
import { type Message, ModelError, type Tokenizer } from "../engine/index.ts";
import { RequestError, refusedField } from "./errors.ts";
import { LIMITS } from "./limits.ts";

export const ENDPOINTS = ["completions", "chat/completions"] as const;
export type Endpoint = (typeof ENDPOINTS)[number];

/** The one model that a server has. */
export interface ServedModel {
  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly vocabSize: number;
  /** tokens of a prompt and its answer at most */
  readonly maxPositions: number;
  /** an answer ends with the first of these */
  readonly eosIds: readonly number[];
  /** when it was loaded, Unix time */
  readonly createdSeconds: number;
}

export interface GenerationRequest {
  readonly endpoint: Endpoint;
  /** token ids, int32 [prompt] each */
  readonly prompts: readonly Int32Array[];
  /** choices of each prompt */
  readonly n: number;
  /** most tokens of an answer; undefined: up to the end of the context */
  readonly maxTokens: number | undefined;
  readonly temperature: number;
  readonly topP: number;
  readonly seed: number;
  readonly stop: readonly string[];
  readonly logProbs: boolean;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

/** As in OpenAI's API, where a completion says nothing of its length. */
const DEFAULT_COMPLETION_TOKENS = 16;
/** Logits that are divided by less exceed float32. */
const LEAST_TEMPERATURE = 0.01;
const MOST_TEMPERATURE = 2;
const MOST_N = 128;

const FIELDS = ["model", "n", "max_tokens", "temperature", "top_p", "seed", "stop", "stream", "stream_options"];
const FIELDS_OF: Record<Endpoint, readonly string[]> = {
  completions: [...FIELDS, "logprobs", "prompt"],
  "chat/completions": [...FIELDS, "logprobs", "messages", "max_completion_tokens"],
};
/** Fields that the engine does not have, with the values at which they change no answer. */
const NEUTRAL: Record<string, readonly unknown[]> = {
  ...{ best_of: [1], echo: [false], suffix: [""], top_logprobs: [0] },
  ...{ logit_bias: [{}], presence_penalty: [0], frequency_penalty: [0] },
  ...{ tools: [[]], tool_choice: ["none", "auto"], parallel_tool_calls: [true, false] },
  ...{ functions: [[]], function_call: ["none", "auto"] },
  ...{ response_format: [{ type: "text" }], modalities: [["text"]] },
};
/** Fields that say nothing about the answer. */
const IDLE = ["user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"];
const ROLES: Record<string, Message["role"]> = {
  ...{ system: "system", user: "user", assistant: "assistant" },
  developer: "system", // OpenAI's newer name
};

type Fields = Readonly<Record<string, unknown>>;

/** @throws RequestError naming the field, its value and the remedy */
export function parseRequest(endpoint: Endpoint, body: unknown, model: ServedModel): GenerationRequest {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new RequestError(400, "the request's body is no JSON object; send one");
  // clients write null for what they leave out
  const fields = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null)) as Fields;
  checkModel(fields.model, model);
  refuseOthers(fields, endpoint);
  const chat = endpoint === "chat/completions";
  const prompts = chat ? [chatPrompt(fields.messages, model)] : completionPrompts(fields.prompt, model);
  const n = numberOf(fields, "n", 1, `a whole number from 1 to ${MOST_N}`, wholeFrom(1, MOST_N));
  if (prompts.length * n > LIMITS.choices)
    throw refusedField(
      "n",
      n,
      `${prompts.length} prompts times n are more than ${LIMITS.choices} choices; ask for fewer`,
    );
  const stream = flagOf(fields, "stream");
  const lengthField = fields.max_completion_tokens === undefined ? "max_tokens" : "max_completion_tokens";
  const anyLength = wholeFrom(1, Number.MAX_SAFE_INTEGER);
  const maxTokens = numberOf(fields, lengthField, undefined, "a whole number of at least 1", anyLength);
  const request = {
    ...{ endpoint, prompts, n, stream, stop: stopWords(fields.stop) },
    maxTokens: maxTokens ?? (chat ? undefined : DEFAULT_COMPLETION_TOKENS),
    temperature: numberOf(
      ...([fields, "temperature", 1] as const),
      `0 for the most probable tokens, or a number from ${LEAST_TEMPERATURE} to ${MOST_TEMPERATURE}`,
      (value) => value === 0 || (value >= LEAST_TEMPERATURE && value <= MOST_TEMPERATURE),
    ),
    topP: numberOf(fields, "top_p", 1, "a number above 0, at most 1", (value) => value > 0 && value <= 1),
    seed: numberOf(fields, "seed", randomInt(2 ** 47), "a whole number", Number.isSafeInteger),
    logProbs: chat ? flagOf(fields, "logprobs") : asksForLogProbs(fields),
    includeUsage: includesUsage(fields, stream),
  };
  checkContext(request, lengthField, model);
  return request;
}

function checkModel(name: unknown, model: ServedModel): void {
  if (name === undefined || name === model.name) return;
  const message = `model is ${JSON.stringify(name)}, which does not exist here; this server has ${model.name}`;
  throw new RequestError(404, message, { param: "model", code: "model_not_found" });
}

function refuseOthers(fields: Fields, endpoint: Endpoint): void {
  for (const [name, value] of Object.entries(fields)) {
    if (FIELDS_OF[endpoint].includes(name) || IDLE.includes(name)) continue;
    const neutral = Object.hasOwn(NEUTRAL, name) ? NEUTRAL[name] : undefined;
    if (neutral?.some((allowed) => JSON.stringify(allowed) === JSON.stringify(value))) continue;
    if (neutral) throw refusedField(name, value, "this server does not support it; leave it out");
    throw refusedField(name, value, `${endpoint} has no such field here; known are ${FIELDS_OF[endpoint].join(", ")}`);
  }
}

function numberOf<Fallback>(
  fields: Fields,
  name: string,
  fallback: Fallback,
  expected: string,
  fits: (value: number) => boolean,
): number | Fallback {
  const value = fields[name];
  if (value === undefined) return fallback;
  if (typeof value === "number" && fits(value)) return value;
  throw refusedField(name, value, `give ${expected}`);
}

const wholeFrom = (least: number, most: number) => (value: number) =>
  Number.isInteger(value) && value >= least && value <= most;

function flagOf(fields: Fields, name: string): boolean {
  const value = fields[name] ?? false;
  if (typeof value === "boolean") return value;
  throw refusedField(name, value, "give true or false");
}

/** OpenAI's `logprobs: 1` asks for the most probable token too; the engine tells of the drawn one alone. */
function asksForLogProbs(fields: Fields): boolean {
  const count = numberOf(
    fields,
    "logprobs",
    undefined,
    "0 or 1: the log-prob of the drawn token is all there is",
    (value) => [0, 1].includes(value),
  );
  return count !== undefined;
}

function includesUsage({ stream_options: options }: Fields, stream: boolean): boolean {
  if (options === undefined) return false;
  if (!stream) throw refusedField("stream_options", options, "it is of a stream; set stream to true");
  const { include_usage: usage = false, include_obfuscation: padded = false, ...others } = Object(options) as Fields;
  if (typeof usage === "boolean" && padded === false && Object.keys(others).length === 0) return usage;
  throw refusedField("stream_options", options, 'give {"include_usage": true} or leave it out');
}

function stopWords(value: unknown = []): string[] {
  const words: unknown[] = Array.isArray(value) ? value : [value];
  const isWord = (word: unknown) =>
    typeof word === "string" && word !== "" && word.length <= LIMITS.stopCharacters && word.isWellFormed();
  if (words.length <= LIMITS.stopWords && words.every(isWord)) return words as string[];
  const word = `of 1 to ${LIMITS.stopCharacters} characters`;
  throw refusedField("stop", value, `give a word ${word}, or a list of at most ${LIMITS.stopWords}`);
}

function completionPrompts(value: unknown, model: ServedModel): Int32Array[] {
  const several = Array.isArray(value) && typeof value[0] !== "number";
  const prompts: unknown[] = several ? value : [value];
  if (prompts.length === 0) throw refusedField("prompt", value, "give at least one prompt");
  return prompts.map((prompt, index) => {
    const name = several ? `prompt[${index}]` : "prompt";
    const tokens = typeof prompt === "string" ? encode(prompt, name, model) : tokenIds(prompt, name, model);
    if (tokens.length === 0) throw refusedField(name, prompt, "begin it with some token");
    return tokens;
  });
}

function encode(text: string, name: string, { tokenizer, maxPositions }: ServedModel): Int32Array {
  // text that is far too long would keep all others waiting while words are made of it
  const least = Math.ceil(text.length / tokenizer.longestToken);
  if (least > maxPositions) throw tooLong(name, `at least ${least} tokens`, maxPositions, "shorten it");
  return tokenizer.encode(text, { addSpecialTokens: true });
}

function tokenIds(prompt: unknown, name: string, { vocabSize }: ServedModel): Int32Array {
  if (!Array.isArray(prompt)) throw refusedField(name, prompt, "give a text, a list of token ids, or a list of these");
  const isToken = wholeFrom(0, vocabSize - 1);
  const wrong = prompt.findIndex((id) => typeof id !== "number" || !isToken(id));
  if (wrong < 0) return Int32Array.from(prompt as number[]);
  throw refusedField(`${name}[${wrong}]`, prompt[wrong], `token ids are whole numbers from 0 to ${vocabSize - 1}`);
}

function chatPrompt(value: unknown, model: ServedModel): Int32Array {
  if (!Array.isArray(value) || value.length === 0) throw refusedField("messages", value, "give a list of messages");
  const messages = value.map(message);
  const characters = messages.reduce((sum, { content }) => sum + content.length, 0);
  const least = Math.ceil(characters / model.tokenizer.longestToken);
  if (least > model.maxPositions)
    throw tooLong("messages", `at least ${least} tokens`, model.maxPositions, "shorten them");
  try {
    return model.tokenizer.encodeChat(messages);
  } catch (cause) {
    if (!(cause instanceof ModelError)) throw cause;
    throw new RequestError(400, `${cause.message}; or give /v1/completions a prompt`, { param: "messages", cause });
  }
}

function message(value: unknown, index: number): Message {
  const name = `messages[${index}]`;
  const { role, content, ...others } = Object(value) as Fields;
  if (typeof role !== "string" || !Object.hasOwn(ROLES, role))
    throw refusedField(`${name}.role`, role, `known are ${Object.keys(ROLES).join(", ")}`);
  // what an answer of this server has beside its content may come back with it
  const other = Object.entries(others).find(([, given]) => given !== null && JSON.stringify(given) !== "[]");
  if (other) throw refusedField(`${name}.${other[0]}`, other[1], "this server does not support it; leave it out");
  return { role: ROLES[role]!, content: textOf(content, `${name}.content`) };
}

/** Several parts are lines of one text, as in vLLM and llama.cpp. */
function textOf(content: unknown, name: string): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content) || content.length === 0) throw refusedField(name, content, "give a text");
  const texts = content.map((part, index) => {
    const { type, text } = Object(part) as Fields;
    if (type === "text" && typeof text === "string") return text;
    throw refusedField(
      `${name}[${index}]`,
      part,
      'give {"type": "text", "text": "..."}; there is nothing but text here',
    );
  });
  return texts.join("\n");
}

function checkContext(
  { prompts, maxTokens }: GenerationRequest,
  lengthField: string,
  { maxPositions }: ServedModel,
): void {
  for (const { length } of prompts) {
    if (length + (maxTokens ?? 1) <= maxPositions) continue;
    const room = maxPositions - length;
    if (room < 1) throw tooLong("the prompt", `${length} tokens`, maxPositions, "shorten it");
    const asked = `${length} tokens and ${lengthField} is ${maxTokens}`;
    throw tooLong("the prompt", asked, maxPositions, `shorten it, or lower ${lengthField} to ${room}`, lengthField);
  }
}

/** "maximum context length" is what clients look for. */
function tooLong(
  what: string,
  has: string,
  positions: number,
  remedy: string,
  param: string | null = null,
): RequestError {
  const message = `This model's maximum context length is ${positions} tokens, but ${what} has ${has}; ${remedy}`;
  return new RequestError(400, message, { param, code: "context_length_exceeded" });
}
