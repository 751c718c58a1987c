/**
 * Measures the memory of a whole update (generation, log-probs and values of policy, reference and critic, one optimiser step each), with
 * LoRA or with all weights trained:
 *
 *     node test/bench/lora-memory.ts --type lora|full [--shape quickstart|3.4m|27m|80m|0.5b] [--dtype F32|BF16]
 *         [--batch 4] [--tokens 512] [--micro 1]
 *         [--checkpointing Always|Never] [--resident true]
 *
 * The model has random weights. The main thread reads the proportional set size (smaps_rollup) every 20 ms while the engine's worker works;
 * it counts a mapped file once, however many sessions map it. `--resident` works as on a GPU, in this process's memory
 * (learner/engine/device-memory.ts): the frozen model is then in anonymous memory, once. Prints one JSON line with the peak, and with the
 * plan of such a run (learner/engine/plan.ts) without the parts around the engine.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { startEngine } from "../../learner/engine/engine.ts";
import { workerCount } from "../../learner/engine/microbatches.ts";
import type { ModelConfig } from "../../learner/engine/model/config.ts";
import { SHAPES as QWEN } from "../../learner/engine/model/hollow.fixture.ts";
import { PROJECTIONS } from "../../learner/engine/model/lora.ts";
import { uniforms } from "../../learner/engine/model/random.ts";
import { Planner, SURROUNDINGS_BYTES } from "../../learner/engine/plan.ts";
import { SIZES } from "./update-work.ts";

const SHAPES: Record<string, ModelConfig> = {
  ...SIZES,
  ...QWEN,
  "80m": {
    ...{ ...QWEN["0.5b"], vocabSize: 8192, hiddenSize: 768, intermediateSize: 2048 },
    ...{ layers: 11, heads: 12, keyValueHeads: 4, headSize: 64 },
  },
};
const { values: given } = parseArgs({
  options: {
    type: { type: "string", default: "lora" },
    shape: { type: "string", default: "80m" },
    dtype: { type: "string", default: "F32" },
    batch: { type: "string", default: "4" },
    tokens: { type: "string", default: "512" },
    rank: { type: "string", default: "16" },
    checkpointing: { type: "string", default: "Never" },
    threads: { type: "string", default: "2" },
    resident: { type: "string", default: "false" },
    micro: { type: "string", default: "1" },
    "new-tokens": { type: "string" }, // default: the response's length
  },
});
const config = SHAPES[given.shape];
const rank = Number(given.rank);
const length = Number(given.tokens);
const micro = Number(given.micro);
const checkpointing = given.checkpointing === "Always";
const newTokens = Number(given["new-tokens"] ?? length / 2);
const model = fs.mkdtempSync(path.join(os.tmpdir(), "lora-memory-"));

const field = (name: string) =>
  Number(new RegExp(`^${name}: +(\\d+) kB`, "m").exec(fs.readFileSync("/proc/self/smaps_rollup", "utf8"))![1]) / 1024;
const MB = (mebibytes: number) => Math.round(mebibytes);

// in a process of its own, because its remaining memory would be counted
const write = `import { writeRandomModel } from ${JSON.stringify(import.meta.resolve("./random-model.ts"))};
console.log(writeRandomModel(${JSON.stringify(model)}, ${JSON.stringify(config)}, ${JSON.stringify(given.dtype)}));`;
const bytes = Number(execFileSync(process.execPath, ["--input-type=module", "--eval", write], { encoding: "utf8" }));
const before = field("Pss");
const peaks: Record<string, { pss: number; anonymous: number; seconds: number }> = {};
let peak = { pss: 0, anonymous: 0 };
const timer = setInterval(() => {
  peak = { pss: Math.max(peak.pss, field("Pss")), anonymous: Math.max(peak.anonymous, field("Pss_Anon")) };
}, 20);
async function phase<T>(name: string, work: () => Promise<T>): Promise<T> {
  peak = { pss: 0, anonymous: 0 };
  const start = performance.now();
  const result = await work();
  const seconds = Math.round((performance.now() - start) / 100) / 10;
  peaks[name] = {
    pss: MB(Math.max(peak.pss, field("Pss"))),
    anonymous: MB(Math.max(peak.anonymous, field("Pss_Anon"))),
    seconds,
  };
  return result;
}

const adapter = given.type === "lora" ? { rank, alpha: rank, targets: PROJECTIONS, seed: 1 } : undefined;
const engine = await phase("load", () =>
  startEngine({
    ...{ model, threads: Number(given.threads), microBatchTokens: micro * length, adapter },
    activationCheckpointing: checkpointing ? "Always" : "Never",
    resident: given.resident === "true",
  }),
);
const next = uniforms(2, "tokens");
const draw = (count: number) =>
  Int32Array.from({ length: count }, () => 1 + Math.floor(next() * (config.vocabSize - 1)));
const batch = Array.from({ length: Number(given.batch) }, () => ({
  prompt: draw(length / 2),
  response: draw(length / 2),
}));
await phase("generate", () =>
  engine.generate(
    batch.map(({ prompt }) => prompt),
    { seeds: batch.map((_, i) => i), temperature: 1, topP: 1, maxNewTokens: newTokens },
  ),
);
const update = async () => {
  await engine.initializeCritic(-1);
  const evaluated = await engine.evaluate(batch, { temperature: 1, values: true });
  const adam = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 };
  const step = { learningRate: 1e-4, gradientClip: 1, adam, aggregation: "TokenMean" as const, microBatchSize: micro };
  const values = batch.map((sample, i) => ({
    ...{ ...sample, oldValues: evaluated[i].values, returns: evaluated[i].values.map((v) => v + 1) },
  }));
  await engine.updateCritic(values, { ...step, valueClip: 0 });
  const ones = (count: number, value: number) => new Float32Array(count).fill(value);
  const policy = batch.map((sample, i) => ({
    ...{ ...sample, proximalLogProbs: evaluated[i].logProbs, weight: 1 },
    ...{ advantages: ones(length / 2, i % 2 ? 1 : -1), importance: ones(length / 2, 1) },
  }));
  return engine.updatePolicy(policy, {
    ...step,
    temperature: 1,
    clipRatio: 0.2,
    dualClip: 0,
    entropyCoefficient: 0.001,
  });
};
await phase("update", update);
// now the policy differs from the reference, so the reference has a session, too
const { gradientNorm } = await phase("second update", update);
await phase("save", () => engine.save(path.join(model, "checkpoint")));
const checkpoint = fs
  .readdirSync(path.join(model, "checkpoint"), { recursive: true, withFileTypes: true })
  .reduce(
    (total, entry) => total + (entry.isFile() ? fs.statSync(path.join(entry.parentPath, entry.name)).size : 0),
    0,
  );
clearInterval(timer);
await engine.close();
const plan = new Planner({
  ...{ model, adapter, critic: true, maxPromptTokens: length / 2, maxResponseTokens: length / 2 },
  ...{ microBatchSize: micro, generationBatchSize: Number(given.batch), samplesPerPrompt: 1, device: { kind: "cpu" } },
  checkpointing,
}).plan(micro * length, workerCount({ threads: Number(given.threads), adapter }));
const planBytes = plan.hostBytes - SURROUNDINGS_BYTES;
fs.rmSync(model, { recursive: true });
const mebibytes = (count: number) => Math.round(count / 1048576);
const highest = Math.max(...Object.entries(peaks).map(([name, { pss }]) => (name === "save" ? 0 : pss)));
const facts = {
  ...given,
  highestMiB: highest,
  planMiB: mebibytes(planBytes),
  planOverHighest: Number((planBytes / 1048576 / highest).toFixed(2)),
  planRowsMiB: Object.fromEntries(plan.rows.map(({ what, hostBytes }) => [what, mebibytes(hostBytes)])),
  fileMiB: mebibytes(bytes),
  checkpointMiB: mebibytes(checkpoint),
  beforeMiB: MB(before),
  gradientNorm,
};
process.stdout.write(`${JSON.stringify({ ...facts, peaksMiB: peaks })}\n`);
