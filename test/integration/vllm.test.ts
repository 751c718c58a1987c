/**
 * The sidecar in front of vLLM: with a server that has vLLM's API and our engine, and with a real vLLM. LONGRUN_VLLM=URL tests a vLLM that
 * serves manifests/quickstart/policy with the flags of learner/generators/README.md, `--dtype float32` and `--max-lora-rank 8`;
 * LONGRUN_VLLM_FULL=URL LONGRUN_VLLM_MODEL=DIR tests full weights.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { startEngine } from "../../learner/engine/index.ts";
import { GeneratorClient } from "../../learner/generators/client.ts";
import { VllmBackend, type VllmOptions } from "../../learner/generators/vllm-backend.ts";
import { weightsIn } from "../../learner/generators/weights.ts";
import { readTls } from "../../proto/tls-folder.ts";
import { until } from "../until.ts";
import { FakeVllm } from "./fake-vllm.fixture.ts";
import { alone, folder, LORA, learner, POLICY, serve, tls, train, Writing, written } from "./generators.fixture.ts";

const fake = new FakeVllm(POLICY);
after(() => fake.close());

async function sidecar(vllm: string, device = "cpu") {
  const parent = mkdtempSync(join(folder, "adapters-"));
  const adapters = join(parent, `longrun-${new URL(vllm).host.replace(":", "-")}`);
  const left = join(adapters, "longrun-7-0123456789ab"); // left by a killed sidecar
  mkdirSync(left, { recursive: true });
  const other = join(parent, "longrun-127.0.0.1-1"); // belongs to the sidecar of another vLLM
  mkdirSync(other);
  const how = ["--vllm", vllm, "--adapter-folder", parent, "--model-name", "policy", "--device", device];
  const served = await serve(...how);
  assert.deepEqual([existsSync(left), existsSync(other)], [false, true]);
  return { adapters, ...served };
}

test("Every version is an adapter with its own name, replaces the one before, and returns token ids with log-probs", async () => {
  const { url, adapters } = await sidecar(await fake.listen());
  const { engine, generators, publish } = await learner([url], "adapter");
  const writing = new Writing(engine, generators);
  await publish(0);
  const first = written(await writing.samples(0));
  const [name] = fake.loaded;
  assert.match(name!, /^longrun-0-[0-9a-f]{12}$/);
  await train(engine);
  await publish(1);
  const second = written(await writing.samples(1));
  assert.deepEqual([first, second], await alone("adapter"));
  assert.match(fake.loaded.join(), /^longrun-1-[0-9a-f]{12}$/);
  assert.deepEqual([existsSync(join(adapters, name!)), existsSync(join(adapters, fake.loaded[0]!))], [false, true]);
  const { body } = fake.asked.find(({ body: { model } }) => model === name)!;
  const { model, temperature, top_p, max_tokens, logprobs, return_token_ids, skip_special_tokens } = body;
  assert.deepEqual(
    { model, temperature, top_p, max_tokens, logprobs, return_token_ids, skip_special_tokens },
    {
      model: name,
      temperature: 0.8,
      top_p: 1,
      max_tokens: 96,
      logprobs: 0,
      return_token_ids: true,
      skip_special_tokens: false,
    },
  );

  await fake.forget();
  assert.equal(written(await writing.samples(1, 4)).length, 16, "vLLM was started again: it gets the adapter again");

  const refused = { seeds: [1], temperature: 1, topP: 0.9, maxNewTokens: 4 };
  await assert.rejects(generators.generate([Int32Array.of(1)], refused), {
    message: /topP is 0\.9: with vLLM model\.topP must be 1/,
  });
});

test("Full weights replace the base model's when no row runs, and count once the prefix cache is reset", async (t) => {
  const vllm = new FakeVllm(POLICY);
  after(() => vllm.close());
  vllm.devMode = true;
  const { url, adapters } = await sidecar(await vllm.listen(), "cuda:0");
  const { engine, generators, publish } = await learner([url], "full");
  const writing = new Writing(engine, generators);
  await publish(0);
  const rows = writing.samples(0);
  await until(() => vllm.asked.some(({ body }) => body.max_tokens === 96), "vLLM is asked");
  const other = mkdtempSync(join(folder, "other-"));
  await engine.savePolicy(other);
  const direct = new GeneratorClient({ url, servername: undefined }, () => readTls(tls("learner")));
  t.after(() => direct.close());
  await direct.bring(await weightsIn(other, 7), new AbortController().signal); // while rows run
  const first = written(await rows);
  await train(engine);
  await publish(1);
  const second = written(await writing.samples(1));
  assert.deepEqual([first, second], await alone("full"));
  assert.deepEqual(vllm.misuse, []);
  assert.deepEqual(readdirSync(adapters), [], "files are removed");

  await vllm.forget();
  assert.equal(written(await writing.samples(1, 4)).length, 16, "vLLM was started again: it gets the weights again");
  assert.deepEqual(vllm.misuse, []);
});

for (const [what, device, change, message] of [
  [
    "cannot replace its weights",
    "cuda:0",
    { devMode: false },
    /set VLLM_SERVER_DEV_MODE=1, train with model\.adaptation\.type LoRA/,
  ],
  ["keeps its prefix cache", "cuda:0", { devMode: true, resets: false }, /vLLM did not reset its prefix cache/],
  ["keeps a tied output layer", "cpu", { devMode: true }, /does not replace an output layer that is tied/],
] as const)
  test(`A vLLM that ${what} is not used with full weights, and the message says why`, async () => {
    const vllm = Object.assign(new FakeVllm(POLICY), change);
    after(() => vllm.close());
    const { url } = await sidecar(await vllm.listen(), device);
    const { generators } = await learner([url], "full");
    await generators.publish(0);
    const why = () => generators.status.generators[0]?.notUsedBecause ?? "";
    await until(() => /takes no weights/.test(why()), why);
    assert.match(why(), message);
  });

test("A vLLM whose log-probs ignore the temperature is refused at the start", async () => {
  const vllm = new FakeVllm(POLICY);
  after(() => vllm.close());
  vllm.rawLogProbs = true;
  const url = await vllm.listen();
  await assert.rejects(sidecar(url), /status 1: .*start vLLM with --logprobs-mode processed_logprobs/s);
});

describe("a vLLM that fails to load or unload an adapter", () => {
  const LOAD = "/v1/load_lora_adapter";
  const UNLOAD = "/v1/unload_lora_adapter";
  const row = { id: "a", prompt: [1, 2, 3], seed: 1, temperature: 1, topP: 1, maxTokens: 40, stopTokens: [] };
  const forever = new AbortController().signal;

  async function backendOf() {
    const vllm = new FakeVllm(POLICY);
    after(() => vllm.close());
    const url = await vllm.listen();
    const [adapterFolder, saved] = ["adapters-", "saved-"].map((name) => mkdtempSync(join(folder, name)));
    const engine = await startEngine({ model: POLICY, threads: 1, adapter: LORA });
    await engine.savePolicy(saved!);
    await engine.close();
    const faults: string[] = [];
    const options: VllmOptions = {
      ...{ url, adapterFolder: adapterFolder!, modelName: "policy", slots: 4, device: "cpu" },
      onFault: (line) => void faults.push(line),
    };
    const backend = await VllmBackend.connect(options);
    const load = async (policyVersion: number, by = backend) => {
      const brought = join(mkdtempSync(join(folder, "brought-")), "weights");
      cpSync(saved!, brought, { recursive: true });
      await by.load(brought, { policyVersion, digest: String(policyVersion).repeat(64), kind: "adapter" });
    };
    return { vllm, url, backend, options, faults, load, files: () => readdirSync(adapterFolder!).sort() };
  }

  for (const [what, change, message] of [
    ["answers 500", { failing: LOAD }, /^vLLM answered 500 to \/v1\/load_lora_adapter: .*it fails/],
    ["does not answer", { silent: LOAD }, /^vLLM at URL does not answer: it took more than 3 s for \/v1\/load_lora/],
  ] as const)
    test(`a load that ${what} leaves neither files nor an adapter, the reason is said, and the next one succeeds`, async () => {
      const { vllm, url, backend, options, load, files } = await backendOf();
      await load(0);
      Object.assign(vllm, change);
      if ("silent" in change) options.answerSeconds = 3;
      await assert.rejects(load(1), (cause: Error) => {
        assert.match(cause.message.replace(url, "URL"), message);
        return true;
      });
      assert.deepEqual([vllm.loaded, files()], [["longrun-0-000000000000"], ["longrun-0-000000000000"]]);
      Object.assign(vllm, { failing: "", silent: "" });
      await load(1);
      assert.deepEqual([vllm.loaded, files()], [["longrun-1-111111111111"], ["longrun-1-111111111111"]]);
      assert.equal(await backend.hasWeights(), true);
    });

  test("an unload that fails fails neither the new weights nor a row, and is tried again", async () => {
    const { vllm, backend, faults, load, files } = await backendOf();
    await load(0);
    vllm.failing = UNLOAD;
    const rows: string[] = [];
    const writing = backend.generate([row], forever, ({ id }) => void rows.push(id));
    await load(1);
    await writing;
    await backend.generate([{ ...row, id: "b" }], forever, ({ id }) => void rows.push(id));
    assert.deepEqual([rows, await backend.hasWeights()], [["a", "b"], true]);
    assert.match(
      faults.join("\n"),
      /^adapter longrun-0-000000000000 is still loaded: vLLM answered 500 to \/v1\/unload/,
    );
    assert.equal(files().length, 2, "vLLM may read the files again while it has the adapter");
    vllm.failing = "";
    await load(2);
    assert.deepEqual([vllm.loaded, files()], [["longrun-2-222222222222"], ["longrun-2-222222222222"]]);
  });

  test("adapters of a sidecar that was killed are unloaded, at the start or later", async () => {
    const { vllm, options, faults, load } = await backendOf();
    await load(0);
    await VllmBackend.connect(options);
    assert.deepEqual(vllm.loaded, []);
    await load(1);
    vllm.failing = UNLOAD;
    const next = await VllmBackend.connect(options);
    assert.match(faults.join("\n"), /^adapter longrun-1-111111111111 is still loaded/);
    vllm.failing = "";
    await load(2, next);
    assert.deepEqual(vllm.loaded, ["longrun-2-222222222222"]);
  });

  test("a version that vLLM still has is used again", async () => {
    const { vllm, backend, load } = await backendOf();
    await load(0);
    const writing = backend.generate([{ ...row, maxTokens: 400 }], forever, () => {});
    await load(1);
    await load(0);
    await writing;
    assert.equal(await backend.hasWeights(), true);
    await backend.generate([row], forever, () => {});
    assert.deepEqual(vllm.loaded, ["longrun-0-000000000000"]);
  });
});

for (const [kind, variable] of [
  ["adapter", "LONGRUN_VLLM"],
  ["full", "LONGRUN_VLLM_FULL"],
] as const) {
  const real = process.env[variable];
  test(`A real vLLM serves every version (${kind})`, {
    skip: real === undefined && `${variable} names no vLLM with the quickstart's policy`,
  }, async () => {
    const { url } = await sidecar(real!);
    const { engine, generators, warnings, publish } = await learner([url], kind);
    const writing = new Writing(engine, generators);
    for (const version of [0, 1]) {
      await publish(version);
      const samples = await writing.samples(version);
      assert.equal(samples.length, 12, warnings.join("\n"));
      const rows = samples.map(({ promptTokens: prompt, responseTokens: response }) => ({ prompt, response }));
      const own = await engine.evaluate(rows, { temperature: 0.8, values: false });
      const differences = own.flatMap(({ logProbs }, i) =>
        [...logProbs].map((logProb, t) => Math.abs(logProb - samples[i]!.behaviourLogProbs[t]!)),
      );
      // The learner compares two rows, this test all: a stale prefix cache may show in any row.
      assert.ok(Math.max(...differences) < 0.001, `${kind} ${version}: ${Math.max(...differences)}`);
      await train(engine);
    }
    const { faults } = generators.takeCounts();
    assert.deepEqual(faults, { lost: 0, oldVersion: 0, logProbs: 0 }, warnings.join("\n"));
  });
}
