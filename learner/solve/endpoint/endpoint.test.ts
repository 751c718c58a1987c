import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import type { EndpointSettings } from "../../../proto/solve.ts";
import { decodeText, encodeMessages } from "./bytes.ts";
import { completionsOf, Endpoint, type EndpointOptions } from "./endpoint.ts";
import { EndpointError } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import { waitSeconds } from "./retry.ts";
import { completion, json, type Scripted, scriptedServer } from "./server.fixture.ts";
import { UsageLog } from "./usage.ts";

const home = mkdtempSync(join(tmpdir(), "longrun-endpoint-"));
after(() => rmSync(home, { recursive: true, force: true }));

const MESSAGES = [
  { role: "system" as const, content: "Solve." },
  { role: "user" as const, content: "Preise in € schätzen" },
];
const HOW = { temperature: 0.5, topP: 1, maxNewTokens: 64 };
const FAST = {
  attempts: 3,
  firstWaitSeconds: 0.01,
  longestWaitSeconds: 0.02,
  retryAfterSeconds: 0.05,
  requestSeconds: 5,
};
let logs = 0;

function endpointOf(
  url: string,
  change: Partial<Omit<EndpointOptions, "settings">> & { settings?: Partial<EndpointSettings> } = {},
) {
  const faults: string[] = [];
  const path = join(home, `requests-${logs++}.jsonl`);
  const settings = { url, model: "large", concurrency: 4, body: {}, ...change.settings };
  const usage = new UsageLog(path, settings.prices);
  const { signal = new AbortController().signal, key, limits } = change;
  const endpoint = new Endpoint({
    ...{ settings, key, usage, signal, limits: { ...FAST, ...limits } },
    onFault: (line) => faults.push(line),
  });
  const ask = (count = 1) =>
    endpoint.generate(Array(count).fill(encodeMessages(MESSAGES)), {
      ...HOW,
      seeds: Array.from({ length: count }, (_, i) => 2 ** 40 + i),
    });
  return { endpoint, ask, faults, usage, path };
}

describe("An endpoint", () => {
  test("gets the model, the messages, the sampling, a limit and a seed, and the key in a header alone", async () => {
    using server = await scriptedServer(completion("A plan.\n"));
    const { ask, usage, path } = endpointOf(server.url, {
      key: "sk-secret",
      settings: { prices: { input: 2, output: 10 } },
    });
    const [answer] = await ask();
    assert.equal(decodeText(answer!.response), "A plan.\n");
    assert.deepEqual([answer!.finished, answer!.logProbs.length], [true, answer!.response.length]);
    const [{ path: asked, headers, body }] = server.asked as [(typeof server.asked)[0]];
    assert.equal(asked, "/v1/chat/completions");
    assert.equal(headers.authorization, "Bearer sk-secret");
    assert.deepEqual(body, { model: "large", messages: MESSAGES, temperature: 0.5, max_tokens: 64, seed: 0 });
    assert.deepEqual(Object.keys(headers).sort(), [
      "accept",
      "authorization",
      "connection",
      "content-length",
      "content-type",
      "host",
    ]);
    assert.deepEqual(usage.usage, { answers: 1, faults: 0, promptTokens: 100, answerTokens: 20, cost: 0.0004 });
    assert.doesNotMatch(readFileSync(path, "utf8"), /sk-secret|Preise|A plan/);
  });

  test("gets further fields of the body, others in their place, and none for null", async () => {
    using server = await scriptedServer(completion("x"));
    const { ask } = endpointOf(server.url, {
      settings: { body: { max_tokens: null, max_completion_tokens: 9, seed: null, temperature: 1 } },
    });
    await ask();
    assert.deepEqual(server.asked[0]!.body, {
      model: "large",
      messages: MESSAGES,
      temperature: 1,
      max_completion_tokens: 9,
    });
    assert.equal(server.asked[0]!.headers.authorization, undefined);
  });

  test("is asked again after 429, 500, answers that are no JSON or have no message, and broken connections", async () => {
    const broken: Scripted[] = [
      json(429, { error: { message: "slow down" } }, { "retry-after": "0.01" }),
      json(500, { error: "oops" }),
      (response) => response.writeHead(200).end("<html>not JSON"),
      json(200, { choices: [] }),
      (response) => response.destroy(),
      (response) => response.writeHead(200, { "content-length": "99" }).write("{", () => response.destroy()),
    ];
    using server = await scriptedServer(...broken, completion("at last"));
    const { ask, faults, usage, path } = endpointOf(server.url, { limits: { attempts: 7 } });
    const [answer] = await ask();
    assert.equal(decodeText(answer!.response), "at last");
    assert.equal(server.asked.length, 7);
    const expected = [
      /429: slow down; trying again/,
      /500: oops/,
      /no JSON/,
      /choices\[0\]\.message/,
      /hang up|reset/,
      /aborted|reset/,
    ];
    for (const [index, what] of expected.entries()) assert.match(faults[index]!, what);
    assert.deepEqual(usage.usage, { answers: 1, faults: 6, promptTokens: 100, answerTokens: 20 });
    const lines = readFileSync(path, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.equal(new Set(lines.map(({ seed }) => seed)).size, 1, "all tries have the request's seed");
  });

  test("that fails too often ends the search, and no further request is sent", async () => {
    using server = await scriptedServer(json(503, { message: "overloaded" }));
    const { ask } = endpointOf(server.url, { settings: { concurrency: 1 } });
    await assert.rejects(ask(5), (error: Error) => {
      assert.ok(error instanceof EndpointError);
      assert.equal(error.message, "the endpoint answered 503: overloaded, after 3 tries; go on later");
      return true;
    });
    await sleep(50);
    assert.equal(server.asked.length, 3);
  });

  const refusals: [status: number, body: unknown, message: RegExp][] = [
    [
      401,
      { error: { message: "Incorrect API key: sk-secret" } },
      /401: Incorrect API key: \[LONGRUN_ENDPOINT_KEY\]; check LONGRUN_ENDPOINT_KEY$/,
    ],
    [
      400,
      { error: { message: "context length exceeded" } },
      /400: context length exceeded; check --body, and lower model\.maxPromptTokens/,
    ],
    [404, "nothing here", /404: "nothing here"; check --endpoint/],
    [302, "", /302: ""; check --endpoint, --model-name and --body$/],
  ];
  for (const [status, body, message] of refusals)
    test(`that answers ${status} is not asked again`, async () => {
      using server = await scriptedServer(json(status, body, { location: "http://127.0.0.1:9/" }));
      const { ask, path } = endpointOf(server.url, { key: "sk-secret" });
      await assert.rejects(ask(), message);
      assert.equal(server.asked.length, 1);
      assert.doesNotMatch(readFileSync(path, "utf8"), /sk-secret/);
    });

  test("may repeat the key, which is then in no fault, cause or stack", async () => {
    const cut = `${"x".repeat(292)} sk-secret`; // the message is shown up to the middle of the key
    const echoes: Scripted[] = [
      json(401, { error: { message: "Incorrect API key: sk-secret" } }),
      json(503, { error: { message: "sk-secret" } }),
      (response) => response.writeHead(200).end("sk-secret"),
      json(401, { error: { message: cut } }),
    ];
    for (const echo of echoes) {
      using server = await scriptedServer(echo);
      const { ask, faults, path } = endpointOf(server.url, { key: "sk-secret" });
      const fault: unknown = await ask().catch((error: unknown) => error);
      assert.ok(fault instanceof EndpointError);
      const shown = [inspect(fault), ...faults, readFileSync(path, "utf8")].join("\n");
      assert.doesNotMatch(shown, /sk-s/);
    }
  });

  test("that is slow or sends too much is given up, and asked again", async () => {
    const slow: Scripted = (response) => response.writeHead(200).write("{");
    const huge: Scripted = (response) => response.writeHead(200).end(`{"choices":"${"x".repeat(5000)}"}`);
    using server = await scriptedServer(slow, huge, completion("short"));
    const { ask, faults } = endpointOf(server.url, { limits: { requestSeconds: 0.2, answerBytes: 4000 } });
    const [answer] = await ask();
    assert.equal(decodeText(answer!.response), "short");
    assert.match(faults[0]!, /no whole answer in 0\.2 s/);
    assert.match(faults[1]!, /more than 4000 bytes/);
  });

  test("gets at most `concurrency` requests side by side, and each answer is told when it is there", async () => {
    const late: Scripted = (response, asked) => setTimeout(() => completion("x")(response, asked), 30);
    using server = await scriptedServer(late);
    const { endpoint } = endpointOf(server.url, { settings: { concurrency: 3 } });
    const told: number[] = [];
    const prompts = Array(8).fill(encodeMessages(MESSAGES));
    await endpoint.generate(prompts, { ...HOW, seeds: [...prompts.keys()] }, (index) => told.push(index));
    assert.deepEqual(told.toSorted(), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert.equal(server.mostOpen(), 3);
  });

  test("is left at once when the search stops, also while it waits for another try", async () => {
    using server = await scriptedServer(json(429, {}, { "retry-after": "60" }));
    const stop = new AbortController();
    const { ask } = endpointOf(server.url, { signal: stop.signal, limits: { retryAfterSeconds: 60 } });
    const asked = ask();
    while (server.asked.length === 0) await sleep(5);
    await sleep(20);
    stop.abort(new Error("stopped"));
    await assert.rejects(asked, /^Error: stopped$/);
  });

  const thoughts: [name: string, content: string, expected: string][] = [
    ["opened by the model's template", "first ```python\n1\n```\n</think>\n\nA plan.", "A plan."],
    ["cut within them", "<think>first ```python\n1\n```\n", ""],
    [
      "none: the tag is in a program",
      'A plan.\n```python\nx = "</think>"\n```',
      'A plan.\n```python\nx = "</think>"\n```',
    ],
  ];
  for (const [name, content, expected] of thoughts)
    test(`may answer with thoughts, ${name}`, async () => {
      using server = await scriptedServer(completion(content));
      const [answer] = await endpointOf(server.url).ask();
      assert.equal(decodeText(answer!.response), expected);
    });

  test("may answer with parts, thoughts, nothing, or a cut text", async () => {
    using server = await scriptedServer(
      completion([{ type: "text", text: "a" }, { type: "other" }, { type: "text", text: "b" }]),
      completion("<think>first ```python\n1\n```</think>\nA plan."),
      completion(null),
      completion("cut", { reason: "length", usage: {} }),
    );
    const { ask, usage } = endpointOf(server.url);
    const answers = [];
    for (let i = 0; i < 4; i++) answers.push(...(await ask()));
    assert.deepEqual(
      answers.map(({ response }) => decodeText(response)),
      ["ab", "A plan.", "", "cut"],
    );
    assert.deepEqual(
      answers.map(({ finished }) => finished),
      [true, true, true, false],
    );
    assert.deepEqual(usage.usage, { answers: 4, faults: 0, promptTokens: 300, answerTokens: 60 });
  });
});

test("what earlier processes asked is counted, also after a torn line", () => {
  const path = join(home, "torn.jsonl");
  const line = { at: "2026-01-01T00:00:00.000Z", seed: 1, seconds: 1, promptTokens: 5, answerTokens: 7 };
  const first = new UsageLog(path, undefined);
  first.add(line);
  first.add({ ...line, promptTokens: 0, answerTokens: 0, fault: "429" });
  appendFileSync(path, '{"at":"2026');
  const second = new UsageLog(path, { input: 1e6, output: 0 });
  assert.deepEqual(second.usage, { answers: 1, faults: 1, promptTokens: 5, answerTokens: 7, cost: 5 });
  second.add(line);
  assert.deepEqual(new UsageLog(path, undefined).usage, { answers: 2, faults: 1, promptTokens: 10, answerTokens: 14 });
});

test("waits grow to a limit, are cut at random by half, and follow the server up to a limit", () => {
  const waits = [1, 2, 3, 7, 8].map((attempt) => waitSeconds(attempt, undefined, LIMITS, 0));
  assert.deepEqual(waits, [1, 2, 4, 60, 60]);
  assert.equal(waitSeconds(3, undefined, LIMITS, 1), 2);
  assert.equal(waitSeconds(1, 20, LIMITS, 0.5), 20);
  assert.equal(waitSeconds(1, 9999, LIMITS, 0.5), 300);
});

test("the address of completions keeps a query", () => {
  assert.equal(
    completionsOf("https://a.example/openai/v1/?api-version=1").href,
    "https://a.example/openai/v1/chat/completions?api-version=1",
  );
});
