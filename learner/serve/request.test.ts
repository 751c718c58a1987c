import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { readTokenizer, type Tokenizer } from "../engine/index.ts";
import { EncoderThread, type PromptEncoder } from "./encoder.ts";
import { RequestError } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import type { ServedModel } from "./model.ts";
import { ENDPOINTS, type Endpoint, parseRequest } from "./request.ts";

const folder = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));
const tokenizer = readTokenizer(folder);
const threads: EncoderThread[] = [];
/** Returns the model with a tokenizer of these files. */
function modelOf(files: Tokenizer["files"]): ServedModel {
  const encoder = new EncoderThread(files);
  threads.push(encoder);
  return { ...model, encoder };
}
after(() => Promise.all(threads.map((thread) => thread.close())));
const encoder = new EncoderThread(tokenizer.files);
threads.push(encoder);
const model: ServedModel = {
  ...{ name: "tiny", tokenizer, encoder, vocabSize: 2048, maxPositions: 100, eosIds: [2], createdSeconds: 0 },
};
const chat = (fields: object) =>
  parseRequest("chat/completions", { messages: [{ role: "user", content: "hi" }], ...fields }, model);
const completion = (fields: object) => parseRequest("completions", { prompt: "hi", ...fields }, model);

test("a completion without further fields has the defaults of OpenAI's API", async () => {
  const { prompts, ...rest } = await completion({});
  assert.deepEqual(prompts, [tokenizer.encode("hi")]);
  assert.deepEqual(rest, {
    ...{ endpoint: "completions", n: 1, maxTokens: 16, temperature: 1, topP: 1, stop: [] },
    ...{ seed: undefined, logProbs: false, stream: false, includeUsage: false },
  });
});

test("a chat becomes the template's text and may fill the context", async () => {
  const messages = [{ role: "user", content: "hi" }] as const;
  const { prompts, maxTokens } = await chat({});
  assert.deepEqual(prompts, [tokenizer.encodeChat(messages)]);
  assert.equal(maxTokens, undefined);
});

test("every field of a request is read", async () => {
  const { prompts, ...rest } = await chat({
    model: "tiny",
    n: 3,
    max_completion_tokens: 7,
    max_tokens: 5,
    temperature: 0.5,
    top_p: 0.9,
    seed: -3,
    stop: "x",
    ...{ stream: true, stream_options: { include_usage: true }, logprobs: true, user: "me", tools: [], echo: null },
  });
  assert.equal(prompts.length, 1);
  assert.deepEqual(rest, {
    ...{ endpoint: "chat/completions", n: 3, maxTokens: 7, temperature: 0.5, topP: 0.9, seed: -3, stop: ["x"] },
    ...{ stream: true, includeUsage: true, logProbs: true },
  });
  assert.equal((await completion({ logprobs: 0 })).logProbs, true);
  assert.equal((await completion({ temperature: 0 })).temperature, 0);
});

test("a request has one or several prompts, as texts or token ids", async () => {
  const ids = async (prompt: unknown) => (await completion({ prompt })).prompts.map((tokens) => [...tokens]);
  assert.deepEqual(await ids([5, 6]), [[5, 6]]);
  assert.deepEqual(await ids([[5], [6, 7]]), [[5], [6, 7]]);
  assert.deepEqual(await ids(["hi", "ho"]), [[...tokenizer.encode("hi")], [...tokenizer.encode("ho")]]);
  assert.deepEqual(await ids(["hi", [5]]), [[...tokenizer.encode("hi")], [5]]);
});

test("a message's parts are lines, developer means system, and an answer can be sent back unchanged", async () => {
  const parts = [
    { type: "text", text: "a" },
    { type: "text", text: "b" },
  ];
  const messages = [
    { role: "developer", content: "s" },
    { role: "user", content: parts, name: null },
    { role: "assistant", content: "x", refusal: null, annotations: [] },
    { role: "user", content: "y" },
  ];
  const expected = tokenizer.encodeChat([
    { role: "system", content: "s" },
    { role: "user", content: "a\nb" },
    { role: "assistant", content: "x" },
    { role: "user", content: "y" },
  ]);
  assert.deepEqual((await chat({ messages })).prompts, [expected]);
});

const REFUSED: [endpoint: Endpoint, fields: object, param: string | null, message: RegExp][] = [
  ["completions", { prompt: undefined }, "prompt", /^prompt is missing; give a text, a list of token ids/],
  ["completions", { prompt: new Array(330).fill("x") }, "prompt", /^prompt has 330 prompts; give at most 256$/],
  ["completions", { prompt: "" }, "prompt", /begin it with some token/],
  ["completions", { prompt: [] }, "prompt", /at least one prompt/],
  ["completions", { prompt: ["hi", ""] }, "prompt[1]", /begin it/],
  [
    "completions",
    { prompt: [1, 2048] },
    "prompt[1]",
    /^prompt\[1\] is 2048; token ids are whole numbers from 0 to 2047/,
  ],
  ["completions", { prompt: [[1], [-1]] }, "prompt[1][0]", /is -1/],
  ["completions", { prompt: [[]] }, "prompt[0]", /^prompt\[0\] is \[\]; begin it/],
  ["completions", { prompt: [1, 1.5] }, "prompt[1]", /is 1\.5/],
  ["completions", { prompt: { a: 1 } }, "prompt", /give a text/],
  ["completions", { temperature: 2.5 }, "temperature", /^temperature is 2\.5; give 0 .* or a number from 0\.01 to 2$/],
  ["completions", { temperature: 0.001 }, "temperature", /0\.001/],
  ["completions", { temperature: "1" }, "temperature", /^temperature is "1"/],
  ["completions", { top_p: 0 }, "top_p", /above 0, at most 1/],
  ["completions", { n: 0 }, "n", /from 1 to 128/],
  ["completions", { n: 1.5 }, "n", /from 1 to 128/],
  [
    "completions",
    { prompt: ["a", "b", "c"], n: 128 },
    "n",
    /^n is 128; with 3 prompts ask for at most 256 choices in all$/,
  ],
  ["completions", { max_tokens: 0 }, "max_tokens", /at least 1/],
  ["completions", { seed: 0.5 }, "seed", /whole number/],
  ["completions", { stop: "" }, "stop", /a word of 1 to 256 characters/],
  ["completions", { stop: new Array(LIMITS.stopWords + 1).fill("x") }, "stop", /at most 16/],
  ["completions", { stop: "\ud800" }, "stop", /give a word/],
  ["completions", { stream: 1 }, "stream", /true or false/],
  ["completions", { stream_options: { include_usage: true } }, "stream_options", /set stream to true/],
  ["completions", { stream: true, stream_options: { other: 1 } }, "stream_options", /include_usage/],
  [
    "completions",
    { logprobs: 5 },
    "logprobs",
    /^logprobs is 5; give 0 or 1: the engine tells the log-prob of the drawn token alone$/,
  ],
  ["completions", { logprobs: true }, "logprobs", /0 or 1/],
  ["completions", { best_of: 2 }, "best_of", /^best_of is 2; this server does not support it; leave it out/],
  ["completions", { echo: true }, "echo", /leave it out/],
  ["completions", { suffix: "x" }, "suffix", /leave it out/],
  ["completions", { logit_bias: { 5: 1 } }, "logit_bias", /leave it out/],
  ["completions", { presence_penalty: 0.5 }, "presence_penalty", /leave it out/],
  ["completions", { frequency_penalty: 0.5 }, "frequency_penalty", /leave it out/],
  ["completions", { messages: [] }, "messages", /completions has no such field here; known are model/],
  ["completions", { top_k: 5 }, "top_k", /no such field/],
  ["completions", { add_special_tokens: 1 }, "add_special_tokens", /true or false/],
  ["chat/completions", { add_special_tokens: true }, "add_special_tokens", /leave it out/],
  ["completions", { model: "other" }, "model", /^model is "other", which does not exist here; this server has tiny$/],
  [
    "completions",
    { prompt: "a b ".repeat(60) },
    null,
    /maximum context length is 100 tokens, but the prompt has \d+; shorten it$/,
  ],
  [
    "completions",
    { prompt: "a".repeat(1e6) },
    null,
    /maximum context length is 100 tokens, but prompt has at least \d+ tokens/,
  ],
  [
    "completions",
    { max_tokens: 100 },
    "max_tokens",
    /the prompt has 2 and max_tokens is 100; shorten the prompt, or lower max_tokens to 98/,
  ],
  [
    "chat/completions",
    { max_completion_tokens: 1000 },
    "max_completion_tokens",
    /lower max_completion_tokens to \d\d$/,
  ],
  ["chat/completions", { logprobs: 1 }, "logprobs", /true or false/],
  ["chat/completions", { top_logprobs: 3 }, "top_logprobs", /leave it out/],
  ["chat/completions", { tools: [{ type: "function" }] }, "tools", /leave it out/],
  ["chat/completions", { tool_choice: "required" }, "tool_choice", /leave it out/],
  ["chat/completions", { response_format: { type: "json_object" } }, "response_format", /leave it out/],
  ["chat/completions", { messages: [] }, "messages", /list of messages/],
  ["chat/completions", { messages: "hi" }, "messages", /list of messages/],
  ["chat/completions", { messages: [{ role: "tool", content: "x" }] }, "messages[0].role", /known are system, user/],
  ["chat/completions", { messages: [{ role: "user" }] }, "messages[0].content", /is missing; give a text/],
  ["chat/completions", { messages: [null] }, "messages[0].role", /is missing/],
  [
    "chat/completions",
    { messages: [{ role: "user", content: [{ type: "image_url" }] }] },
    "messages[0].content[0]",
    /the only kind here/,
  ],
  ["chat/completions", { messages: [{ role: "user", content: "x", name: "me" }] }, "messages[0].name", /leave it out/],
  ["chat/completions", { messages: [{ role: "user", content: "a".repeat(1e6) }] }, null, /maximum context length/],
  ["chat/completions", { prompt: "x" }, "prompt", /no such field/],
];

describe("a request is refused with name, value and remedy", () => {
  for (const [endpoint, fields, param, message] of REFUSED) {
    const name = JSON.stringify(fields).slice(0, 60);
    test(`${endpoint} ${name}`, () => {
      const parse = endpoint === "completions" ? completion : chat;
      return assert.rejects(parse(fields), (error: RequestError) => {
        assert.ok(error instanceof RequestError, String(error));
        assert.match(error.message, message);
        assert.deepEqual([error.status, error.param], [param === "model" ? 404 : 400, param]);
        return true;
      });
    });
  }

  for (const body of [null, [], "text", 5])
    test(`a body that is ${JSON.stringify(body)}`, () =>
      assert.rejects(parseRequest("completions", body, model), /no JSON object/));
});

/** The model with an encoder whose calls are counted; each takes this long, milliseconds. */
function counted(milliseconds = 0): { slow: ServedModel; calls: () => number; seconds: () => number[] } {
  let calls = 0;
  const deadlines: number[] = [];
  const encode: PromptEncoder["encode"] = async (text, options) => {
    calls++;
    deadlines.push(options.milliseconds / 1000);
    options.signal?.throwIfAborted();
    return { tokens: tokenizer.encode(text as string), milliseconds };
  };
  return { slow: { ...model, encoder: { encode } }, calls: () => calls, seconds: () => deadlines };
}

for (const fields of [{ prompt: new Array(330).fill("hi") }, { n: 0 }, { stop: "" }, { seed: 0.5 }, { top_p: 2 }])
  test(`nothing is tokenized before a request is refused: ${JSON.stringify(fields).slice(0, 30)}`, async () => {
    const { slow, calls } = counted();
    await assert.rejects(parseRequest("completions", { prompt: "hi", ...fields }, slow), RequestError);
    assert.equal(calls(), 0);
  });

test("the prompts of a request share one deadline, and an aborted signal ends the work", async () => {
  const { slow, calls, seconds } = counted(500);
  const prompt = new Array(3).fill("hi");
  await parseRequest("completions", { prompt }, slow, undefined, 4);
  assert.deepEqual(seconds(), [4, 3.5, 3]);
  const reason = new Error("hung up");
  await assert.rejects(parseRequest("completions", { prompt }, slow, AbortSignal.abort(reason)), reason);
  assert.equal(calls(), 4);
});

test("the first prompt that is too long ends the work", async () => {
  const { slow, calls } = counted();
  await assert.rejects(parseRequest("completions", { prompt: ["a b ".repeat(60), "hi"] }, slow), RequestError);
  assert.equal(calls(), 1);
});

test("a completion's text gets the tokenizer's special tokens, unless add_special_tokens is false", async () => {
  const first = "<|im_start|>";
  const id = tokenizer.tokenId(first)!;
  const begins = {
    ...{ type: "TemplateProcessing", special_tokens: { [first]: { id: first, ids: [id], tokens: [first] } } },
    ...{ single: [{ SpecialToken: { id: first, type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }], pair: [] },
  };
  const { tokenizerConfig } = tokenizer.files;
  const files = { tokenizer: { ...tokenizer.files.tokenizer, post_processor: begins }, tokenizerConfig };
  const beginning = modelOf(files);
  const ids = async (fields: object) =>
    (await parseRequest("completions", { prompt: `${first}hi`, ...fields }, beginning)).prompts.map((tokens) => [
      ...tokens,
    ]);
  const plain = [...tokenizer.encode(`${first}hi`)];
  assert.deepEqual(await ids({}), [[id, ...plain]]);
  assert.deepEqual(await ids({ add_special_tokens: true }), [[id, ...plain]]);
  assert.deepEqual(await ids({ add_special_tokens: false }), [plain]);
  assert.deepEqual(await ids({ prompt: [5], add_special_tokens: true }), [[5]]);
  assert.equal((await chat({ add_special_tokens: false })).prompts.length, 1);
});

test("any JSON is served or refused as the client's fault", async () => {
  const fields = ["prompt", "messages", "model", "n", "stop", "stream", "stream_options", "tools", "logit_bias"];
  const body = fc.dictionary(fc.constantFrom(...fields, "__proto__", "other"), fc.jsonValue({ maxDepth: 4 }));
  const endpoint = fc.constantFrom(...ENDPOINTS);
  await fc.assert(
    fc.asyncProperty(endpoint, body, async (endpoint, body) => {
      await parseRequest(endpoint, body, model).catch((error) => assert.ok(error instanceof RequestError, error));
    }),
  );
});

test("a model without a chat template refuses chats, and says what to do", () => {
  const { chat_template: _, ...tokenizerConfig } = tokenizer.files.tokenizerConfig;
  const bare = modelOf({ ...tokenizer.files, tokenizerConfig });
  return assert.rejects(parseRequest("chat/completions", { messages: [{ role: "user", content: "x" }] }, bare), {
    message: /no chat template; add chat_template to .* or give \/v1\/completions a prompt/,
    param: "messages",
  });
});
