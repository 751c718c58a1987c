/** Parses the JSON of `/v1/completions` and `/v1/chat/completions` into a request that the engine can serve, or refuses it. */
import { brief, type Fields, RequestError, refusedField } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import type { ServedModel } from "./model.ts";
import { chatMessages, checkContext, completionPrompts, tokenized } from "./prompts.ts";

export const ENDPOINTS = ["completions", "chat/completions"] as const;
export type Endpoint = (typeof ENDPOINTS)[number];

export interface GenerationRequest {
  readonly endpoint: Endpoint;
  /** Token ids, int32 [prompt] each. */
  readonly prompts: readonly Int32Array[];
  /** Number of choices for each prompt. */
  readonly n: number;
  /** Most tokens of an answer; undefined: up to the end of the context. */
  readonly maxTokens: number | undefined;
  readonly temperature: number;
  readonly topP: number;
  /** undefined: each choice is drawn at random. */
  readonly seed: number | undefined;
  readonly stop: readonly string[];
  readonly logProbs: boolean;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

/** OpenAI's default for completions without a length. */
const DEFAULT_COMPLETION_TOKENS = 16;
/** Dividing logits by a smaller number could exceed float32. */
const LEAST_TEMPERATURE = 0.01;
const MOST_TEMPERATURE = 2;
const MOST_N = 128;

const FIELDS = [
  "model",
  "n",
  "max_tokens",
  "temperature",
  "top_p",
  "seed",
  "stop",
  "stream",
  "stream_options",
  "logprobs",
];
const FIELDS_OF: Record<Endpoint, readonly string[]> = {
  completions: [...FIELDS, "prompt", "add_special_tokens"],
  "chat/completions": [...FIELDS, "messages", "max_completion_tokens"],
};
/** Fields that the engine does not support, with the values that have no effect. */
const NEUTRAL: Record<string, readonly unknown[]> = {
  best_of: [1],
  echo: [false],
  suffix: [""],
  top_logprobs: [0],
  logit_bias: [{}],
  presence_penalty: [0],
  frequency_penalty: [0],
  tools: [[]],
  tool_choice: ["none", "auto"],
  parallel_tool_calls: [true, false],
  functions: [[]],
  function_call: ["none", "auto"],
  add_special_tokens: [false], // of a chat: the template has them
  response_format: [{ type: "text" }],
  modalities: [["text"]],
};
/** Fields without effect on the answer. */
const IDLE = ["user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"];

/**
 * Checks all fields, then tokenizes the prompts.
 *
 * @param signal ends the work, with its reason
 * @param seconds most time to tokenize
 * @throws RequestError naming the field, its value and the remedy
 */
export async function parseRequest(
  endpoint: Endpoint,
  body: unknown,
  model: ServedModel,
  signal?: AbortSignal,
  seconds = LIMITS.tokenizeSeconds,
): Promise<GenerationRequest> {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new RequestError(400, "the request's body is no JSON object; send one");
  // clients write null for absent fields
  const fields: Fields = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
  checkModel(fields.model, model);
  refuseOthers(fields, endpoint);
  const chat = endpoint === "chat/completions";
  const number = <Fallback>(name: string, fallback: Fallback, expected: string, fits: (value: number) => boolean) =>
    checked(
      fields,
      name,
      fallback,
      `give ${expected}`,
      (value): value is number => typeof value === "number" && fits(value),
    );
  const flag = (name: string, fallback = false) =>
    checked(fields, name, fallback, "give true or false", (value): value is boolean => typeof value === "boolean");

  const given = chat ? [chatMessages(fields.messages, model)] : completionPrompts(fields.prompt, model);
  const n = number("n", 1, `a whole number from 1 to ${MOST_N}`, wholeFrom(1, MOST_N));
  if (given.length * n > LIMITS.choices)
    throw refusedField("n", n, `with ${given.length} prompts ask for at most ${LIMITS.choices} choices in all`);
  const length = fields.max_completion_tokens === undefined ? "max_tokens" : "max_completion_tokens";
  const unsaid = chat ? undefined : DEFAULT_COMPLETION_TOKENS;
  const maxTokens = number(length, unsaid, "a whole number of at least 1", wholeFrom(1, Number.MAX_SAFE_INTEGER));
  const addSpecialTokens = !chat && flag("add_special_tokens", true);
  const stream = flag("stream");
  const temperatures = `0 for the most probable tokens, or a number from ${LEAST_TEMPERATURE} to ${MOST_TEMPERATURE}`;
  const isTemperature = (value: number) => value === 0 || (value >= LEAST_TEMPERATURE && value <= MOST_TEMPERATURE);
  // OpenAI's 1 also requests the most probable token
  const drawn = "0 or 1: the engine tells the log-prob of the drawn token alone";
  const rest = {
    endpoint,
    n,
    maxTokens,
    stream,
    stop: stopWords(fields.stop),
    temperature: number("temperature", 1, temperatures, isTemperature),
    topP: number("top_p", 1, "a number above 0, at most 1", (value) => value > 0 && value <= 1),
    seed: number("seed", undefined, "a whole number", Number.isSafeInteger),
    logProbs: chat ? flag("logprobs") : number("logprobs", undefined, drawn, wholeFrom(0, 1)) !== undefined,
    includeUsage: includesUsage(fields.stream_options, stream),
  };
  const check = (tokens: number) => checkContext(tokens, maxTokens, length, model);
  return { ...rest, prompts: await tokenized(given, model, { addSpecialTokens, seconds, signal, check }) };
}

function checkModel(name: unknown, model: ServedModel): void {
  if (name === undefined || name === model.name) return;
  const message = `model is ${brief(name)}, which does not exist here; this server has ${model.name}`;
  throw new RequestError(404, message, { param: "model", code: "model_not_found" });
}

function refuseOthers(fields: Fields, endpoint: Endpoint): void {
  const known = FIELDS_OF[endpoint];
  for (const [name, value] of Object.entries(fields)) {
    if (known.includes(name) || IDLE.includes(name)) continue;
    if (!Object.hasOwn(NEUTRAL, name))
      throw refusedField(name, value, `${endpoint} has no such field here; known are ${known.join(", ")}`);
    if (!NEUTRAL[name]!.some((allowed) => JSON.stringify(allowed) === JSON.stringify(value)))
      throw refusedField(name, value, "this server does not support it; leave it out");
  }
}

function checked<Value, Fallback>(
  fields: Fields,
  name: string,
  fallback: Fallback,
  remedy: string,
  fits: (value: unknown) => value is Value,
): Value | Fallback {
  const value = fields[name];
  if (value === undefined) return fallback;
  if (fits(value)) return value;
  throw refusedField(name, value, remedy);
}

const wholeFrom = (least: number, most: number) => (value: number) =>
  Number.isInteger(value) && value >= least && value <= most;

function includesUsage(options: unknown, stream: boolean): boolean {
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
