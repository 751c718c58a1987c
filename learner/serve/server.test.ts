import assert from "node:assert/strict";
import http from "node:http";
import { connect } from "node:net";
import { after, describe, test } from "node:test";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { readTokenizer } from "../engine/index.ts";
import type { Generating } from "./choice.ts";
import { LIMITS } from "./limits.ts";
import type { ServedModel } from "./model.ts";
import { ApiServer, type ServerOptions } from "./server.ts";

const tokenizer = readTokenizer(fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url)));
const model: ServedModel = {
  ...{ name: "tiny", tokenizer, vocabSize: 2048, maxPositions: 1000, eosIds: [2], createdSeconds: 7 },
};
const LETTERS = tokenizer.encode("import pandas as pd");

/** An engine whose rows emit a token every `milliseconds` until they are stopped; streams get `perPart` tokens at a time. */
class FakeEngine implements Generating {
  failure: Generating["failure"];
  rows = 0;
  aborted = 0;
  readonly milliseconds: number;
  readonly perPart: number;
  constructor(milliseconds = 0, perPart = 1) {
    this.milliseconds = milliseconds;
    this.perPart = perPart;
  }

  generate: Generating["generate"] = async (_prompts, { maxNewTokens, signal, streams }, listener) => {
    this.rows++;
    try {
      const [response, logProbs]: number[][] = [[], []];
      let told = 0;
      for (let at = 0; at < maxNewTokens; at++) {
        await (this.milliseconds > 0 ? sleep(this.milliseconds) : nextTurn());
        if (this.failure) throw this.failure;
        if (signal?.aborted) this.aborted++;
        signal?.throwIfAborted();
        response.push(LETTERS[at % LETTERS.length]!);
        logProbs.push(-at);
        const ended = response.length === maxNewTokens;
        if (!ended && !(streams && response.length === this.perPart * (told + 1))) continue;
        const from = this.perPart * told++;
        const part = {
          ...{ response: Int32Array.from(response.slice(from)), logProbs: Float32Array.from(logProbs.slice(from)) },
          ...{ finished: false, ended },
        };
        listener?.(0, part);
      }
      return [];
    } finally {
      this.rows--;
    }
  };
}

const servers: ApiServer[] = [];
after(() => Promise.all(servers.map((server) => server.end())));

async function started(options: Partial<ServerOptions> = {}, engine: Generating | null = new FakeEngine()) {
  const faults: string[] = [];
  const failures: Error[] = [];
  const server = await ApiServer.listen({
    ...{ host: "127.0.0.1", port: 0, key: undefined, loopback: true, slots: 2, maxWaiting: 2, model },
    ...{ onFault: (line) => faults.push(line), onFailure: (failure) => failures.push(failure), ...options },
  });
  servers.push(server);
  if (engine) server.serve(engine);
  const url = `http://127.0.0.1:${server.port}`;
  const post = (fields: object, headers: Record<string, string> = {}, path = "/v1/completions") =>
    fetch(url + path, {
      ...{ method: "POST", headers: { "content-type": "application/json", ...headers } },
      body: JSON.stringify({ prompt: "hi", ...fields }),
    });
  const metric = async (name: string) => {
    const line = (await (await fetch(`${url}/metrics`)).text()).split("\n").find((each) => each.startsWith(`${name} `));
    return Number(line?.split(" ").at(-1));
  };
  return { server, url, post, metric, faults, failures };
}

const errorOf = async (response: Response) => {
  const { error } = (await response.json()) as {
    error: { message: string; type: string; param: unknown; code: unknown };
  };
  return { status: response.status, ...error };
};

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    if (await holds()) return;
    await sleep(10);
  }
  assert.fail("it did not happen in 10 seconds");
}

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

test("a client that hangs up frees its slots", async () => {
  const engine = new FakeEngine(5);
  const { url, metric } = await started({}, engine);
  for (const stream of [true, false]) {
    const gone = new AbortController();
    const body = JSON.stringify({ prompt: "hi", n: 2, max_tokens: 900, stream });
    const headers = { "content-type": "application/json" };
    const asked = fetch(`${url}/v1/completions`, { method: "POST", headers, body, signal: gone.signal });
    await until(() => engine.rows === 2);
    assert.equal(await metric('longrun_serve_choices{state="running"}'), 2);
    gone.abort();
    await asked.then((response) => response.text()).catch(() => {});
    await until(() => engine.rows === 0);
    await until(async () => (await metric('longrun_serve_choices{state="running"}')) === 0);
  }
  assert.equal(await metric('longrun_serve_choices_total{end="abandoned"}'), 4);
  assert.equal(await metric('longrun_serve_requests_total{endpoint="completions",status="hung up"}'), 2);
});

/** Requests 128 choices of 900 tokens, more than the kernel buffers for a client, and reads nothing. */
function askWithoutReading(port: number, stream: boolean) {
  const messages = [{ role: "user", content: "hi" }];
  const body = JSON.stringify({ messages, n: 128, max_tokens: 900, logprobs: true, stream });
  const socket = connect(port, "127.0.0.1");
  const head = `host: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n`;
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\n${head}\r\n${body}`);
  socket.pause();
  socket.on("error", () => {});
  return socket;
}

test("no part of a request stays in memory, also if its client hangs up", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const engine = new FakeEngine(1);
  const { server } = await started({ maxWaiting: 1000 }, engine);
  // fetch keeps data of its own requests in memory
  const agent = new http.Agent({ keepAlive: true, maxSockets: 20 });
  const headers = { "content-type": "application/json" };
  const ask = (fields: object, hangsUp: boolean) =>
    new Promise<void>((resolve) => {
      const where = { agent, port: server.port, path: "/v1/completions", method: "POST", headers };
      const request = http.request(where, (response) => {
        if (hangsUp) request.destroy();
        response.resume();
        response.once("close", resolve);
        response.on("error", () => {});
      });
      request.on("error", () => {});
      request.end(JSON.stringify({ prompt: "hi", ...fields }));
    });
  const heapAfter = async (rounds: number): Promise<number> => {
    for (let round = 0; round < rounds; round++) {
      const asks = Array.from({ length: 20 }, (_, i) =>
        i % 2 === 0
          ? ask({ max_tokens: 900, stream: true }, true)
          : ask({ max_tokens: 5, logprobs: 1, stop: ["\\n"] }, false),
      );
      await Promise.all(asks);
    }
    await until(() => engine.rows === 0);
    await sleep(50);
    collect();
    return process.memoryUsage().heapUsed;
  };
  await heapAfter(100); // for compiled code, and tables that grow once
  const before = await heapAfter(5);
  const grown = (await heapAfter(50)) - before;
  agent.destroy();
  assert.ok(grown < 1_000_000, `${grown} bytes more after 1,000 requests`);
});

test("a client that does not read its stream is disconnected", async () => {
  const engine = new FakeEngine();
  const { server, metric } = await started({ limits: { unreadBytes: 100_000 } }, engine);
  const socket = askWithoutReading(server.port, true);
  await until(() => engine.rows === 128);
  await until(() => engine.rows === 0);
  assert.equal(engine.aborted, 128);
  assert.equal(await metric('longrun_serve_requests_total{endpoint="chat/completions",status="hung up"}'), 1);
  socket.destroy();
});

test("a client that does not read its whole answer is disconnected", async () => {
  const engine = new FakeEngine();
  const { server, metric } = await started({ limits: { unreadSeconds: 0.2 } }, engine);
  const socket = askWithoutReading(server.port, false);
  await until(
    async () => (await metric('longrun_serve_requests_total{endpoint="chat/completions",status="hung up"}')) === 1,
  );
  assert.equal(engine.aborted, 0);
  socket.destroy();
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

test("a server that ends finishes running requests, refuses new ones and cuts off slow ones", async () => {
  const engine = new FakeEngine(20);
  const { server, post, url } = await started({ limits: { drainSeconds: 1 } }, engine);
  const kept = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const get = () =>
    new Promise<{ status: number; connection: string | undefined }>((resolve, reject) => {
      const request = http.get(`${url}/health`, { agent: kept }, (response) => {
        response.resume();
        response.on("end", () => resolve({ status: response.statusCode!, connection: response.headers.connection }));
      });
      request.on("error", reject);
    });
  assert.equal((await get()).status, 200);
  const short = post({ max_tokens: 10, stream: true });
  const long = post({ max_tokens: 900 });
  await until(() => engine.rows === 2);
  const begun = performance.now();
  const ended = server.end();
  await assert.rejects(get(), "idle connections are closed, and no new ones are accepted");
  const streamed = await (await short).text();
  assert.match(streamed, /\[DONE\]/);
  await assert.rejects(long);
  await ended;
  const seconds = (performance.now() - begun) / 1000;
  assert.ok(seconds > 0.9 && seconds < 3, `${seconds} s`);
  await until(() => engine.rows === 0);
  servers.splice(servers.indexOf(server), 1);
});

test("a server that ends does not wait for connections that clients keep open", async () => {
  const engine = new FakeEngine(20);
  const { server, post } = await started({ limits: { drainSeconds: 60 } }, engine);
  const asked = post({ max_tokens: 20, stream: true });
  await until(() => engine.rows === 1);
  const begun = performance.now();
  const ended = server.end();
  assert.match(await (await asked).text(), /\[DONE\]/);
  await ended;
  const seconds = (performance.now() - begun) / 1000;
  assert.ok(seconds < 3, `${seconds} s`);
  servers.splice(servers.indexOf(server), 1);
});

test("a failing engine gives 500, an event in a stream and one logged line without the prompt", async () => {
  const engine = new FakeEngine(2);
  const { url, post, faults, failures } = await started({}, engine);
  const stream = await post({ prompt: "my own words", max_tokens: 500, stream: true });
  engine.failure = new Error("a worker has ended") as never;
  const events = (await stream.text()).split("\n\n").filter(Boolean);
  assert.equal(JSON.parse(events.at(-1)!.replace("data: ", "")).error.message, "the engine failed: a worker has ended");
  const { status, type } = await errorOf(await post({ max_tokens: 1 }));
  assert.deepEqual([status, type], [500, "server_error"]);
  assert.deepEqual(failures[0], engine.failure);
  assert.ok(
    faults.length > 0 && faults.every((line) => line === "a request failed: a worker has ended"),
    String(faults),
  );
  const health = await fetch(`${url}/health`);
  assert.deepEqual([health.status, await health.json()], [503, { status: "a worker has ended" }]);
});
