import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../engine/model/tokenizer.ts";
import { DataError, type Example, exampleLine, parseExample } from "./examples.ts";

const user: Message = { role: "user", content: "Predict the price." };
const assistant: Message = { role: "assistant", content: "A plan." };
const system: Message = { role: "system", content: "Write a program." };

const GOOD: [name: string, line: Record<string, unknown>, expected: Omit<Example, "place">][] = [
  ["messages", { messages: [user, assistant] }, { prompt: [user], response: "A plan." }],
  [
    "messages with a system's and earlier turns",
    { messages: [system, user, assistant, user, { role: "assistant", content: "Better." }] },
    { prompt: [system, user, assistant, user], response: "Better." },
  ],
  ["texts", { prompt: "1 + 1 =", completion: " 2" }, { prompt: "1 + 1 =", response: " 2" }],
  ["lists", { prompt: [system, user], completion: [assistant] }, { prompt: [system, user], response: "A plan." }],
  ["other fields", { messages: [user, assistant], task: "wage", score: 1 }, { prompt: [user], response: "A plan." }],
];

for (const [name, line, expected] of GOOD)
  test(`an example of ${name} is read, and written back`, () => {
    const { place, ...example } = parseExample(line, "data.jsonl, line 3");
    assert.deepEqual(example, expected);
    assert.equal(place, "data.jsonl, line 3");
    const { place: _, ...again } = parseExample(JSON.parse(exampleLine(example, { task: "wage" })), "");
    assert.deepEqual(again, example);
  });

const BAD: [line: Record<string, unknown>, message: string][] = [
  [{}, "it has no field; give messages, or prompt and completion"],
  [{ text: "all", id: 1 }, "it has text, id; give messages, or prompt and completion"],
  [{ prompt: "a" }, "completion is missing; give messages, or prompt and completion"],
  [{ completion: "a" }, "prompt is missing; give messages, or prompt and completion"],
  [{ messages: [user, assistant], prompt: "a" }, "it has messages and prompt; give one of the two forms"],
  [{ messages: "a" }, 'messages is "a"; expected a list of messages'],
  [{ messages: [] }, "messages is []; expected a list of messages"],
  [{ messages: [user, null] }, "messages[1].role is missing; known are system, user, assistant"],
  [{ messages: [{ role: "tool", content: "a" }] }, 'messages[0].role is "tool"; known are system, user, assistant'],
  [{ messages: [user, { role: "assistant", content: [] }] }, "messages[1].content is []; expected a text"],
  [
    { messages: [assistant, user] },
    "the last message of messages is of the role user; the assistant's answer is what is learned",
  ],
  [{ messages: [assistant] }, "messages has only the answer; give the messages that it answers"],
  [
    { messages: [user, { role: "assistant", content: " \n" }] },
    "the last message of messages is empty; there is nothing to learn",
  ],
  [{ prompt: "a", completion: "" }, "completion is empty; there is nothing to learn"],
  [{ prompt: "", completion: "a" }, "prompt is empty; begin it with some text"],
  [
    { prompt: "a", completion: [assistant] },
    'prompt is a text, but completion is [{"role":"assistant","content":"A plan."}]; give two texts or two lists of messages',
  ],
  [
    { prompt: [user], completion: [assistant, user] },
    "completion has 2 messages; give one, and the turns before it in prompt",
  ],
];

for (const [line, message] of BAD)
  test(`refused: ${message.slice(0, 60)}`, () => {
    const refusal = (error: unknown) =>
      error instanceof DataError && error.message === `data.jsonl, line 3: ${message}`;
    assert.throws(() => parseExample(line, "data.jsonl, line 3"), refusal);
  });
