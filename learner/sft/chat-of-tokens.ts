/** Turns the token ids of a prompt back into its messages. */
import type { Message, Tokenizer } from "../engine/index.ts";

type Role = Message["role"];

/** Turns of user and assistant before the task that are tried. */
const MOST_TURNS = 8;
/** No prompt contains these texts. */
const contentOf = (index: number) => `Content 5b1e0c ${index}`;

/** The roles of prompts: with or without the system's message, and examples before the task. */
const ROLES: readonly (readonly Role[])[] = Array.from({ length: MOST_TURNS + 1 }, (_, turns): Role[][] => {
  const asked: Role[] = [...Array<Role[]>(turns).fill(["user", "assistant"]).flat(), "user"];
  return [["system", ...asked], asked];
}).flat();

/**
 * Returns the messages whose chat has exactly these tokens [time], and the text that the tokens have after them, with which the answer
 * begins. Undefined if no messages are found: the prompt is then known as text alone.
 */
export function chatOfTokens(
  tokens: Int32Array,
  tokenizer: Tokenizer,
): { messages: Message[]; answer: string } | undefined {
  if (!tokenizer.hasChatTemplate) return undefined;
  const text = tokenizer.decode(tokens, { skipSpecialTokens: false });
  for (const roles of ROLES) {
    const found = cut(text, between(roles, tokenizer));
    if (found === undefined) continue;
    const messages = roles.map((role, i) => ({ role, content: found.contents[i]! }));
    const encoded = tokenizer.encodeChat(messages);
    const begins = encoded.length <= tokens.length && encoded.every((id, i) => id === tokens[i]);
    if (!begins) continue;
    const answer = tokenizer.decode(tokens.subarray(encoded.length), { skipSpecialTokens: false });
    return { messages, answer };
  }
  return undefined;
}

/** Returns the template's own texts before, between and after the contents of messages; undefined if it refuses these roles. */
function between(roles: readonly Role[], tokenizer: Tokenizer): string[] | undefined {
  let rest: string;
  try {
    rest = tokenizer.applyChatTemplate(roles.map((role, i) => ({ role, content: contentOf(i) })));
  } catch {
    return undefined; // templates refuse some orders of roles
  }
  const parts: string[] = [];
  for (const i of roles.keys()) {
    const at = rest.indexOf(contentOf(i));
    if (at < 0) return undefined;
    parts.push(rest.slice(0, at));
    rest = rest.slice(at + contentOf(i).length);
  }
  return [...parts, rest];
}

/** Returns the texts between `parts`, which are in `text` in this order; the last part is searched from the end. */
function cut(text: string, parts: readonly string[] | undefined): { contents: string[] } | undefined {
  if (parts === undefined || !text.startsWith(parts[0]!)) return undefined;
  const contents: string[] = [];
  let from = parts[0]!.length;
  for (const [i, part] of parts.entries()) {
    if (i === 0) continue;
    const at = i === parts.length - 1 ? text.lastIndexOf(part) : text.indexOf(part, from);
    if (at < from) return undefined;
    contents.push(text.slice(from, at));
    from = at + part.length;
  }
  return { contents };
}
