import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Message, readTokenizer } from "../engine/index.ts";
import { estimateChat } from "./estimate-tokens.ts";
import { promptEncoder, wholeAnswer } from "./prompt-encoder.ts";
import { scratchMessages } from "./prompts.ts";

const tokenizer = readTokenizer(fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url)));
const encode = (messages: Message[], answerPrefix?: string) => tokenizer.encodeChat(messages, answerPrefix);
const PREFIX = "I load the data.\n```python\nimport pandas as pd\n";
const messages: Message[] = [
  { role: "system", content: "Solve it." },
  { role: "user", content: "Predict the price." },
];

test("examples stand before the task, and the prefix where the answer begins", () => {
  const examples = [
    { user: "Predict rain.", assistant: "A plan." },
    { user: "Predict snow.", assistant: "Another <|im_end|> plan." },
  ];
  const tokens = promptEncoder(encode, { examples, answerPrefix: PREFIX })(messages);
  const text = tokenizer.decode(tokens, { skipSpecialTokens: false });
  const order = ["Solve it.", "Predict rain.", "A plan.", "Predict snow.", "Another", "Predict the price.", PREFIX];
  const places = order.map((part) => text.indexOf(part));
  assert.ok(
    places.every((place, i) => place > (places[i - 1] ?? -1)),
    `${places}`,
  );
  assert.ok(text.endsWith(PREFIX));
  assert.deepEqual([...tokens], [...promptEncoder(encode, { examples })(messages), ...tokenizer.encode(PREFIX)]);
  assert.deepEqual(promptEncoder(encode, {})(messages), tokenizer.encodeChat(messages));
});

test("the estimate counts examples and prefix too", () => {
  const about = promptEncoder(estimateChat, { examples: [{ user: "a b", assistant: "c d" }], answerPrefix: PREFIX });
  const bare = promptEncoder(estimateChat, {})(messages).length;
  assert.ok(about(messages).length > bare + 20);
});

test("the whole answer is the prefix and what continues it", () => {
  const prompt = promptEncoder(encode, { answerPrefix: PREFIX })(
    scratchMessages(
      { name: "t", description: "Predict.", columns: [], files: [], snippet: [], submissionFormat: [], packages: [] },
      "Short",
    ),
  );
  const decode = (tokens: Int32Array) => tokenizer.decode(tokens);
  const response = tokenizer.encode("  print(1)\n```");
  assert.equal(wholeAnswer(decode, PREFIX, prompt, response), `${PREFIX}  print(1)\n\`\`\``);
  assert.equal(wholeAnswer(decode, undefined, prompt, response), "  print(1)\n```");
  // A tokenizer like Llama 2's drops the blank at a text's beginning.
  const words = ["", "▁the", "▁plan", "▁print"];
  const dropping = (tokens: Int32Array) =>
    [...tokens]
      .map((id) => words[id])
      .join("")
      .replaceAll("▁", " ")
      .replace(/^ /, "");
  assert.equal(wholeAnswer(dropping, "the plan", Int32Array.of(1, 2), Int32Array.of(3)), "the plan print");
  // Half of a character at the end of the prompt: the response alone is decoded.
  const broken = (tokens: Int32Array) => (tokens.length === 1 ? "\ufffd" : "é".repeat(tokens.length - 1));
  assert.equal(wholeAnswer(broken, "x", Int32Array.of(1), Int32Array.of(2)), "x\ufffd");
});
