/** Compares the token that ends an answer in a model's chat template with the tokens that end a response. */
import { ModelError } from "./errors.ts";
import { readEosIds, readTokenizer } from "./folder.ts";
import type { Json } from "./json.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** A text that no template contains. */
const ANSWER = "Answer 7c1f0e";

/** Returns a token's text as tokenizer.json writes it, such as `<|im_end|>`; undefined for an id without a token. */
export const tokenName = (tokenizer: Tokenizer, id: number): string | undefined =>
  tokenizer.decode([id], { skipSpecialTokens: false }) || undefined;

/**
 * Returns a warning, one line, if the chat template ends an answer with added tokens of which none ends a response: a policy trained for
 * chats then never ends one. undefined if one does, and where a template is missing, fails, or ends an answer with plain text.
 */
export function turnEndWarning(folder: string, tokenizer: Tokenizer = readTokenizer(folder)): string | undefined {
  const ends = endsOfTurn(tokenizer);
  const [first] = ends;
  const eosIds = readEosIds(folder);
  if (first === undefined || ends.some((id) => eosIds.includes(id))) return undefined;
  const named = (id: number) => `${tokenName(tokenizer, id) ?? "no token"} (${id})`;
  const known =
    eosIds.length > 0 ? `only ${eosIds.map(named).join(" and ")} ends a response` : "no token ends a response";
  const remedy = `set eos_token_id in generation_config.json to ${JSON.stringify([...eosIds, first])}`;
  return `${folder}: the chat template ends an answer with ${named(first)}, but ${known}, so that responses are cut at their longest; ${remedy}`;
}

/**
 * Returns the token with which the policy ends a response: of those that end one, the first that the chat template writes behind an answer.
 *
 * @throws ModelError `tokenizer` where no token ends a response
 */
export function responseEnd(folder: string, tokenizer: Tokenizer): number {
  const eosIds = readEosIds(folder);
  const end = endsOfTurn(tokenizer).find((id) => eosIds.includes(id)) ?? eosIds[0];
  if (end !== undefined) return end;
  throw new ModelError("tokenizer", `${folder}: no token ends a response; set eos_token_id in generation_config.json`);
}

/** Returns the added tokens that the template writes behind an answer. */
function endsOfTurn(tokenizer: Tokenizer): number[] {
  let text: string;
  try {
    const messages = [
      { role: "user", content: "Question" },
      { role: "assistant", content: ANSWER },
    ] as const;
    text = tokenizer.applyChatTemplate(messages, { addGenerationPrompt: false });
  } catch (cause) {
    if (cause instanceof ModelError) return [];
    throw cause;
  }
  const at = text.lastIndexOf(ANSWER);
  if (at < 0) return [];
  const listed = tokenizer.files.tokenizer.added_tokens;
  const added = new Set((Array.isArray(listed) ? (listed as Json[]) : []).map(({ id }) => id));
  return [...tokenizer.encode(text.slice(at + ANSWER.length))].filter((id) => added.has(id));
}
