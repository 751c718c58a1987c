import assert from "node:assert/strict";
import http from "node:http";
import { describe, test } from "node:test";
import type { Generating } from "./choice.ts";
import { LIMITS } from "./limits.ts";
import { errorOf, FakeEngine, LETTERS, model, started, tokenizer, until } from "./server.fixture.ts";

test("a completion has text, log-probs, the reason of its end and the usage", async () => {
  const { post } = await started();
  const { id, created, ...rest } = (await (await post({ max_tokens: 3, logprobs: 1 })).json()) as Record<
    string,
    unknown
  >;
  assert.match(String(id), /^cmpl-/);
  assert.ok(Math.abs(Number(created) - Date.now() / 1000) < 5);
  assert.deepEqual(rest, {
    ...{ object: "text_completion", model: "tiny" },
    choices: [
      {
        ...{ index: 0, text: "import pandas as", finish_reason: "length" },
        logprobs: {
          ...{ tokens: ["import", " pandas", " as"], token_logprobs: [0, -1, -2], top_logprobs: null },
          text_offset: [0, 6, 13],
        },
      },
    ],
    usage: {
      prompt_tokens: tokenizer.encode("hi").length,
      completion_tokens: 3,
      total_tokens: tokenizer.encode("hi").length + 3,
    },
  });
});

test("an answer of a chat begins with the prefix, whose tokens are the prompt's", async () => {
  const answerPrefix = "A plan.\n```python\n";
  const prompts: Int32Array[] = [];
  const engine = new FakeEngine();
  const { generate } = engine;
  engine.generate = (asked, options, listener) => {
    prompts.push(...asked);
    return generate(asked, options, listener);
  };
  const { post } = await started({ model: { ...model, answerPrefix } }, engine);
  const messages = [{ role: "user" as const, content: "Hello" }];
  const chat = async (fields: object) =>
    (await post({ prompt: undefined, messages, max_tokens: 3, ...fields }, {}, "/v1/chat/completions")).text();
  const whole = JSON.parse(await chat({ logprobs: true }));
  const continued = tokenizer.decode(LETTERS.slice(0, 3));
  assert.equal(whole.choices[0].message.content, answerPrefix + continued);
  assert.equal(whole.choices[0].logprobs.content.length, 3);
  assert.equal(whole.usage.completion_tokens, 3);
  assert.deepEqual(prompts[0], tokenizer.encodeChat(messages, answerPrefix));
  const parts = (await chat({ stream: true })).split("\n\n").filter((part) => part.startsWith("data: {"));
  const streamed = parts.map((part) => JSON.parse(part.slice(6)).choices[0].delta.content ?? "").join("");
  assert.equal(streamed, answerPrefix + continued);
  const text = JSON.parse(await (await post({ max_tokens: 3 })).text());
  assert.equal(text.choices[0].text, continued, "a completion is as the client writes it");
});

test("several prompts with n choices are answered prompt by prompt", async () => {
  const { post, metric } = await started();
  const answer = (await (await post({ prompt: ["a", "b"], n: 2, max_tokens: 1 })).json()) as {
    choices: { index: number; text: string }[];
    usage: object;
  };
  assert.deepEqual(
    answer.choices.map(({ index, text }) => [index, text]),
    [0, 1, 2, 3].map((index) => [index, "import"]),
  );
  assert.deepEqual(answer.usage, { prompt_tokens: 2, completion_tokens: 4, total_tokens: 6 });
  assert.equal(await metric('longrun_serve_choices_total{end="length"}'), 4);
});

test("a stream has a chunk for each token, then the usage, then [DONE]", async () => {
  const { post } = await started();
  const text = await (await post({ max_tokens: 3, stream: true, stream_options: { include_usage: true } })).text();
  const events = text.split("\n\n").filter(Boolean);
  assert.equal(events.at(-1), "data: [DONE]");
  const chunks = events.slice(0, -1).map((event) => JSON.parse(event.replace(/^data: /, "")));
  assert.deepEqual(
    chunks.map(({ choices, usage }) => [choices[0]?.text, choices[0]?.finish_reason, usage?.completion_tokens]),
    [
      ["import", null, undefined],
      [" pandas", null, undefined],
      [" as", "length", undefined],
      [undefined, undefined, 3],
    ],
  );
  assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
  const without = await (await post({ max_tokens: 3, stream: true })).text();
  assert.equal(without.split("\n\n").filter(Boolean).length, 4);
  assert.doesNotMatch(without, /usage/);
  assert.deepEqual(chunks[0].usage, null);
});

test("equal prompts of one request get choices of their own without a seed, and the same ones with it", async () => {
  const seeds: number[] = [];
  class Seeing extends FakeEngine {
    override generate: Generating["generate"] = async (_prompts, how, listener) => {
      seeds.push(...how.seeds);
      const logProbs = Float32Array.of(-1);
      listener?.(0, { response: Int32Array.of(LETTERS[0]!), logProbs, finished: true, ended: true });
      return [];
    };
  }
  const { post } = await started({}, new Seeing());
  await (await post({ prompt: ["a", "a"], n: 2 })).json();
  assert.equal(new Set(seeds).size, 4);
  await (await post({ prompt: ["a", "a"], n: 2, seed: 5 })).json();
  assert.deepEqual(seeds.slice(4, 6), seeds.slice(6));
  assert.equal(new Set(seeds).size, 6);
});

test("a stop word ends the row in the engine and appears neither in a text nor in a stream", async () => {
  const engine = new FakeEngine(1, 5);
  const { post, metric } = await started({}, engine);
  const { choices, usage } = (await (await post({ max_tokens: 500, stop: [" as"] })).json()) as {
    choices: object[];
    usage: { completion_tokens: number };
  };
  assert.deepEqual(choices, [{ index: 0, text: "import pandas", logprobs: null, finish_reason: "stop" }]);
  assert.equal(usage.completion_tokens, 3, "up to the token that completes it");
  await until(() => engine.rows === 0);
  assert.equal(engine.aborted, 1);
  const streamed = await (await post({ max_tokens: 500, stop: [" as"], stream: true })).text();
  assert.doesNotMatch(streamed, / as/);
  assert.equal(await metric('longrun_serve_choices_total{end="stop"}'), 2);
});

test("a request gets 429 with Retry-After if too many choices wait", async () => {
  const engine = new FakeEngine(5);
  const { post, url } = await started({ slots: 2, maxWaiting: 1 }, engine);
  const gone = new AbortController();
  const body = JSON.stringify({ prompt: "hi", n: 3, max_tokens: 900 });
  const headers = { "content-type": "application/json" };
  const asked = fetch(`${url}/v1/completions`, { method: "POST", headers, body, signal: gone.signal }).catch(() => {});
  await until(() => engine.rows === 3);
  const refused = await post({ max_tokens: 1 });
  assert.equal(refused.headers.get("retry-after"), String(LIMITS.retryAfterSeconds));
  const { status, message, type, code } = await errorOf(refused);
  assert.deepEqual([status, type, code], [429, "rate_limit_error", "rate_limit_exceeded"]);
  assert.match(message, /^1 choices wait for a slot, the most that may \(--max-waiting\)/);
  gone.abort();
  await asked;
  await until(() => engine.rows === 0);
  assert.equal((await post({ max_tokens: 1 })).status, 200);
});

test("deeply nested JSON is the client's fault, in every place", async () => {
  const { url, faults } = await started();
  const deep = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
  const headers = { "content-type": "application/json" };
  const send = async (body: string, path = "completions") =>
    errorOf(await fetch(`${url}/v1/${path}`, { method: "POST", headers, body }));
  const tooDeep = /^the request nests lists and objects more than 64 deep; send fewer levels$/;
  for (const field of ["unknown", "prompt", "model", "logit_bias", "stop", "stream_options", "user"]) {
    const { status, message } = await send(`{"prompt":"x","${field}":${deep(5000)}}`);
    assert.equal(status, 400, field);
    assert.match(message, tooDeep);
  }
  for (const content of [`${deep(5000)}`, `"x","other":${deep(5000)}`]) {
    const { status, message } = await send(`{"messages":[{"role":"user","content":${content}}]}`, "chat/completions");
    assert.equal(status, 400);
    assert.match(message, tooDeep);
  }
  assert.match((await send(deep(2e6))).message, tooDeep);
  assert.match((await send(deep(64))).message, /no JSON object/);
  assert.match((await send(`{"prompt":"x","user":${'{"a":'.repeat(64)}1${"}".repeat(65)}`)).message, tooDeep);
  assert.match((await send(`{"a":${"[".repeat(1e6)}`)).message, /the request is no JSON/);
  assert.deepEqual(faults, []);
});

describe("keys", async () => {
  const { url, post } = await started({ key: "secret", loopback: false });
  const CASES: [name: string, authorization: string | undefined, status: number][] = [
    ["missing", undefined, 401],
    ["wrong", "Bearer secres", 401],
    ["longer", "Bearer secrets", 401],
    ["empty", "Bearer ", 401],
    ["in another scheme", "Basic secret", 401],
    ["right", "Bearer secret", 200],
    ["right, in lower case", "bearer secret", 200],
  ];
  for (const [name, authorization, status] of CASES)
    test(`a key that is ${name} gets ${status}`, async () => {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
      const response = await post({ max_tokens: 1 }, headers);
      assert.equal(response.status, status);
      assert.equal((await fetch(`${url}/v1/models`, { headers })).status, status);
      if (status === 200) return;
      const { message, type, code } = await errorOf(response);
      assert.deepEqual([type, code], ["invalid_request_error", "invalid_api_key"]);
      assert.doesNotMatch(message, /secre/);
    });
  test("health and metrics need no key", async () => {
    assert.equal((await fetch(`${url}/health`)).status, 200);
    assert.equal((await fetch(`${url}/metrics`)).status, 200);
  });
});

test("the API lists its one model", async () => {
  const { url } = await started();
  const shown = { id: "tiny", object: "model", created: 7, owned_by: "longrun", max_model_len: 1000 };
  assert.deepEqual(await (await fetch(`${url}/v1/models`)).json(), { object: "list", data: [shown] });
  assert.deepEqual(await (await fetch(`${url}/v1/models/tiny`)).json(), shown);
  const { status, code } = await errorOf(await fetch(`${url}/v1/models/other`));
  assert.deepEqual([status, code], [404, "model_not_found"]);
  const named = await started({ model: { ...model, name: "owner/name:1 x" } });
  for (const path of ["owner/name:1 x", "owner%2Fname%3A1%20x"])
    assert.equal((await fetch(`${named.url}/v1/models/${path}`)).status, 200, path);
});

test("a request to another path, or with another method, type or model, is refused", async () => {
  const { url, post, faults } = await started();
  assert.equal((await errorOf(await fetch(`${url}/v1/embeddings`))).status, 404);
  const wrongMethod = await fetch(`${url}/v1/completions`);
  assert.deepEqual([wrongMethod.status, wrongMethod.headers.get("allow")], [405, "POST"]);
  const noJson = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{",
  });
  assert.match((await errorOf(noJson)).message, /no JSON/);
  assert.equal((await post({}, { "content-type": "text/plain" })).status, 415);
  assert.equal((await post({ model: "gpt" })).status, 404);
  assert.deepEqual(faults, []);
});

test("a body over the limit gets 413, also if its length is unknown", async () => {
  const { url, post } = await started({ limits: { bodyBytes: 1000 } });
  const { status, message } = await errorOf(await post({ prompt: "x".repeat(2000) }));
  assert.equal(status, 413);
  assert.match(message, /^the request has 20\d\d bytes; at most 1000 are read$/);
  const body = new Blob(["x".repeat(5000)]).stream();
  const headers = { "content-type": "application/json" };
  const chunked = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers,
    body,
    duplex: "half",
  } as RequestInit);
  assert.equal(chunked.status, 413);
  assert.equal((await post({ max_tokens: 1 })).status, 200);
});

test("a web page cannot reach a server without a key through a host name of its own", async () => {
  const { server } = await started();
  const ask = (host: string) =>
    new Promise<number>((resolve) => {
      http.get({ port: server.port, path: "/v1/models", headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode!);
      });
    });
  assert.deepEqual(await Promise.all(["evil.example", "localhost:1", "127.0.0.1"].map(ask)), [403, 200, 200]);
});

test("requests get 503 while the model loads", async () => {
  const { server, url, post } = await started({}, null);
  const health = await fetch(`${url}/health`);
  assert.deepEqual([health.status, await health.json()], [503, { status: "loading" }]);
  const { status, type } = await errorOf(await post({}));
  assert.deepEqual([status, type], [503, "server_error"]);
  server.serve(new FakeEngine());
  assert.equal((await fetch(`${url}/health`)).status, 200);
});

test("a failing engine gives 500, an event in a stream and one logged line without the prompt", async () => {
  const engine = new FakeEngine(2);
  const { url, post, faults } = await started({}, engine);
  const stream = await post({ prompt: "my own words", max_tokens: 500, stream: true });
  engine.failure = new Error("a worker has ended") as never;
  const events = (await stream.text()).split("\n\n").filter(Boolean);
  assert.equal(JSON.parse(events.at(-1)!.replace("data: ", "")).error.message, "the engine failed: a worker has ended");
  const { status, type } = await errorOf(await post({ max_tokens: 1 }));
  assert.deepEqual([status, type], [500, "server_error"]);
  assert.ok(
    faults.length > 0 && faults.every((line) => line === "a request failed: a worker has ended"),
    String(faults),
  );
  const health = await fetch(`${url}/health`);
  assert.deepEqual([health.status, await health.json()], [503, { status: "a worker has ended" }]);
});
