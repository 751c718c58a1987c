/** The learner with generators: `longrun serve --tls` as real processes over mutual TLS, and servers that lie. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { specOf } from "../../learner/collect.fixture.ts";
import { type RunningEngine, readConfig, readEosIds, readTokenizer, startEngine } from "../../learner/engine/index.ts";
import type { Backend } from "../../learner/generators/backend.ts";
import { GeneratorClient } from "../../learner/generators/client.ts";
import { EngineBackend } from "../../learner/generators/engine-backend.ts";
import { Generators, type GeneratorsOptions } from "../../learner/generators/generators.ts";
import { GeneratorServer } from "../../learner/generators/server.ts";
import { weightsIn } from "../../learner/generators/weights.ts";
import { createLog } from "../../learner/log.ts";
import { Rollout } from "../../learner/rollout/rollout.ts";
import { openStore } from "../../learner/store/store.ts";
import type { Sample } from "../../learner/store/types.ts";
import { createAuthority, createCertificate, type KeyAndCertificate, writeTlsFiles } from "../../proto/certificates.ts";
import { readTls } from "../../proto/tls-folder.ts";

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const COMMAND = path("learner/commands/serve-command.ts");
const POLICY = path("manifests/quickstart/policy");
const LORA = { rank: 4, alpha: 8, targets: ["q_proj", "v_proj"] as const, seed: 1 };
const tokenizer = readTokenizer(POLICY);
const config = readConfig(POLICY);

const folder = mkdtempSync(join(tmpdir(), "longrun-generators-"));
const tls = (name: string) => join(folder, name);
const children: ChildProcess[] = [];
const closing: (() => Promise<unknown>)[] = [];
before(async () => {
  const authority = await createAuthority({ validSeconds: 3600 });
  const write = async (name: string, role: "learner" | "generator" | "actor", by: KeyAndCertificate) =>
    writeTlsFiles(tls(name), await createCertificate(by, { role, name, hosts: ["127.0.0.1"], validSeconds: 3600 }));
  for (const role of ["learner", "generator", "actor"] as const) await write(role, role, authority);
  await write("stranger", "learner", await createAuthority({ validSeconds: 3600 }));
});
after(async () => {
  for (const child of children) child.kill("SIGKILL");
  for (const close of closing.reverse()) await close();
  rmSync(folder, { recursive: true, force: true });
});

/** Starts `longrun serve --tls` and waits until it listens. */
export async function serve(...args: string[]) {
  const common = ["--host", "127.0.0.1", "--port", "0", "--probe-port", "0", "--slots", "4"];
  const child = spawn(process.execPath, [COMMAND, "--tls", tls("generator"), ...common, ...args]);
  children.push(child);
  let said = "";
  child.stderr.on("data", (text: Buffer) => {
    said += text;
  });
  const exited = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), "line"),
    exited.then(([status]) => assert.fail(`status ${status}: ${said}`)),
  ])) as [string];
  const [, url, probes] = /^Generator at (https:\S+), probes at port (\d+): /.exec(line) ?? assert.fail(line);
  return { child, url: new URL(url!), probes: `http://127.0.0.1:${probes}`, exited, said: () => said };
}
const ofQuickstart = () => serve("--model", POLICY, "--threads", "1", "--device", "cpu", "--context", "512");

/** A generator of this process, whose backend may lie. */
async function lying(backend: Backend, name: string) {
  const server = await GeneratorServer.listen({
    ...{ backend, host: "127.0.0.1", port: 0, probePort: 0, tlsDirectory: tls("generator"), drainSeconds: 5 },
    ...{ folder: join(folder, name), onFault: () => {} },
  });
  closing.push(() => server.end());
  return { url: new URL(`https://127.0.0.1:${server.port}`), server };
}

/** The learner's side: an engine with its own weights, and the generators. */
async function learner(urls: URL[], kind: "adapter" | "full", o: Partial<GeneratorsOptions> = {}) {
  const engine = await startEngine({
    ...{ model: POLICY, threads: 1, slots: 4, positions: 512 },
    ...(kind === "adapter" && { adapter: LORA }),
  });
  closing.push(() => engine.close());
  const warnings: string[] = [];
  const log = createLog("learner", "silent");
  log.warn = (_: unknown, text?: string) => void warnings.push(text ?? String(_));
  let current = 0;
  const generators = new Generators({
    ...{ urls, tlsDirectory: tls("learner"), engine, device: "cpu", eosIds: readEosIds(POLICY), log },
    ...{ vocabSize: config.vocabSize, directory: mkdtempSync(join(folder, "weights-")), noGeneratorSeconds: 60 },
    ...{ isCurrent: (version) => version === current, tell: () => {}, signal: new AbortController().signal },
    ...o,
  });
  closing.push(() => generators.close());
  return {
    ...{ engine, generators, warnings },
    /** Resolves when every generator has the engine's weights. */
    publish: async (version: number) => {
      current = version;
      await generators.publish(version);
      while (!generators.status.generators.every((each) => each.ready) || generators.slots < 4 * urls.length) await sleep(20);
    },
  };
}

/** Writes samples as a run does. @returns them in their order */
class Writing {
  readonly #store = openStore(join(mkdtempSync(join(folder, "store-")), "store.sqlite"), { leaseSeconds: 60 });
  readonly #engine: RunningEngine;
  readonly #generators: Generators | undefined;
  readonly #begun = this.#store.beginLineage(() => true);

  constructor(engine: RunningEngine, generators?: Generators) {
    this.#engine = engine;
    this.#generators = generators;
  }

  async samples(version: number, prompts = 12, onStored = () => {}): Promise<Sample[]> {
    await this.#begun;
    const spec = specOf({ collection: "WaitAll" });
    Object.assign(spec.model, { maxPromptTokens: 256, maxResponseTokens: 96, temperature: 0.8 });
    const rollout = new Rollout({
      ...{ engine: this.#engine, writers: this.#generators, store: this.#store, spec },
      nextNumber: this.#store.nextSequence(),
      addSamples: async (samples) => {
        this.#store.addSamples(samples);
        onStored();
      },
      task: {
        ...{ name: "diamonds", description: "Predict the price.", columns: [], files: [] },
        ...{ snippet: [], submissionFormat: [], packages: [] },
      },
      encode: (messages) => tokenizer.encode(messages.map(({ content }) => content).join("\n")).subarray(0, 256),
      decode: (tokens) => tokenizer.decode(tokens),
    });
    const generation = rollout.generation(version);
    generation.begin(prompts);
    await generation.end();
    return this.#store.samplesFor("training").filter(({ iteration }) => iteration === version);
  }
}

/** A step that changes the policy's log-probs by much more than rounding. */
async function train(engine: RunningEngine): Promise<void> {
  const sequence = { prompt: Int32Array.of(1, 2, 3), response: Int32Array.of(4, 5, 6, 7) };
  const adam = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0 };
  const step = { learningRate: 0.02, gradientClip: 1, adam, aggregation: "TokenMean", microBatchSize: 1 } as const;
  await engine.pretrain([sequence], step);
  await engine.pretrain([sequence], step);
}

const written = (samples: Sample[]) =>
  samples.map(({ id, iteration, promptTokens, responseTokens, behaviourLogProbs, truncated, executionSeed }) => {
    return { id, iteration, promptTokens, responseTokens, behaviourLogProbs, truncated, executionSeed };
  });

/** What the learner's own engine writes: two versions. */
async function alone(kind: "adapter" | "full") {
  const engine = await startEngine({
    ...{ model: POLICY, threads: 1, slots: 4, positions: 512 },
    ...(kind === "adapter" && { adapter: LORA }),
  });
  try {
    const writing = new Writing(engine);
    const first = await writing.samples(0);
    await train(engine);
    return [written(first), written(await writing.samples(1))];
  } finally {
    await engine.close();
  }
}

describe("longrun serve as generators", () => {
  for (const kind of ["adapter", "full"] as const)
    test(`two write the samples that the learner's engine writes, bit for bit, with each version (${kind})`, async () => {
      const servers = await Promise.all([ofQuickstart(), ofQuickstart()]);
      const { engine, generators, publish } = await learner(servers.map(({ url }) => url), kind);
      const writing = new Writing(engine, generators);
      await publish(0);
      const first = written(await writing.samples(0));
      assert.deepEqual(generators.status.generators.map(({ ready, policyVersion }) => [ready, policyVersion]), [[true, 0], [true, 0]]);
      await train(engine);
      await publish(1);
      const second = written(await writing.samples(1));
      assert.deepEqual([first, second], await alone(kind));
      assert.notDeepEqual(second[0]!.behaviourLogProbs, first[0]!.behaviourLogProbs);
      const { faults, movedRows, uncheckedRows } = generators.takeCounts();
      assert.deepEqual([faults, movedRows, uncheckedRows], [{ lost: 0, oldVersion: 0, logProbs: 0 }, 0, 0]);
    });

  test("one is killed while it writes: its rows go to the other one, and the samples are the same", async () => {
    const servers = await Promise.all([ofQuickstart(), ofQuickstart()]);
    const { engine, generators, publish } = await learner(servers.map(({ url }) => url), "adapter");
    await publish(0);
    const kill = () => servers[0]!.child.kill("SIGKILL");
    const samples = written(await new Writing(engine, generators).samples(0, 12, kill));
    assert.deepEqual(samples, (await alone("adapter"))[0]);
    const { faults, movedRows } = generators.takeCounts();
    assert.equal(faults.lost, 1);
    assert.ok(movedRows > 0, `${movedRows} rows moved`);
    const [dead, other] = generators.status.generators;
    assert.match(dead!.notUsedBecause, /^it does not answer: /);
    assert.equal(other!.ready, true);
  });

  test("SIGTERM: what it generates ends, what is new goes to the other one, and it exits 0", async () => {
    const servers = await Promise.all([ofQuickstart(), ofQuickstart()]);
    const { engine, generators, publish } = await learner(servers.map(({ url }) => url), "adapter");
    await publish(0);
    let stops = 0;
    const stop = () => void (stops++ === 0 && servers[0]!.child.kill("SIGTERM"));
    const samples = written(await new Writing(engine, generators).samples(0, 24, stop));
    assert.equal(samples.length, 24);
    assert.deepEqual(await servers[0]!.exited, [0, null], servers[0]!.said());
    assert.equal(generators.takeCounts().faults.lost, 0);
  });

  test("who is not the learner of the run is refused; probes need no certificate", async () => {
    const { url, probes } = await ofQuickstart();
    const state = (name: string) => new GeneratorClient({ url, servername: undefined }, () => readTls(tls(name))).state();
    await assert.rejects(state("actor"), /only the run's learner may call; this certificate's role is actor/);
    await assert.rejects(state("stranger"), { code: /ECONNRESET|ERR_SSL|SELF_SIGNED|UNABLE_TO_VERIFY|DEPTH_ZERO/ });
    assert.equal((await state("learner")).slots, 4);
    assert.equal((await fetch(`${probes}/ready`)).status, 200);
    assert.match(await (await fetch(`${probes}/metrics`)).text(), /longrun_generator_rows\{state="running"\} 0/);
  });
});

describe("a generator that cannot be trusted", () => {
  const real = () =>
    new EngineBackend({ model: POLICY, config, threads: 1, device: { kind: "cpu" }, slots: 4, positions: 512 });

  test("it says that it has the new weights, and kept the first ones: its log-probs tell", async () => {
    const backend = real();
    const load = backend.load.bind(backend);
    let loads = 0;
    backend.load = async (...weights) => (loads++ === 0 ? load(...weights) : undefined);
    const liar = await lying(backend, "kept");
    const honest = await lying(real(), "honest");
    const { engine, generators, warnings, publish } = await learner([liar.url, honest.url], "adapter");
    const writing = new Writing(engine, generators);
    await publish(0);
    const first = written(await writing.samples(0));
    assert.equal(generators.takeCounts().faults.logProbs, 0);
    await train(engine);
    await publish(1);
    const second = written(await writing.samples(1));
    assert.deepEqual([first, second], await alone("adapter"), "rows of the liar were written again");
    assert.equal(generators.takeCounts().faults.logProbs, 1);
    assert.match(warnings.join("\n"), /log-probs differ from the learner's by 0\.\d+ nats a token, more than 0\.001/);
    assert.equal(generators.status.generators[0]!.notUsedBecause, "its log-probs are not the learner's");
  });

  test("somebody else brought it other weights: it counts as old and gets the learner's again", async () => {
    const server = await lying(real(), "changed");
    const { engine, generators, warnings, publish } = await learner([server.url], "adapter");
    const writing = new Writing(engine, generators);
    await publish(0);
    await writing.samples(0);
    const other = await startEngine({ model: POLICY, threads: 1, adapter: { ...LORA, seed: 2 } });
    const directory = mkdtempSync(join(folder, "other-"));
    await other.savePolicy(directory);
    await other.close();
    const intruder = new GeneratorClient({ url: server.url, servername: undefined }, () => readTls(tls("learner")));
    await intruder.bring(await weightsIn(directory, 7), new AbortController().signal);
    const samples = await writing.samples(0, 4);
    assert.equal(samples.length, 16);
    assert.match(warnings.join("\n"), /has policy version 7|the generator has 7/);
    assert.ok(generators.takeCounts().faults.oldVersion > 0);
  });

  test("none is left: rows wait, and the error says for how long and why", async () => {
    const { url, child } = await ofQuickstart();
    const { generators, publish } = await learner([url], "adapter", { noGeneratorSeconds: 3 });
    await publish(0);
    child.kill("SIGKILL");
    await sleep(100);
    const how = { seeds: [1], temperature: 1, topP: 1, maxNewTokens: 4 };
    const found = generators.generate([Int32Array.of(1)], how);
    await assert.rejects(found, {
      code: "none",
      message: /^no generator can be used for \d+ s, and 1 rows wait: 127\.0\.0\.1:\d+: it does not answer: /,
    });
  });

  test("a row that no generator can write ends the run with the reason", async () => {
    const { url } = await lying(real(), "long");
    const { generators, publish } = await learner([url], "adapter");
    await publish(0);
    const how = { seeds: [1], temperature: 1, topP: 1, maxNewTokens: 1_000_000 };
    await assert.rejects(generators.generate([Int32Array.of(1)], how), {
      code: "request",
      message: /refuses a row: cannot generate: prompt 0 and maxNewTokens are 1000001 tokens/,
    });
  });
});
