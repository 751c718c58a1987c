/** A server that is no vLLM, or that answers strangely: each answer is refused in one line that names the request and the remedy. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { after, describe, test } from "node:test";
import { GeneratorError } from "./errors.ts";
import { VllmBackend } from "./vllm-backend.ts";

const MODELS = { data: [{ id: "policy" }] };
const choice = (change: object) => ({
  choices: [{ finish_reason: "length", token_ids: [7], logprobs: { token_logprobs: [0] }, ...change }],
});

const ENDLESS = Symbol("an answer without end");
async function* endless() {
  for (;;) yield Buffer.alloc(1 << 20, "[");
}

/** What the server answers to each path: an object is sent as JSON, a text as it is. */
let answers: Record<string, unknown> = {};
const server = createServer((request, response) => {
  request.resume();
  const answer = answers[request.url!.split("?")[0]!];
  if (answer === ENDLESS) return void pipeline(Readable.from(endless()), response).catch(() => {});
  response.end(typeof answer === "string" ? answer : JSON.stringify(answer));
});
await once(server.listen(0, "127.0.0.1"), "listening");
const adapterFolder = mkdtempSync(join(tmpdir(), "longrun-vllm-"));
after(() => {
  server.close();
  rmSync(adapterFolder, { recursive: true });
});

const connect = () => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const vllm = { url, adapterFolder, modelName: "policy", slots: 1, device: "cpu" as const, onFault: () => {} };
  return VllmBackend.connect(vllm);
};
const refused = (action: () => Promise<unknown>, message: RegExp) =>
  assert.rejects(action, (error: Error) => {
    assert.ok(error instanceof GeneratorError, error.stack);
    assert.equal(error.code, "failed");
    assert.match(error.message, message);
    return true;
  });

describe("a vLLM is refused whose list of models", () => {
  for (const [what, answer] of [
    ["is no JSON", "<html>"],
    ["is null", null],
    ["is a text", '"policy"'],
    ["is missing", {}],
    ["is an object", { data: {} }],
    ["has a null", { data: [null] }],
    ["has a name that is a number", { data: [{ id: 5 }] }],
  ] as const)
    test(what, async () => {
      answers = { "/v1/models": answer };
      await refused(connect, /^vLLM's answer to \/v1\/models is .*; check the address that --vllm gives$/);
    });
});

describe("a vLLM is refused whose row", () => {
  for (const [what, answer, message] of [
    ["is no JSON", "<html>", /^vLLM's answer to \/v1\/completions is "<html>", not JSON; check/],
    ["is null", null, /has no token_ids/],
    ["has no list of choices", { choices: {} }, /has no token_ids/],
    ["is a null", { choices: [null] }, /has no token_ids/],
    ["has a text of tokens", choice({ token_ids: "7" }), /has no token_ids/],
    ["has a token that is a text", choice({ token_ids: ["7"] }), /token_ids \["7"\]/],
    ["has a negative token", choice({ token_ids: [-1] }), /token_ids \[-1\]/],
    ["has no log-probs", choice({ logprobs: null }), /gave 0 log-probs for 1 tokens/],
    ["has a text of log-probs", choice({ logprobs: { token_logprobs: "0" } }), /gave 0 log-probs for 1 tokens/],
    ["has too few log-probs", choice({ logprobs: { token_logprobs: [] } }), /gave 0 log-probs for 1 tokens/],
    ["has a log-prob that is a text", choice({ logprobs: { token_logprobs: ["0"] } }), /log-prob "0"/],
    ["has a positive log-prob", choice({ logprobs: { token_logprobs: [0.5] } }), /log-prob 0\.5/],
    ["ends by a number", choice({ finish_reason: 5 }), /finish_reason 5/],
  ] as const)
    test(what, async () => {
      answers = { "/v1/models": MODELS, "/v1/completions": answer };
      await refused(connect, message);
    });
});

test("a vLLM is refused whose weight version is no text", async () => {
  answers = { "/v1/models": MODELS, "/v1/completions": choice({}) };
  const backend = await connect();
  for (const version of [null, 5, {}, "<html>", { weight_version: 7 }]) {
    answers["/weight_info"] = version;
    const folder = mkdtempSync(join(adapterFolder, "weights-"));
    const name = { policyVersion: 1, digest: "0".repeat(64), kind: "adapter" } as const;
    await refused(() => backend.load(folder, name), /^vLLM's answer to \/weight_info is .*; check the address/);
  }
});

test("an answer without end is cut", async () => {
  answers = { "/v1/models": ENDLESS };
  await refused(connect, /does not answer: it has more than 67108864 bytes/);
});
