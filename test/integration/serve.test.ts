/** `longrun serve` with OpenAI's own client, the policy of the quickstart and a real engine. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import OpenAI from "openai";
import { PROJECTIONS, readTokenizer, seedFor, startEngine } from "../../learner/engine/index.ts";
import { threadsDieWith } from "./dying-thread.fixture.ts";

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const COMMAND = path("learner/commands/serve-command.ts");
const CLI = path("controller/cli.ts");
const POLICY = path("manifests/quickstart/policy");
const KEY = "a-key";
const tokenizer = readTokenizer(POLICY);
const messages = [{ role: "user" as const, content: "Predict the price." }];

const folder = mkdtempSync(join(tmpdir(), "longrun-serve-"));
const running: ChildProcess[] = [];
after(() => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the command and waits for its URL. */
async function serve(program: string[], args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [...program, ...args, "--port", "0", "--threads", "1", "--device", "cpu"], {
    env: { ...process.env, LONGRUN_API_KEY: "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.push(child);
  let stderr = "";
  child.stderr.on("data", (text: Buffer) => {
    stderr += text;
  });
  const lines: string[] = [];
  const ready = Promise.withResolvers<void>();
  createInterface(child.stdout).on("line", (line) => {
    lines.push(line);
    if (lines.length === 2) ready.resolve();
  });
  const exited = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  await Promise.race([ready.promise, exited.then(([status]) => assert.fail(`status ${status}: ${stderr}`))]);
  const url = / at (http\S+\/v1):/.exec(lines[0]!)![1]!;
  return { child, url, lines, exited, stderr: () => stderr };
}

/** Runs the command to its end, with a channel to its parent as `longrun` gives it. */
async function fails(...args: string[]): Promise<{ status: number; stderr: string }> {
  const child = spawn(process.execPath, [COMMAND, ...args], {
    env: { ...process.env, LONGRUN_API_KEY: "" },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    timeout: 60_000,
  });
  let stderr = "";
  child.stderr!.on("data", (text: Buffer) => {
    stderr += text;
  });
  const [status] = (await once(child, "close")) as [number];
  return { status, stderr };
}

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

  test("the lines to begin with", () => {
    assert.match(server.lines[0]!, /^Serving tiny at http:\/\/127\.0\.0\.1:\d+\/v1: 64 slots of 1024 tokens on cpu$/);
    assert.match(server.lines[1]!, /^Try: curl http\S+\/chat\/completions .*\$LONGRUN_API_KEY/);
    assert.doesNotMatch(server.lines.join(), new RegExp(KEY));
  });

  test("models", async () => {
    const { data } = await client.models.list();
    assert.deepEqual(
      data.map(({ id }) => id),
      ["tiny"],
    );
    assert.equal((await client.models.retrieve("tiny")).owned_by, "longrun");
  });

  test("a chat is what the engine generates", async () => {
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

  test("a streamed chat is the whole one in pieces, with its log-probs and its usage", async () => {
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

  test("a completion of a text, of its token ids, and beside another", async () => {
    const asked = { model: "tiny", seed: 9, max_tokens: 20 };
    const prompt = "import pandas";
    const textOf = async (given: string | number[] | string[]) =>
      (await client.completions.create({ ...asked, prompt: given })).choices.map(({ text }) => text);
    const [text] = await textOf(prompt);
    assert.deepEqual(await textOf([...tokenizer.encode(prompt)]), [text]);
    assert.deepEqual((await textOf(["import numpy", prompt]))[1], text);
  });

  test("log-probs of a completion, at the sampling temperature", async () => {
    const asked = { model: "tiny", prompt: "import", max_tokens: 12, seed: 1, logprobs: 1, temperature: 0 };
    const { choices, usage } = await client.completions.create(asked);
    const [{ text, logprobs }] = choices as [OpenAI.CompletionChoice];
    assert.equal(logprobs!.tokens!.length, usage!.completion_tokens);
    assert.ok(logprobs!.token_logprobs!.every((each) => each <= 0));
    for (const [i, offset] of logprobs!.text_offset!.entries())
      assert.ok(text.slice(offset).startsWith(logprobs!.tokens![i]!) || i === logprobs!.tokens!.length - 1);
  });

  test("stop words, streamed or not", async () => {
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

  test("errors are those that the client knows", async () => {
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

  test("64 clients at once, of which some hang up: the others get what they get alone, and no slot or descriptor is left", async () => {
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
      gone.abort(); // long before the answers are there
      assert.deepEqual(await Promise.all(asked), alone);
      for (let tries = 0; (await running()) > 0 && tries < 100; tries++) await sleep(20);
      assert.equal(await running(), 0);
      return (await abandoned()) - before;
    };
    const files = () => metric("process_open_fds");
    const before = await files();
    assert.ok((await round()) > 5, "some have hung up while their rows ran");
    for (let i = 0; i < 3; i++) await round();
    // connections that clients keep open are closed after a while; one or two are those of this test's questions
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

test("SIGTERM ends it with 0 after running requests, Ctrl-C with 130", async () => {
  const server = await serve([CLI, "serve"], ["--model", POLICY]);
  const client = new OpenAI({ baseURL: server.url, apiKey: "none", maxRetries: 0 });
  const asked = { model: "policy", prompt: "import", max_tokens: 1000, seed: 1 };
  let reason: string | null | undefined;
  for await (const { choices } of await client.completions.create({ ...asked, stream: true })) {
    if (reason === undefined) server.child.kill("SIGTERM");
    reason = choices[0]!.finish_reason ?? null;
  }
  assert.ok(reason, "the stream came to its end");
  assert.deepEqual(await server.exited, [0, null]);
  assert.match(server.stderr(), /^ending: running requests have 30 seconds/);
  const other = await serve([COMMAND], ["--model", POLICY]);
  other.child.kill("SIGINT");
  assert.deepEqual(await other.exited, [130, null]);
});

test("an engine that dies ends it with status 1 and the reason, though nothing was asked of it", async () => {
  const dead = join(folder, "dead");
  const server = await serve([...threadsDieWith(dead), COMMAND], ["--model", POLICY]);
  writeFileSync(dead, "");
  assert.deepEqual(await Promise.race([server.exited, sleep(20_000)]), [1, null], server.stderr());
  assert.match(server.stderr(), /^(the engine's thread|worker 1 of the engine) .*ended \(3\)$/m);
});

describe("--adapter and --run", () => {
  const manifest = `
apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: { name: it }
spec:
  model: { policy: POLICY, adaptation: ADAPTATION }
  tasks: [{ name: diamonds, grader: { metric: MAE, direction: Lower, idColumn: id, targetColumns: [price] } }]
`;
  const run = (name: string, adaptation: string) => {
    const directory = join(folder, name);
    mkdirSync(join(directory, "checkpoints"), { recursive: true });
    const text = manifest.replace("POLICY", POLICY).replace("ADAPTATION", adaptation);
    writeFileSync(join(directory, "trainingrun.yaml"), text);
    return directory;
  };
  const answerOf = async (...args: string[]) => {
    const server = await serve([COMMAND], args);
    const { data } = await new OpenAI({ baseURL: server.url, apiKey: "none" }).models.list();
    const client = new OpenAI({ baseURL: server.url, apiKey: "none" });
    const asked = { model: data[0]!.id, prompt: "import", seed: 1, max_tokens: 10, logprobs: 0 };
    const { choices } = await client.completions.create(asked);
    server.child.kill("SIGTERM");
    await server.exited;
    return { name: data[0]!.id, logProbs: choices[0]!.logprobs!.token_logprobs!, stderr: server.stderr() };
  };
  const train = async (adapter: boolean, to: string) => {
    const lora = { rank: 2, alpha: 4, targets: PROJECTIONS, seed: 1 };
    const engine = await startEngine({ model: POLICY, threads: 1, ...(adapter && { adapter: lora }) });
    const sequence = { prompt: tokenizer.encode("import"), response: tokenizer.encode(" torch as t\n") };
    const adam = { beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0 };
    const step = { learningRate: 0.01, gradientClip: 1, adam, aggregation: "TokenMean" as const, microBatchSize: 1 };
    await engine.pretrain([sequence], step);
    const { digest } = await engine.save(to);
    writeFileSync(join(to, "state.json"), JSON.stringify({ iteration: 1, elapsedSeconds: 1, digest }));
    const options = { seeds: [seedFor(1, "choice", 0)], temperature: 1, topP: 1, maxNewTokens: 10 };
    const [response] = await engine.generate([sequence.prompt], options);
    await engine.close();
    return [...response!.logProbs];
  };

  test("the newest checkpoint of a run; a damaged one is passed over, with its reason", async () => {
    const directory = run("full", "{ type: Full }");
    const checkpoint = join(directory, "checkpoints/1-000002");
    const expected = await train(false, checkpoint);
    const damaged = join(directory, "checkpoints/2-000001");
    cpSync(checkpoint, damaged, { recursive: true });
    truncateSync(join(damaged, "policy/model.safetensors"), 100_000);
    cpSync(checkpoint, join(directory, "checkpoints/2-000002.partial"), { recursive: true });
    const { name, logProbs, stderr } = await answerOf("--run", directory);
    assert.equal(name, "full-1-000002");
    assert.deepEqual(logProbs, expected);
    assert.match(stderr, /^checkpoint 2-000001 is not used: .*model\.safetensors/);
  });

  test("the newest adapter of a run, and the same by --adapter", async () => {
    const directory = run("lora", "{ type: LoRA, rank: 2, alpha: 4 }");
    const checkpoint = join(directory, "checkpoints/1-000001");
    const expected = await train(true, checkpoint);
    const ofRun = await answerOf("--run", directory);
    assert.deepEqual([ofRun.name, ofRun.logProbs], ["lora-1-000001", expected]);
    const byName = await answerOf("--model", POLICY, "--adapter", join(checkpoint, "policy"));
    assert.deepEqual(byName.logProbs, expected);
    writeFileSync(join(checkpoint, "state.json"), JSON.stringify({ base: "0".repeat(64) }));
    const { status, stderr } = await fails("--run", directory);
    assert.equal(status, 2);
    assert.match(
      stderr,
      /1-000001 is not used: .* is another model than the one that its adapter was trained with\n.*no checkpoint to serve/,
    );
  });

  test("a run without a checkpoint", async () => {
    const { status, stderr } = await fails("--run", run("young", "{ type: Full }"));
    assert.equal(status, 2);
    assert.match(stderr, /it has no checkpoint to serve; go on with the run, or serve its policy with --model/);
  });
});

describe("bad input: status 2 and one line", () => {
  const without = join(folder, "without");
  mkdirSync(without);
  copyFileSync(join(POLICY, "config.json"), join(without, "config.json"));
  const CASES: [args: string[], stderr: RegExp][] = [
    [[], /^--model is missing; give a model folder, or --run/],
    [["--model", POLICY, "--run", folder], /^--run has a model of its own/],
    [["--model", POLICY, "--host", "0.0.0.0"], /^--host is 0\.0\.0\.0: .*no key; set LONGRUN_API_KEY, or say --no-key/],
    [["--model", POLICY, "--api-key", "x", "--no-key"], /^there is a key and --no-key/],
    [["--model", POLICY, "--port", "70000"], /^--port is 70000; .*at most 65535/],
    [["--model", POLICY, "--slots", "0"], /^--slots is 0; give a whole number of at least 1/],
    [["--model", POLICY, "--context", "4096"], /^--context is 4096; the model has 1024 positions/],
    [
      ["--model", POLICY, "--slots", "100000000"],
      /^generation needs about .*: cache \S+ GB \(--slots, --context\); .*; it fits with --slots \d+\n$/,
    ],
    [["--model", POLICY, "--host", "192.0.2.1", "--no-key", "--port", "0"], /^--host 192\.0\.2\.1: /],
    [["--model", without], /tokenizer\.json/],
    [["--model", join(folder, "none")], /none/],
    [["--model", COMMAND], /serve-command\.ts is a file; give a model folder in Hugging Face format$/m],
    [["--model", POLICY, "--fly"], /--fly/],
  ];
  for (const [args, expected] of CASES)
    test(args.join(" ").replace(POLICY, "DIR").replace(folder, "DIR") || "nothing", async () => {
      const { status, stderr } = await fails(...args);
      assert.match(stderr, expected);
      assert.equal(stderr.trimEnd().split("\n").length, 1);
      assert.equal(status, 2);
    });
});
