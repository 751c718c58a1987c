/**
 * Measures how long the main thread, which serves actors and metrics, is blocked at a time while the engine's worker generates:
 *
 *     node test/bench/blocking.ts [--rounds 4] [--response 256] [--threads 1] [--program-lines 60]
 *
 * A real rollout with the bundled policy, its tokenizer and a store on disk: batches of 64 improve prompts in the paper's
 * style, whose solutions are parsed and instrumented. node:perf_hooks measures the delay, which includes the time of other processes on
 * the cores. The CPU time between two measurements is the main thread's own.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { policyFolder } from "../../crds/policy.ts";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { startEngine } from "../../learner/engine/engine.ts";
import { readTokenizer } from "../../learner/engine/model/folder.ts";
import { Rollout } from "../../learner/rollout/rollout.ts";
import { openStore } from "../../learner/store/store.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "4" },
    response: { type: "string", default: "256" },
    threads: { type: "string", default: "1" },
    "program-lines": { type: "string", default: "60" },
  },
});
const manifest = `{apiVersion: longrun.dev/v1alpha1, kind: TrainingRun, metadata: {name: a}, spec: {seed: 3, tasks: [{name: diamonds}],
  prompts: {style: Paper, improveProbability: 1}, model: {policy: quickstart, maxPromptTokens: 700, maxResponseTokens: ${values.response},
  instrumenter: Syntax}}}`;
const { spec } = parseTrainingRun(manifest, "bench");
const policy = policyFolder("quickstart", "bench", ".");
const tokenizer = readTokenizer(policy);
const directory = fs.mkdtempSync(path.join(os.tmpdir(), "longrun-blocking-"));
const store = openStore(path.join(directory, "store.sqlite"));
await store.beginLineage(() => false);
const engine = await startEngine({ model: policy, threads: Number(values.threads) });

const lines = Array.from({ length: Number(values["program-lines"]) }, (_, i) => `x${i} = train["price"].mean() + ${i}`);
const program = `import pandas as pd\ntrain = pd.read_csv("input/train.csv")\n${lines.join("\n")}\n`;
const text = `Fit a ridge.\n\`\`\`python\n${program}\`\`\``;
const previous = Array.from({ length: 64 }, (_, i) => ({
  ...{ id: `s${i}`, task: "diamonds", plan: "Fit a mean.", program, score: i, durationSeconds: 1 },
  terminalOutput: "loaded data\n".repeat(400),
}));
const written = tokenizer.encode(text);
const rollout = new Rollout({
  // The policy's own solutions are short: they are generated and timed, but replaced by a program of the usual length.
  engine: {
    ...engine,
    generate: async (prompts, options) => {
      const generated = await engine.generate(prompts, options);
      return generated.map((each) => ({ ...each, response: written, logProbs: new Float32Array(written.length) }));
    },
  },
  store: {
    lineage: 1,
    previousSolutions: () => previous,
    failedSolutions: () => [],
  },
  addSamples: async (samples) => store.addSamples(samples.map((sample) => ({ ...sample, previous: undefined }))),
  tasks: [
    {
      weight: 1,
      ...{ name: "diamonds", description: "Predict the price.", metric: { name: "MAE", direction: "Lower" } },
      ...{ columns: ["id", "size", "price"], files: [], snippet: [], submissionFormat: [], packages: [] },
    },
  ],
  spec,
  encode: (messages) => tokenizer.encodeChat(messages),
  decode: (tokens) => tokenizer.decode(tokens),
  nextNumber: 1,
});

const delay = monitorEventLoopDelay({ resolution: 1 });
let longestCpu = 0;
let last = process.threadCpuUsage();
const look = () => {
  const { user, system } = process.threadCpuUsage(last);
  longestCpu = Math.max(longestCpu, (user + system) / 1000);
  last = process.threadCpuUsage();
};
const timer = setInterval(look, 1);
for (let round = 0; round < Number(values.rounds); round++) {
  delay.reset();
  delay.enable();
  longestCpu = 0;
  const start = performance.now();
  const generation = rollout.generation(0);
  generation.begin(64);
  await generation.end();
  const seconds = (performance.now() - start) / 1000;
  look();
  delay.disable();
  const [max, high] = [delay.max, delay.percentile(99)].map((nanoseconds) => (nanoseconds / 1e6).toFixed(1));
  console.log(
    `round ${round + 1}: ${seconds.toFixed(1)} s; delay at most ${max} ms, 99th percentile ${high} ms; CPU time at a stretch at most ${longestCpu.toFixed(1)} ms`,
  );
}
clearInterval(timer);
await engine.close();
store.close();
fs.rmSync(directory, { recursive: true });
