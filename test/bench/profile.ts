/**
 * Shows where the time of a training step goes, by ONNX Runtime's profile:
 *
 *     node test/bench/profile.ts [--size quickstart|3.4m|27m] [--sequences 4] [--prompt 128] [--response 128]
 *         [--threads 2] [--graph policy|critic|evaluate] [--lora] [--runs 5]
 *
 * Prints a line for each kind of operator with its share of all operators' time, and the share of a run's wall-clock time that is spent in
 * operators. The first run is not counted.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { adaptationOf } from "../../learner/engine/adaptation.ts";
import type { Graph } from "../../learner/engine/graph/graph.ts";
import { boundDims, peakMemory } from "../../learner/engine/graph/memory.ts";
import { type Tensor, tensor } from "../../learner/engine/graph/tensor.ts";
import { decoderFeeds } from "../../learner/engine/model/decoder.ts";
import { PROJECTIONS } from "../../learner/engine/model/lora.ts";
import { createSession } from "../../learner/engine/runtime/runtime.ts";
import { evaluateGraph, policyStepGraph, valueStepGraph } from "../../learner/engine/steps.ts";
import { type SIZES, writeWork } from "./update-work.ts";

const { values } = parseArgs({
  options: {
    size: { type: "string", default: "3.4m" },
    sequences: { type: "string", default: "4" },
    prompt: { type: "string", default: "128" },
    response: { type: "string", default: "128" },
    threads: { type: "string", default: "2" },
    graph: { type: "string", default: "policy" },
    lora: { type: "boolean", default: false },
    runs: { type: "string", default: "5" },
  },
});
const [prompt, response, runs] = [values.prompt, values.response, values.runs].map(Number) as [number, number, number];
const lengths = new Array(Number(values.sequences)).fill([prompt, response]);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "longrun-profile-"));
writeWork(folder, {
  ...{ size: values.size as keyof typeof SIZES, lengths, maxPromptTokens: prompt, maxResponseTokens: response },
});
const adapter = values.lora ? { rank: 16, alpha: 16, targets: PROJECTIONS, seed: 0 } : undefined;
const model = adaptationOf(folder, adapter);
const graph: Graph = {
  policy: () => policyStepGraph(model),
  critic: () => valueStepGraph(model),
  evaluate: () => evaluateGraph(model, "policy"),
}[values.graph as "policy"]();

const ids = (length: number) => Int32Array.from({ length }, (_, i) => (i * 37) % model.config.vocabSize);
const rows = lengths.map(() => ({ prompt: ids(prompt), responses: [ids(response)] }));
const feeds: Record<string, Tensor> = { ...decoderFeeds(rows, model.config) };
const dims = boundDims(graph, feeds);
const weights = new Map(model.initial());
for (const { name, dtype, shape } of graph.inputs) {
  if (feeds[name]) continue;
  const size = shape.map((dim) => (typeof dim === "number" ? dim : dims[dim]!));
  const count = size.reduce((product, length) => product * length, 1);
  const zeros = dtype === "int32" ? new Int32Array(count) : new Float32Array(count);
  feeds[name] = tensor(weights.get(name) ?? zeros, size);
}

const prefix = path.join(folder, "profile");
const session = await createSession(graph, {
  ...{ threads: Number(values.threads), profilePrefix: prefix, ...model.sessionOptions },
});
await session.run(feeds);
const start = performance.now();
for (let i = 0; i < runs; i++) await session.run(feeds);
const wall = (performance.now() - start) / runs;
await session.release(); // writes the profile
const file = fs.readdirSync(folder).find((name) => name.startsWith("profile"));
if (!file) throw new Error("ONNX Runtime wrote no profile");
interface Event {
  cat: string;
  name: string;
  dur: number;
  ts: number;
  args?: { op_name?: string };
}
const events = JSON.parse(fs.readFileSync(path.join(folder, file), "utf8")) as Event[];
const kernels = events.filter(({ cat, name }) => cat === "Node" && name.endsWith("_kernel_time"));
const [first] = events.filter(({ name }) => name === "model_run").sort((a, b) => a.ts - b.ts);
const counted = kernels.filter(({ ts }) => ts > first!.ts + first!.dur);
const spent = new Map<string, number>();
for (const { dur, args } of counted)
  spent.set(args?.op_name ?? "?", (spent.get(args?.op_name ?? "?") ?? 0) + dur / 1000 / runs);
const all = [...spent.values()].reduce((total, each) => total + each, 0);
console.log(
  `${values.graph} of ${values.size}, ${values.sequences} x ${prompt + response} tokens: ${wall.toFixed(1)} ms a run, ` +
    `${all.toFixed(1)} ms in operators; activations at most ${Math.round(peakMemory(graph, dims, { outputsHeld: true }).bytes / 1e6)} MB`,
);
for (const [name, each] of [...spent].sort((a, b) => b[1] - a[1]).slice(0, 16))
  console.log(`${name.padEnd(28)}${each.toFixed(2).padStart(9)} ms ${((100 * each) / all).toFixed(1).padStart(5)} %`);
fs.rmSync(folder, { recursive: true });
