/** Tests clients that hang up or do not read, the memory of requests, and the server's end. */
import assert from "node:assert/strict";
import http from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Generating } from "./choice.ts";
import { FakeEngine, started, until } from "./server.fixture.ts";

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

test("a choice whose row ends as its client hangs up counts as abandoned", async () => {
  const asked = Promise.withResolvers<AbortSignal>();
  // the engine has ended the row before it hears of the abort
  const generate: Generating["generate"] = async (_prompts, { signal }, listener) => {
    asked.resolve(signal!);
    await new Promise((resolve) => signal!.addEventListener("abort", resolve));
    listener?.(0, { response: Int32Array.of(5), logProbs: Float32Array.of(-1), finished: true, ended: true });
    return [];
  };
  const { url, metric } = await started({}, { generate, failure: undefined });
  const gone = new AbortController();
  const headers = { "content-type": "application/json" };
  const post = { method: "POST", headers, body: JSON.stringify({ prompt: "hi" }), signal: gone.signal };
  const answer = fetch(`${url}/v1/completions`, post).catch(() => {});
  await asked.promise;
  gone.abort();
  await answer;
  await until(async () => (await metric('longrun_serve_choices{state="running"}')) === 0);
  assert.equal(await metric('longrun_serve_choices_total{end="abandoned"}'), 1);
  assert.doesNotMatch(await (await fetch(`${url}/metrics`)).text(), /end="(null|undefined)"/);
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
  const { server, metric } = await started({ limits: { unreadSeconds: 1 } }, engine);
  const socket = askWithoutReading(server.port, false);
  // on a busy machine this test reads its own answer too late as well, and asks again
  const hungUp = () => metric('longrun_serve_requests_total{endpoint="chat/completions",status="hung up"}');
  await until(async () => (await hungUp().catch(() => 0)) === 1);
  assert.equal(engine.aborted, 0);
  socket.destroy();
});

test("a server that ends finishes running requests, refuses new ones and cuts off slow ones", async () => {
  const engine = new FakeEngine(20);
  const { post, url, end } = await started({ limits: { drainSeconds: 1 } }, engine);
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
  const ended = end();
  await assert.rejects(get(), "idle connections are closed, and no new ones are accepted");
  const streamed = await (await short).text();
  assert.match(streamed, /\[DONE\]/);
  await assert.rejects(long);
  await ended;
  const seconds = (performance.now() - begun) / 1000;
  assert.ok(seconds > 0.9 && seconds < 3, `${seconds} s`);
  await until(() => engine.rows === 0);
});

test("a server that ends does not wait for connections that clients keep open", async () => {
  const engine = new FakeEngine(20);
  const { post, end } = await started({ limits: { drainSeconds: 10 } }, engine);
  const asked = post({ max_tokens: 20, stream: true });
  await until(() => engine.rows === 1);
  const begun = performance.now();
  const ended = end();
  assert.match(await (await asked).text(), /\[DONE\]/);
  await ended;
  const seconds = (performance.now() - begun) / 1000;
  assert.ok(seconds < 3, `${seconds} s`);
});
