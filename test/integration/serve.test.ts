/** `longrun serve` with OpenAI's own client, the policy of the quickstart and a real engine. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";
import { PROJECTIONS, seedFor, startEngine } from "../../learner/engine/index.ts";
import { threadsDieWith } from "./dying-thread.fixture.ts";
import { CLI, COMMAND, folder, POLICY, serve, tokenizer } from "./serve.fixture.ts";

const KEY = "a-key";
const messages = [{ role: "user" as const, content: "Predict the price." }];

describe("OpenAI's client", () => {
  let server: Awaited<ReturnType<typeof serve>>;
  let client: OpenAI;
  before(async () => {
    server = await serve([COMMAND], ["--model", POLICY, "--served-model-name", "tiny"], { LONGRUN_API_KEY: KEY });
    client = new OpenAI({ baseURL: server.url, apiKey: KEY, maxRetries: 0 });
  });

  const metric = async (name: string): Promise<number> => {
    // A kept-alive metrics request would reuse a client's idle connection and stop it from timing out.
    const answer = await fetch(new URL("/metrics", server.url), { headers: { connection: "close" } });
    const text = await answer.text();
    return Number(
      text
        .split("\n")
        .find((line) => line.startsWith(`${name} `))
        ?.split(" ")
        .at(-1),
    );
  };

  test("The first lines name the model, the address and an example, and no key", () => {
    assert.match(server.lines[0]!, /^Serving tiny at http:\/\/127\.0\.0\.1:\d+\/v1: 64 slots of 1024 tokens on cpu$/);
    assert.match(server.lines[1]!, /^Try: curl http\S+\/chat\/completions .*\$LONGRUN_API_KEY/);
    assert.doesNotMatch(server.lines.join(), new RegExp(KEY));
  });

  test("The client lists and retrieves the served model", async () => {
    const { data } = await client.models.list();
    assert.deepEqual(
      data.map(({ id }) => id),
      ["tiny"],
    );
    assert.equal((await client.models.retrieve("tiny")).owned_by, "longrun");
  });

  test("A chat returns the text, log-probs and usage of the engine", async () => {
    const answer = await client.chat.completions.create({
      model: "tiny",
      messages,
      seed: 5,
      max_tokens: 40,
      logprobs: true,
    });
    await using engine = await engineOf();
    const prompt = tokenizer.encodeChat(messages);
    const options = { seeds: [seedFor(5, "choice", 0)], temperature: 1, topP: 1, maxNewTokens: 40 };
    const [{ response, logProbs, finished }] = (await engine.generate([prompt], options)) as [
      { response: Int32Array; logProbs: Float32Array; finished: boolean },
    ];
    const [choice] = answer.choices;
    assert.equal(choice!.message.content, tokenizer.decode(response));
    assert.equal(choice!.finish_reason, finished ? "stop" : "length");
    assert.deepEqual(
      choice!.logprobs!.content!.map(({ logprob }) => logprob),
      [...logProbs],
    );
    assert.deepEqual(answer.usage, {
      ...{ prompt_tokens: prompt.length, completion_tokens: response.length },
      total_tokens: prompt.length + response.length,
    });
  });

  test("The pieces of a streamed chat add up to the whole one, with its log-probs and its usage", async () => {
    const asked = { model: "tiny", messages, seed: 6, max_tokens: 60, logprobs: true, n: 2 };
    const whole = await client.chat.completions.create(asked);
    const stream = await client.chat.completions.create({
      ...asked,
      ...{ stream: true, stream_options: { include_usage: true } },
    });
    const texts = ["", ""];
    const logProbs: number[][] = [[], []];
    const roles: unknown[] = [];
    let usage: unknown;
    for await (const chunk of stream) {
      for (const { index, delta, logprobs } of chunk.choices) {
        texts[index] += delta.content ?? "";
        if (delta.role) roles.push(delta.role);
        logProbs[index]!.push(...(logprobs?.content ?? []).map(({ logprob }) => logprob));
      }
      usage = chunk.usage;
    }
    assert.deepEqual(
      texts,
      whole.choices.map(({ message }) => message.content),
    );
    assert.notEqual(texts[0], texts[1]);
    assert.deepEqual(
      logProbs,
      whole.choices.map(({ logprobs }) => logprobs!.content!.map(({ logprob }) => logprob)),
    );
    assert.deepEqual(roles, ["assistant", "assistant"]);
    assert.deepEqual(usage, whole.usage);
    const helped = client.chat.completions.stream(asked);
    assert.equal((await helped.finalChatCompletion()).choices[0]!.message.content, texts[0]);
  });

  test("A completion of a text equals the one of its tokens, also beside another prompt", async () => {
    const asked = { model: "tiny", seed: 9, max_tokens: 20 };
    const prompt = "import pandas";
    const textOf = async (given: string | number[] | string[]) =>
      (await client.completions.create({ ...asked, prompt: given })).choices.map(({ text }) => text);
    const [text] = await textOf(prompt);
    assert.deepEqual(await textOf([...tokenizer.encode(prompt)]), [text]);
    assert.deepEqual((await textOf(["import numpy", prompt]))[1], text);
  });

  test("A completion returns log-probs at the sampling temperature", async () => {
    const asked = { model: "tiny", prompt: "import", max_tokens: 12, seed: 1, logprobs: 1, temperature: 0 };
    const { choices, usage } = await client.completions.create(asked);
    const [{ text, logprobs }] = choices as [OpenAI.CompletionChoice];
    assert.equal(logprobs!.tokens!.length, usage!.completion_tokens);
    assert.ok(logprobs!.token_logprobs!.every((each) => each <= 0));
    for (const [i, offset] of logprobs!.text_offset!.entries())
      assert.ok(text.slice(offset).startsWith(logprobs!.tokens![i]!) || i === logprobs!.tokens!.length - 1);
  });

  test("Stop words cut the text, streamed or not", async () => {
    const asked = { model: "tiny", messages, seed: 5, max_tokens: 200 };
    const whole = (await client.chat.completions.create(asked)).choices[0]!.message.content!;
    const stop = ["no such word", whole.slice(30, 34)];
    const expected = whole.slice(0, whole.indexOf(stop[1]!));
    const cut = await client.chat.completions.create({ ...asked, stop });
    assert.equal(cut.choices[0]!.message.content, expected);
    assert.equal(cut.choices[0]!.finish_reason, "stop");
    assert.ok(cut.usage!.completion_tokens < 30);
    let streamed = "";
    for await (const { choices } of await client.chat.completions.create({ ...asked, stop, stream: true }))
      streamed += choices[0]?.delta.content ?? "";
    assert.equal(streamed, expected);
  });

  test("The client recognises each error of the server", async () => {
    const wrong = new OpenAI({ baseURL: server.url, apiKey: "another", maxRetries: 0 });
    await assert.rejects(wrong.models.list(), OpenAI.AuthenticationError);
    const asked = { model: "tiny", messages };
    await assert.rejects(client.chat.completions.create({ ...asked, model: "gpt" }), OpenAI.NotFoundError);
    await assert.rejects(client.chat.completions.create({ ...asked, temperature: 3 }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.param, "temperature");
      return true;
    });
    await assert.rejects(client.chat.completions.create({ ...asked, max_tokens: 2000 }), {
      ...{ status: 400, code: "context_length_exceeded" },
    });
  });

  test("Among 64 clients of which some hang up, the others get their answers, and no slot or descriptor leaks", async () => {
    const CLIENTS = 64;
    const hangsUp = (i: number) => i % 3 === 2;
    const ask = async (i: number, signal?: AbortSignal) => {
      const asked = { model: "tiny", messages: [{ role: "user" as const, content: `Predict ${i % 7}.` }] };
      const options = { ...asked, seed: i, max_tokens: 40 + i, temperature: i % 5 === 0 ? 0.7 : 1, logprobs: true };
      if (i % 2 === 0) {
        const { choices } = await client.chat.completions.create(options, { signal });
        const [{ message, logprobs }] = choices as [OpenAI.ChatCompletion.Choice];
        return { text: message.content, logProbs: logprobs!.content!.map(({ logprob }) => logprob) };
      }
      let text = "";
      const logProbs: number[] = [];
      for await (const { choices } of await client.chat.completions.create({ ...options, stream: true }, { signal })) {
        text += choices[0]?.delta.content ?? "";
        logProbs.push(...(choices[0]?.logprobs?.content ?? []).map(({ logprob }) => logprob));
        if (signal && text.length > i) return undefined; // which closes the connection
      }
      return { text, logProbs };
    };
    const alone: Awaited<ReturnType<typeof ask>>[] = [];
    for (let i = 0; i < CLIENTS; i++) alone.push(hangsUp(i) ? undefined : await ask(i));

    const abandoned = () => metric('longrun_serve_choices_total{end="abandoned"}');
    const running = () => metric('longrun_serve_choices{state="running"}');
    const round = async () => {
      const before = await abandoned();
      const gone = new AbortController();
      const asked = Array.from({ length: CLIENTS }, (_, i) => {
        if (!hangsUp(i)) return ask(i);
        return ask(i, gone.signal).then(
          () => undefined,
          () => undefined,
        );
      });
      for (let tries = 0; (await running()) < CLIENTS / 2 && tries < 200; tries++) await sleep(5);
      gone.abort(); // long before the answers arrive
      assert.deepEqual(await Promise.all(asked), alone);
      for (let tries = 0; (await running()) > 0 && tries < 100; tries++) await sleep(20);
      assert.equal(await running(), 0);
      return (await abandoned()) - before;
    };
    const files = () => metric("process_open_fds");
    const before = await files();
    assert.ok((await round()) > 5, "some have hung up while their rows ran");
    for (let i = 0; i < 3; i++) await round();
    // connections that clients keep open are closed after a while; one or two belong to this test's requests
    const left = async () => (await files()) - before;
    for (let tries = 0; (await left()) > 2 && tries < 60; tries++) await sleep(500);
    assert.ok((await left()) <= 2, `${await left()} descriptors more after ${4 * CLIENTS} clients`);
    assert.equal(server.stderr(), "");
  });
});

async function engineOf(adapter?: string) {
  const lora = { rank: 2, alpha: 2, targets: adapter ? PROJECTIONS : [], seed: 0, ...(adapter && { folder: adapter }) };
  const engine = await startEngine({ model: POLICY, threads: 1, adapter: lora });
  return { ...engine, [Symbol.asyncDispose]: () => engine.close() };
}

test("SIGTERM ends the server with 0 after running requests, and Ctrl-C ends it with 130", async () => {
  const server = await serve([CLI, "serve"], ["--model", POLICY]);
  const client = new OpenAI({ baseURL: server.url, apiKey: "none", maxRetries: 0 });
  const asked = { model: "policy", prompt: "import", max_tokens: 1000, seed: 1 };
  let reason: string | null | undefined;
  for await (const { choices } of await client.completions.create({ ...asked, stream: true })) {
    if (reason === undefined) server.child.kill("SIGTERM");
    reason = choices[0]!.finish_reason ?? null;
  }
  assert.ok(reason, "the stream has ended");
  assert.deepEqual(await server.exited, [0, null]);
  assert.match(server.stderr(), /^ending: running requests have 30 seconds/);
  const other = await serve([COMMAND], ["--model", POLICY]);
  other.child.kill("SIGINT");
  assert.deepEqual(await other.exited, [130, null]);
});

test("An engine that dies ends the server with status 1 and the reason, though no request came", async () => {
  const dead = join(folder, "dead");
  const server = await serve([...threadsDieWith(dead), COMMAND], ["--model", POLICY]);
  writeFileSync(dead, "");
  assert.deepEqual(await Promise.race([server.exited, sleep(20_000)]), [1, null], server.stderr());
  assert.match(server.stderr(), /^(the engine's thread|worker 1 of the engine) .*ended \(3\)$/m);
});
