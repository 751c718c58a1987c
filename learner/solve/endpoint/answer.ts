/** Reads what an OpenAI-compatible API answers. Pure. */
import { EndpointError, PassingFault } from "./errors.ts";

export interface Answer {
  text: string;
  /** Whether it ended by itself, before the limit of tokens. */
  finished: boolean;
  /** As the server counts them; 0 where it does not say. */
  promptTokens: number;
  answerTokens: number;
}

/** Statuses that another try may not meet: time-outs, conflicts, too many requests, and the server's own faults. */
const isPassing = (status: number): boolean => [408, 409, 425, 429].includes(status) || status >= 500;
/** Characters of a server's message that are shown. */
const SHOWN = 300;

/** What a status usually means for the user. */
const REMEDIES: Record<number, string> = {
  400: "check --body, and lower model.maxPromptTokens or model.maxResponseTokens if a prompt is too long",
  401: "check LONGRUN_ENDPOINT_KEY",
  403: "check LONGRUN_ENDPOINT_KEY and the key's rights",
  404: "check --endpoint (up to and without /chat/completions) and --model-name",
};

/**
 * @param retryAfter the header
 * @throws PassingFault where another try may help, also for an answer that cannot be read; EndpointError otherwise
 */
export function readAnswer(status: number, text: string, retryAfter?: string, now = Date.now()): Answer {
  if (status !== 200) {
    const said = `the endpoint answered ${status}${messageOf(text)}`;
    if (isPassing(status)) throw new PassingFault(said, secondsOf(retryAfter, now));
    throw new EndpointError(`${said}; ${REMEDIES[status] ?? "check --endpoint, --model-name and --body"}`);
  }
  const json = parsed(text);
  const [choice] = Array.isArray(json.choices) ? (json.choices as unknown[]) : [];
  const { message, finish_reason: reason } = objectOf(choice);
  if (typeof message !== "object" || message === null)
    throw new PassingFault("the endpoint's answer has no choices[0].message");
  const { prompt_tokens: promptTokens, completion_tokens: answerTokens } = objectOf(json.usage);
  return {
    text: withoutThoughts(textOf((message as { content?: unknown }).content)),
    finished: reason !== "length",
    promptTokens: countOf(promptTokens),
    answerTokens: countOf(answerTokens),
  };
}

function parsed(text: string): Record<string, unknown> {
  try {
    return objectOf(JSON.parse(text));
  } catch {
    // The cause's message has a piece of the answer, which may repeat the key.
    throw new PassingFault("the endpoint's answer is no JSON");
  }
}

const objectOf = (value: unknown) =>
  (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
const countOf = (value: unknown): number =>
  Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0;

/** A text, or the texts of a list of parts. A refusal has none. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? content.map((part) => objectOf(part).text) : [];
  return parts.filter((part) => typeof part === "string").join("");
}

/**
 * A reasoning model may begin with its thoughts, whose code is no solution. The template of some models opens them in the prompt: they then
 * end with a line whose end is the tag. The answer's limit may cut them.
 */
const withoutThoughts = (text: string): string =>
  text
    .replace(/^(?:\s*<think>[\s\S]*?<\/think>|[\s\S]*?<\/think>[ \t]*(?=\n|$))\s*/, "")
    .replace(/^\s*<think>[\s\S]*/, "");

function messageOf(text: string): string {
  let said = text;
  try {
    const { error, message, detail } = objectOf(JSON.parse(text));
    const found = objectOf(error).message ?? (typeof error === "string" ? error : (message ?? detail));
    if (typeof found === "string") said = found;
  } catch {
    // A proxy's page, for example.
  }
  const line = said.replace(/\s+/g, " ").trim();
  if (line === "") return "";
  return `: ${line.length > SHOWN ? `${line.slice(0, SHOWN)}…` : line}`;
}

/** Seconds, or a date of HTTP. */
function secondsOf(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const seconds = /^\d+(\.\d+)?$/.test(header.trim()) ? Number(header) : (Date.parse(header) - now) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}
