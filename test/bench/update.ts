/**
 * PPO updates (an optimiser step of the critic, one of the policy) for the work in a folder (update-work.ts), with the engine as in a run:
 * in a worker, observed by the main thread. Its twin is update_torch.py.
 *
 *     node test/bench/update.ts --folder DIR [--threads 2] [--micro 8] [--lora]
 *
 * Every line on stdin requests an update. The answer is a line of JSON: seconds, CPU seconds, peak resident memory, how long the main
 * thread was blocked and its own work, and losses and gradient norms, which must be equal to the twin's.
 */
import fs from "node:fs";
import path from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { startEngine } from "../../learner/engine/engine.ts";
import { PROJECTIONS } from "../../learner/engine/model/lora.ts";
import { peakResident, resetPeakResident } from "./resident.ts";
import type { Batch } from "./update-work.ts";

const { values: flags } = parseArgs({
  options: {
    folder: { type: "string" },
    threads: { type: "string", default: "2" },
    micro: { type: "string", default: "8" },
    lora: { type: "boolean", default: false },
  },
});
const folder = flags.folder!;
const batch = JSON.parse(fs.readFileSync(path.join(folder, "batch.json"), "utf8")) as Batch;
const filled = (length: number, value: number) => new Float32Array(length).fill(value);
const samples = batch.prompts.map((prompt, i) => {
  const response = Int32Array.from(batch.responses[i]!);
  return {
    prompt: Int32Array.from(prompt),
    response,
    proximalLogProbs: filled(response.length, batch.proximal),
    advantages: filled(response.length, batch.advantages[i]!),
    importance: filled(response.length, 1),
    weight: 1,
    oldValues: filled(response.length, batch.oldValue),
    returns: filled(response.length, batch.returns[i]!),
  };
});
const step = {
  learningRate: batch.learningRate,
  gradientClip: batch.gradientClip,
  adam: { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: batch.weightDecay },
  aggregation: "SeqMeanTokenMean",
  microBatchSize: Number(flags.micro),
} as const;

const adapter = flags.lora ? { rank: 16, alpha: 16, targets: PROJECTIONS, seed: 0 } : undefined;
const engine = await startEngine({
  ...{ model: folder, threads: Number(flags.threads), adapter },
  rowTokens: batch.maxPromptTokens + batch.maxResponseTokens,
});
await engine.initializeCritic(batch.oldValue);

async function update() {
  resetPeakResident();
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  const [cpu, own, wall] = [process.cpuUsage(), process.threadCpuUsage(), performance.now()];
  const critic = await engine.updateCritic(samples, { ...step, valueClip: batch.valueClip });
  const criticSeconds = (performance.now() - wall) / 1000;
  const { temperature, clipRatio, entropyCoefficient } = batch;
  const policy = await engine.updatePolicy(samples, {
    ...step,
    temperature,
    clipRatio,
    dualClip: 0,
    entropyCoefficient,
  });
  const seconds = (performance.now() - wall) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const mine = process.threadCpuUsage(own);
  delay.disable();
  return {
    ...{ seconds, criticSeconds, policySeconds: seconds - criticSeconds, cpuSeconds: (user + system) / 1e6 },
    ...{ peakBytes: peakResident(), blockedMilliseconds: delay.max / 1e6 },
    mainThreadMilliseconds: (mine.user + mine.system) / 1e3,
    losses: [critic.loss, critic.gradientNorm, policy.loss, policy.gradientNorm],
  };
}

process.stdout.write(`${JSON.stringify({ ready: true })}\n`);
for await (const _ of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await update())}\n`);
await engine.close();
