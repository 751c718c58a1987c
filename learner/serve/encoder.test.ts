/** Prompts that take long to tokenize: everything else goes on, and a deadline ends them. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { EncoderThread } from "./encoder.ts";
import { errorOf, model, started, tokenizer } from "./server.fixture.ts";

/** A word of this pattern takes a time that doubles with each `a`. */
const HOSTILE = { type: "Split", pattern: { Regex: "(a+)+b" }, behavior: "Isolated", invert: false };
const { tokenizerConfig } = tokenizer.files;
const hostile = { tokenizer: { ...tokenizer.files.tokenizer, pre_tokenizer: HOSTILE }, tokenizerConfig };
const encoder = new EncoderThread(hostile);
after(() => encoder.close());
const ENDLESS = "a".repeat(60);
const options = { addSpecialTokens: false, milliseconds: 30_000 };

test("a pattern that never ends in tokenizer.json ends at the deadline, and the next prompt is tokenized", async () => {
  const since = performance.now();
  const waits = encoder.encode(ENDLESS, { ...options, milliseconds: 300 });
  const next = encoder.encode("xy", options);
  await assert.rejects(waits, {
    message:
      "prompt of 60 characters took longer than 0.3 s to tokenize (tokenizeSeconds); shorten it, break it by spaces, or give its token ids",
    status: 400,
    param: "prompt",
  });
  assert.equal(tokenizer.decode((await next).tokens), "xy");
  assert.ok(performance.now() - since < 20_000);
  const messages = [{ role: "user", content: ENDLESS }] as const;
  await assert.rejects(encoder.encode(messages, { ...options, milliseconds: 300 }), { param: "messages" });
});

test("a client that hung up leaves the queue", async () => {
  const waits = encoder.encode(ENDLESS, { ...options, milliseconds: 300 });
  const reason = new Error("hung up");
  const gone = encoder.encode(ENDLESS, { ...options, signal: AbortSignal.abort(reason) });
  await assert.rejects(waits);
  await assert.rejects(gone, reason);
});

test("the server answers /health and other requests while a prompt takes long to tokenize", async () => {
  const { url, post } = await started({ model: { ...model, encoder }, limits: { tokenizeSeconds: 1.5 } });
  const slow = post({ prompt: ENDLESS }).then(errorOf);
  let longest = 0;
  let answers = 0;
  let done = false;
  slow.finally(() => {
    done = true;
  });
  while (!done) {
    const since = performance.now();
    assert.equal((await fetch(`${url}/health`)).status, 200);
    assert.equal((await post({ prompt: [5], max_tokens: 1 })).status, 200);
    longest = Math.max(longest, performance.now() - since);
    answers++;
  }
  const { status, message } = await slow;
  assert.equal(status, 400);
  assert.match(message, /took longer than 1\.5 s to tokenize/);
  assert.ok(answers >= 5 && longest < 1000, `${answers} answers, the slowest after ${longest} ms`);
});
