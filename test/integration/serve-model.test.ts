/** The models that `longrun serve` takes: a folder, an adapter, the newest checkpoint of a run; and the input that it refuses. */
import assert from "node:assert/strict";
import { copyFileSync, cpSync, mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import OpenAI from "openai";
import { PROJECTIONS, seedFor, startEngine } from "../../learner/engine/index.ts";
import { COMMAND, fails, folder, POLICY, serve, tokenizer } from "./serve.fixture.ts";

describe("longrun serve with --adapter or --run", () => {
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

  test("--run serves the newest checkpoint, skips a damaged one, and says why", async () => {
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

  test("--run serves the newest adapter, as --adapter does", async () => {
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

  test("--run refuses a run without a checkpoint", async () => {
    const { status, stderr } = await fails("--run", run("young", "{ type: Full }"));
    assert.equal(status, 2);
    assert.match(stderr, /it has no checkpoint to serve; go on with the run, or serve its policy with --model/);
  });
});

describe("Bad input ends with status 2 and one line", () => {
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
      assert.equal(stderr.trimEnd().split("\n").length, stderr.startsWith("error: ") ? 2 : 1);
      assert.equal(status, 2);
    });
});
