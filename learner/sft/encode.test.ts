import assert from "node:assert/strict";
import { test } from "node:test";
import { policyFolder } from "../../crds/policy.ts";
import { readTokenizer } from "../engine/model/folder.ts";
import { Tokenizer } from "../engine/model/tokenizer.ts";
import { responseEnd } from "../engine/model/turn-end.ts";
import { encodeExamples } from "./encode.ts";
import { DataError, type Example } from "./examples.ts";

const folder = policyFolder("quickstart", "", "");
const tokenizer = readTokenizer(folder);
const end = responseEnd(folder, tokenizer);
const user = { role: "user", content: "Predict the price." } as const;
const encode = (examples: Omit<Example, "place">[], maxTokens = 1024) =>
  encodeExamples(
    examples.map((example, i) => ({ ...example, place: `data, line ${i + 1}` })),
    ...([tokenizer, end, maxTokens] as const),
  );
const text = (ids: Int32Array) => tokenizer.decode(ids, { skipSpecialTokens: false });

test("a chat's prompt is the template's up to the answer; a response has the text and the end of the turn", () => {
  const [sequence] = encode([{ prompt: [user], response: "Fit a tree." }]).sequences;
  assert.equal(tokenizer.decode([end], { skipSpecialTokens: false }), "<|im_end|>");
  assert.deepEqual(sequence!.prompt, tokenizer.encodeChat([user]));
  assert.equal(text(sequence!.response), "Fit a tree.<|im_end|>");
});

test("a text goes on as it is written, and its end is not repeated", () => {
  const { sequences } = encode([
    { prompt: "The price", response: " is high" },
    { prompt: "The pri", response: "ce is high" },
    { prompt: "The", response: " price<|im_end|>" },
  ]);
  for (const { prompt, response } of sequences) assert.equal(response.at(-1), end, text(prompt));
  assert.deepEqual(
    sequences.map(({ prompt, response }) => text(prompt) + text(response)),
    ["The price is high<|im_end|>", "The price is high<|im_end|>", "The price<|im_end|>"],
  );
  const [first] = sequences;
  assert.deepEqual([...first!.prompt, ...first!.response], [...tokenizer.encode("The price is high"), end]);
});

test("examples that are too long or repeated are left out and counted", () => {
  const long = "price ".repeat(100);
  const examples = [user.content, long, user.content].map((content) => ({
    prompt: [{ role: "user", content } as const],
    response: "Fit a tree.",
  }));
  const { sequences, tooLong, repeated, longest } = encode(examples, 60);
  assert.equal(sequences.length, 1);
  assert.equal(tooLong, 1);
  assert.equal(repeated, 1);
  assert.ok(longest > 100);
});

test("a chat that the template refuses is named by its line", () => {
  const strict = { ...tokenizer.files.tokenizerConfig, chat_template: "{{ raise_exception('no system') }}" };
  const refusing = new Tokenizer({
    ...tokenizer.files,
    tokenizerConfig: strict,
  });
  assert.throws(
    () => encodeExamples([{ prompt: [user], response: "a", place: "data, line 7" }], refusing, end, 100),
    (error) => error instanceof DataError && error.message === "data, line 7: the chat template failed: no system",
  );
});
