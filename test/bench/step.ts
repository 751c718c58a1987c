/**
 * Milliseconds of log-prob evaluation and of one PPO update of 64 sequences (prompts 60-200, responses 100-140 tokens)
 * with the quickstart's architecture. Its twin is step_torch.py.
 *
 *   node test/bench/step.ts [--threads 1] [--tokens 512] [--micro 8] [--repeat 3] [--size quickstart|large]
 *
 * CPU milliseconds are printed too: they stay comparable where the machine is shared.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { configJson, type ModelConfig } from "../../learner/model/config.ts";
import { writeSafetensors } from "../../learner/model/safetensors.ts";
import { initialWeights, parameters } from "../../learner/model/weights.ts";
import { Trainer } from "../../learner/ppo/trainer.ts";
import { uniforms } from "../../learner/rng.ts";

const { values: flags } = parseArgs({
  options: {
    threads: { type: "string", default: "1" },
    tokens: { type: "string" },
    micro: { type: "string", default: "8" },
    repeat: { type: "string", default: "3" },
    size: { type: "string", default: "quickstart" },
    sequences: { type: "string", default: "64" },
  },
});
const shared = {
  modelType: "qwen2",
  keyValueHeads: 2,
  normEpsilon: 1e-6,
  ropeTheta: 10000,
  tied: true,
  queryKeyValueBias: true,
  maxPositions: 1024,
  initializerRange: 0.02,
} as const;
const SIZES: Record<string, ModelConfig> = {
  quickstart: { ...shared, vocabSize: 2048, hiddenSize: 128, intermediateSize: 384, layers: 4, heads: 4, headSize: 32 },
  large: { ...shared, vocabSize: 8192, hiddenSize: 512, intermediateSize: 1536, layers: 8, heads: 8, headSize: 64 },
};
const config = SIZES[flags.size];
if (!config) throw new Error(`--size is ${flags.size}; it is one of ${Object.keys(SIZES).join(", ")}`);

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "step-"));
fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(config)));
const weights = initialWeights(config, 0);
writeSafetensors(
  path.join(folder, "model.safetensors"),
  new Map(parameters(config).map(({ name, shape }) => [name, { shape, data: weights.get(name)! }])),
);
const trainer = new Trainer({
  model: folder,
  threads: Number(flags.threads),
  microBatchTokens: flags.tokens ? Number(flags.tokens) : undefined,
});
fs.rmSync(folder, { recursive: true });

const next = uniforms(0, "bench");
const between = (low: number, high: number) => low + Math.floor((high - low) * next());
const tokens = (length: number) => Int32Array.from({ length }, () => between(0, config.vocabSize));
const batch = Array.from({ length: Number(flags.sequences) }, () => {
  const response = tokens(between(100, 140));
  const filled = (value: number) => new Float32Array(response.length).fill(value);
  return {
    prompt: tokens(between(60, 200)),
    response,
    proximalLogProbs: filled(-7.6),
    advantages: filled(1),
    importance: filled(1),
    weight: 1,
    oldValues: filled(0),
    returns: filled(1),
  };
});
const count = batch.reduce((sum, { prompt, response }) => sum + prompt.length + response.length, 0);
console.log(
  `${count} tokens, ${parameters(config).reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0)} parameters, ${flags.threads} threads`,
);

async function measure(name: string, work: () => Promise<unknown>) {
  await work(); // makes the session
  const walls: number[] = [];
  const cpus: number[] = [];
  for (let i = 0; i < Number(flags.repeat); i++) {
    const [cpu, wall] = [process.cpuUsage(), performance.now()];
    await work();
    walls.push(performance.now() - wall);
    const used = process.cpuUsage(cpu);
    cpus.push((used.user + used.system) / 1000);
  }
  const best = (list: number[]) => Math.min(...list).toFixed(0);
  console.log(
    `${name.padEnd(16)} wall ${best(walls)} ms, cpu ${best(cpus)} ms, ${(count / (Math.min(...walls) / 1000)).toFixed(0)} tokens/s`,
  );
}

const adam = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 };
const step = {
  learningRate: 1e-5,
  gradientClip: 1,
  adam,
  aggregation: "SeqMeanTokenMean",
  microBatchSize: Number(flags.micro),
} as const;
await measure("evaluate", () => trainer.evaluate(batch, { temperature: 0.7, values: false }));
await measure("policy update", () =>
  trainer.updatePolicy(batch, { ...step, temperature: 0.7, clipRatio: 0.2, dualClip: 0, entropyCoefficient: 0.001 }),
);
await measure("critic update", () => trainer.updateCritic(batch, { ...step, valueClip: 0.5 }));
console.log(`resident ${(process.memoryUsage.rss() / 2 ** 20).toFixed(0)} MiB`);
await trainer.close();
