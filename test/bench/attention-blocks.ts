/**
 * Measures the costs and savings of a number of attention blocks: one thread, two layers of Qwen2.5-0.5B's width:
 *
 *     node test/bench/attention-blocks.ts evaluate|step|checkpointed TOKENS [BLOCKS]
 *
 * Prints one JSON line: CPU seconds of the third run, and the growth of resident memory.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fullAdaptation } from "../../learner/engine/adaptation.ts";
import { Parameters } from "../../learner/engine/graph/parameters.ts";
import { type Tensor, tensor } from "../../learner/engine/graph/tensor.ts";
import { blocksOf, decoderFeeds } from "../../learner/engine/model/decoder.ts";
import { SHAPES } from "../../learner/engine/model/hollow.fixture.ts";
import { createSession } from "../../learner/engine/runtime/runtime.ts";
import { evaluateGraph, policyStepGraph, SUM_PREFIX } from "../../learner/engine/steps.ts";
import { writeRandomModel } from "./random-model.ts";

const [what, tokens] = [process.argv[2], Number(process.argv[3])];
const blocks = process.argv[4] === undefined ? blocksOf(tokens) : Number(process.argv[4]);
const checkpointing = what === "checkpointed";
const RESPONSE = 128;
const config = { ...SHAPES["0.5b"], vocabSize: 1000, layers: 2 };
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "attention-blocks-"));
writeRandomModel(folder, config, "F32");
const model = fullAdaptation(folder);
const weights = new Parameters(model.shapes.policy);
for (const [name, data] of model.initial()) weights.set(name, data);
fs.rmSync(folder, { recursive: true });

const started = performance.now();
const graph =
  what !== "evaluate" ? policyStepGraph(model, { blocks, checkpointing }) : evaluateGraph(model, "policy", { blocks });
const session = await createSession(graph, { threads: 1 });
const sessionMilliseconds = Math.round(performance.now() - started);
const ids = (length: number) => Int32Array.from({ length }, (_, i) => (7 * i) % config.vocabSize);
const each = (value: number) => tensor(new Float32Array(RESPONSE).fill(value));
const scalar = (value: number) => tensor(Float32Array.of(value), []);
const feeds: Record<string, Tensor> = {
  ...weights.views(),
  ...(what !== "evaluate" && new Parameters(weights.shapes).views(SUM_PREFIX)),
  ...decoderFeeds([{ prompt: ids(tokens - RESPONSE), responses: [ids(RESPONSE)] }], config, { packs: false, blocks }),
  ...{ targets: tensor(ids(RESPONSE)), inverseTemperature: scalar(1), advantages: each(1), policyScale: each(1) },
  ...{ proximalLogProbs: each(-7), referenceLogProbs: each(-7), klScale: each(0), entropyScale: each(0) },
  ...{ ratioLow: scalar(0.8), ratioHigh: scalar(1.2), dualClip: scalar(1e30) },
};
const resident = () => Number(/VmHWM:\s+(\d+)/.exec(fs.readFileSync("/proc/self/status", "utf8"))![1]) / 1024;
fs.writeFileSync("/proc/self/clear_refs", "5"); // resets the peak
const before = resident();
let cpuSeconds = 0;
for (let run = 0; run < 3; run++) {
  const begin = process.cpuUsage();
  await session.run(feeds);
  const { user, system } = process.cpuUsage(begin);
  cpuSeconds = (user + system) / 1e6;
}
const grownMebibytes = Math.round(resident() - before);
process.stdout.write(`${JSON.stringify({ what, tokens, blocks, cpuSeconds, grownMebibytes, sessionMilliseconds })}\n`);
