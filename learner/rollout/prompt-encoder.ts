import type { Prompts } from "../../crds/trainingrun.ts";
import type { Message } from "../engine/index.ts";
import type { EncodeChat } from "./prompts.ts";

type Around = Partial<Pick<Prompts, "answerPrefix" | "examples">>;

/**
 * Returns the encoder of a run's prompts: `prompts.examples` stand between the system's message and the task, and the tokens of
 * `prompts.answerPrefix` at the end, where the answer begins.
 */
export function promptEncoder(encode: EncodeChat, prompts: Around): EncodeChat {
  const { answerPrefix, examples = [] } = prompts;
  const turns = examples.flatMap(({ user, assistant }): Message[] => [
    { role: "user", content: user },
    { role: "assistant", content: assistant },
  ]);
  return (messages) => {
    const first = messages.findIndex(({ role }) => role !== "system");
    return encode([...messages.slice(0, first), ...turns, ...messages.slice(first)], answerPrefix);
  };
}

/** Tokens before a response that are decoded with it, so that a tokenizer which drops blanks at a text's beginning keeps them. */
const TOKENS_BEFORE = 8;

/** Returns the whole answer: the prefix, and the text of the response that continues it. */
export function wholeAnswer(
  decode: (tokens: Int32Array) => string,
  answerPrefix: string | undefined,
  prompt: Int32Array,
  response: Int32Array,
): string {
  if (answerPrefix === undefined) return decode(response);
  const before = prompt.subarray(-TOKENS_BEFORE);
  const lead = decode(before);
  const both = decode(Int32Array.of(...before, ...response));
  return answerPrefix + (both.startsWith(lead) ? both.slice(lead.length) : decode(response));
}
