/** Examples of supervised training: their lines of JSON, as TRL reads them, are checked here. */
import type { Message } from "../engine/index.ts";

/** A prompt with the response that the policy learns. */
export interface Example {
  /** A chat without its last answer, or a text that the response goes on with. */
  prompt: readonly Message[] | string;
  response: string;
  /** File and line, or run and sample, for messages to people. */
  place: string;
}

/** Says by line and field why data cannot be used. */
export class DataError extends Error {}

const ROLES: readonly string[] = ["system", "user", "assistant"];
const FORMS = "give messages, or prompt and completion";

/**
 * Returns the example of a line: `messages`, of which the last is the assistant's, or `prompt` and `completion`, both texts or both
 * lists of messages. Other fields are ignored, as in TRL.
 *
 * @param place file and line
 * @throws DataError naming place and field
 */
export function parseExample(json: Readonly<Record<string, unknown>>, place: string): Example {
  const { messages, prompt, completion } = json;
  const refused = (why: string) => new DataError(`${place}: ${why}`);
  if (messages !== undefined) {
    if (prompt !== undefined || completion !== undefined)
      throw refused(`it has messages and ${prompt === undefined ? "completion" : "prompt"}; give one of the two forms`);
    return chat(parseMessages(messages, "messages", refused), "messages", refused, place);
  }
  if (prompt === undefined && completion === undefined)
    throw refused(`it has ${Object.keys(json).slice(0, 5).join(", ") || "no field"}; ${FORMS}`);
  for (const [name, value] of Object.entries({ prompt, completion }))
    if (value === undefined) throw refused(`${name} is missing; ${FORMS}`);
  if (typeof prompt === "string") {
    if (typeof completion !== "string")
      throw refused(
        `prompt is a text, but completion is ${brief(completion)}; give two texts or two lists of messages`,
      );
    if (prompt === "") throw refused("prompt is empty; begin it with some text");
    if (completion === "") throw refused("completion is empty; there is nothing to learn");
    return { prompt, response: completion, place };
  }
  const asked = parseMessages(prompt, "prompt", refused);
  const answer = parseMessages(completion, "completion", refused);
  if (answer.length !== 1)
    throw refused(`completion has ${answer.length} messages; give one, and the turns before it in prompt`);
  return chat([...asked, ...answer], "completion", refused, place);
}

type Refused = (why: string) => DataError;

function chat(messages: Message[], field: string, refused: Refused, place: string): Example {
  const last = messages.at(-1)!;
  if (last.role !== "assistant")
    throw refused(
      `the last message of ${field} is of the role ${last.role}; the assistant's answer is what is learned`,
    );
  if (last.content.trim() === "") throw refused(`the last message of ${field} is empty; there is nothing to learn`);
  if (messages.length === 1) throw refused(`${field} has only the answer; give the messages that it answers`);
  return { prompt: messages.slice(0, -1), response: last.content, place };
}

function parseMessages(value: unknown, field: string, refused: Refused): Message[] {
  if (!Array.isArray(value) || value.length === 0)
    throw refused(`${field} is ${brief(value)}; expected a list of messages`);
  return value.map((message: unknown, i) => {
    const { role, content } = (message ?? {}) as Partial<Message>;
    if (!ROLES.includes(role as string))
      throw refused(`${field}[${i}].role is ${brief(role)}; known are ${ROLES.join(", ")}`);
    if (typeof content !== "string") throw refused(`${field}[${i}].content is ${brief(content)}; expected a text`);
    return { role: role as Message["role"], content };
  });
}

/** Returns the line of an example; `parseExample` reads it back. @param facts further fields, for people */
export function exampleLine({ prompt, response }: Omit<Example, "place">, facts: Record<string, unknown> = {}): string {
  const texts =
    typeof prompt === "string"
      ? { prompt, completion: response }
      : { messages: [...prompt, { role: "assistant", content: response }] };
  return `${JSON.stringify({ ...texts, ...facts })}\n`;
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? "missing";
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
