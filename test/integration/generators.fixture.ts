/** Fixtures for generators: certificates, `longrun serve --tls` as real processes, the learner's side, and samples written as in a run. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { specOf } from "../../learner/collect.fixture.ts";
import { type RunningEngine, readConfig, readEosIds, readTokenizer, startEngine } from "../../learner/engine/index.ts";
import type { Backend } from "../../learner/generators/backend.ts";
import { Generators, type GeneratorsOptions } from "../../learner/generators/generators.ts";
import { GeneratorServer } from "../../learner/generators/server.ts";
import { createLog } from "../../learner/log.ts";
import { Rollout } from "../../learner/rollout/rollout.ts";
import { openStore } from "../../learner/store/store.ts";
import type { Sample } from "../../learner/store/types.ts";
import { createAuthority, createCertificate, type KeyAndCertificate, writeTlsFiles } from "../../proto/certificates.ts";
import { until } from "../until.ts";

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const COMMAND = path("learner/commands/serve-command.ts");
/** LONGRUN_VLLM_MODEL: the model of a real vLLM (vllm.test.ts), if it is not the quickstart's. */
export const POLICY = process.env.LONGRUN_VLLM_MODEL ?? path("manifests/quickstart/policy");
export const LORA = { rank: 4, alpha: 8, targets: ["q_proj", "v_proj"] as const, seed: 1 };
export const tokenizer = readTokenizer(POLICY);
export const config = readConfig(POLICY);

export const folder = mkdtempSync(join(tmpdir(), "longrun-generators-"));
export const tls = (name: string) => join(folder, name);
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
  await Promise.all(closing.map((close) => close()));
  rmSync(folder, { recursive: true, force: true });
});

/** Starts `longrun serve --tls` and waits until it listens. */
export const serve = (...args: string[]) => serveBy([], ...args);

/** @param nodeOptions options of Node.js */
async function serveBy(nodeOptions: string[], ...args: string[]) {
  const common = ["--host", "127.0.0.1", "--port", "0", "--probe-port", "0", "--slots", "4"];
  const child = spawn(process.execPath, [...nodeOptions, COMMAND, "--tls", tls("generator"), ...common, ...args]);
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
export const ofQuickstart = (nodeOptions: string[] = []) =>
  serveBy(nodeOptions, "--model", POLICY, "--threads", "1", "--device", "cpu", "--context", "512");

/** A generator of this process, whose backend may lie. */
export async function lying(backend: Backend, name: string) {
  const server = await GeneratorServer.listen({
    ...{ backend, host: "127.0.0.1", port: 0, probePort: 0, tlsDirectory: tls("generator"), drainSeconds: 5 },
    ...{ folder: join(folder, name), onFault: () => {} },
  });
  closing.push(() => server.end());
  return { url: new URL(`https://127.0.0.1:${server.port}`), server };
}

/** A backend without an engine, which takes any weights. */
export const backendThat = (generate: Backend["generate"], more: Partial<Backend> = {}): Backend => ({
  ...{ engine: "Longrun", device: "cpu", slots: 4, failure: undefined, hasWeights: async () => true, generate },
  ...{ load: async (weights) => rmSync(weights, { recursive: true }), close: async () => {}, ...more },
});

/** Writes a token for each row, with log-prob 0. */
export const writes: Backend["generate"] = async (rows, _, onRow) => {
  for (const { id } of rows) onRow({ id, tokens: [7], logProbs: [0], finish: "length" });
};

/** The learner's side without an engine: its log-probs are 0. Each generator has the first weights. */
export async function simulated(urls: URL[], o: Partial<GeneratorsOptions> = {}) {
  const engine = {
    savePolicy: async (to: string) => writeFileSync(join(to, "adapter_config.json"), "{}"),
    evaluate: async () => [{ logProbs: Float32Array.of(0), values: undefined, entropies: undefined }],
  } as unknown as GeneratorsOptions["engine"];
  const told: string[] = [];
  const generators = new Generators({
    ...{ urls, tlsDirectory: tls("learner"), engine, device: "cpu", eosIds: [1], log: createLog("learner", "silent") },
    ...{ vocabSize: 100, directory: mkdtempSync(join(folder, "weights-")), noGeneratorSeconds: 60 },
    ...{ isCurrent: () => true, notice: (text) => void told.push(text), signal: new AbortController().signal },
    ...o,
  });
  closing.push(() => generators.close());
  await generators.publish(0);
  /** Generates a row for each prompt. */
  const generate = (prompts: number[][]) =>
    generators.generate(
      prompts.map((prompt) => Int32Array.from(prompt)),
      { seeds: prompts.map((_, seed) => seed), temperature: 1, topP: 1, maxNewTokens: 4 },
    );
  const areReady = () =>
    until(() => generators.status.generators.filter(({ ready }) => ready).length === urls.length, "all are ready");
  return { generators, generate, areReady, told };
}

/** The learner's side: an engine with its own weights, and the generators. */
export async function learner(urls: URL[], kind: "adapter" | "full", o: Partial<GeneratorsOptions> = {}) {
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
    ...{ isCurrent: (version) => version === current, notice: () => {}, signal: new AbortController().signal },
    ...o,
  });
  closing.push(() => generators.close());
  return {
    ...{ engine, generators, warnings },
    /** Resolves when every generator has the engine's weights. */
    publish: async (version: number) => {
      current = version;
      await generators.publish(version);
      const haveWeights = () =>
        generators.status.generators.every(({ ready }) => ready) && generators.slots >= 4 * urls.length;
      await until(haveWeights, () => `generators get version ${version}: ${JSON.stringify(generators.status)}`);
    },
  };
}

/** Writes samples as a run does. @returns them in their order */
export class Writing {
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
      tasks: [
        {
          ...{ name: "diamonds", weight: 1, description: "Predict the price.", columns: [], files: [] },
          ...{ snippet: [], submissionFormat: [], packages: [] },
        },
      ],
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
export async function train(engine: RunningEngine): Promise<void> {
  const sequence = { prompt: Int32Array.of(1, 2, 3), response: Int32Array.of(4, 5, 6, 7) };
  const adam = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0 };
  const step = { learningRate: 0.02, gradientClip: 1, adam, aggregation: "TokenMean", microBatchSize: 1 } as const;
  await engine.pretrain([sequence], step);
  await engine.pretrain([sequence], step);
}

export const written = (samples: Sample[]) =>
  samples.map(({ id, iteration, promptTokens, responseTokens, behaviourLogProbs, truncated, executionSeed }) => {
    return { id, iteration, promptTokens, responseTokens, behaviourLogProbs, truncated, executionSeed };
  });

/** Returns the tokens of two versions as the learner's own engine writes them. */
export function alone(kind: "adapter" | "full"): Promise<ReturnType<typeof written>[]> {
  aloneOf[kind] ??= writeAlone(kind);
  return aloneOf[kind];
}
/** Each kind is written once for all tests of a file. */
const aloneOf: { [kind in "adapter" | "full"]?: ReturnType<typeof writeAlone> } = {};

async function writeAlone(kind: "adapter" | "full") {
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
