/**
 * Tests whether a 3B model trains with LoRA within the device's memory at the paper's lengths: compares the learner's plan with the
 * device's memory use in each phase of an iteration, in bfloat16. The first time of a phase includes its sessions. Weights are zeros, which
 * need the same memory.
 */
import { setImmediate as turn } from "node:timers/promises";
import { hostMemory } from "../../../learner/engine/available-memory.ts";
import { startEngine } from "../../../learner/engine/engine.ts";
import { fitRun } from "../../../learner/engine/fit.ts";
import type { ModelConfig } from "../../../learner/engine/model/config.ts";
import { writeHollowModel } from "../../../learner/engine/model/hollow.fixture.ts";
import { deviceName } from "../../../learner/engine/runtime/device.ts";
import { graphCompute } from "../../../learner/engine/sessions.ts";
import { kilobytes } from "../process-memory.ts";
import type { Goal } from "../result.ts";
import { memoryReader } from "./device.ts";
import { type Finding, findingsOf, type PartOptions } from "./part.ts";
import { ADAPTER, criticStep, formatsOf, MODELS, policyStep, samples } from "./work.ts";

interface Work {
  name: string;
  config: ModelConfig;
  prompt: number;
  response: number;
  /** Number of responses that are generated side by side and whose log-probs are computed. */
  generated: number;
  /** Sequences of an optimiser step, and of one pass. */
  trained: number;
  microBatch: number;
}

/** Lengths and batches are a manifest's defaults, which are the paper's (Table 3). */
const WORK: Work = {
  ...{ name: "3b", config: MODELS["3b"], prompt: 1024, response: 1024 },
  ...{ generated: 64, trained: 16, microBatch: 8 },
};
const SMALL_WORK: Work = {
  ...{ name: "quickstart", config: MODELS.quickstart, prompt: 32, response: 32 },
  ...{ generated: 4, trained: 4, microBatch: 2 },
};

/** Allowed ratio of plan and peak: ../../../learner/engine/memory.md. */
const RATIO = { least: 0.9, most: 1.3 };
const SAMPLE_MILLISECONDS = 20;

export async function* memory(options: PartOptions): AsyncGenerator<Finding> {
  const work = options.small ? SMALL_WORK : WORK;
  yield* findingsOf(`${work.name}: memory`, () => iteration(options, work));
}

/** Runs the phases of an iteration. */
async function* iteration({ device, usedBytes, folder }: PartOptions, its: Work): AsyncGenerator<Finding> {
  const { name, config, prompt, response, ...work } = its;
  const usedBefore = device.kind === "cuda" ? usedBytes : kilobytes("/proc/self/smaps_rollup", "Pss");
  const read = device.kind === "cuda" ? memoryReader(device) : undefined;
  /** Bytes of the device without the use by other processes, or bytes of this process. */
  const used = () => {
    if (!read) return kilobytes("/proc/self/smaps_rollup", "Pss") - usedBefore;
    const { freeBytes, totalBytes } = read();
    return totalBytes - freeBytes - usedBefore;
  };
  const context = used();
  writeHollowModel(folder, config);
  const compute = formatsOf(device).includes("bfloat16") ? "bfloat16" : "float32";
  const free = read?.();
  const plan = fitRun(
    {
      ...{ model: folder, adapter: ADAPTER, critic: true, device, compute: graphCompute(compute) },
      ...{ maxPromptTokens: prompt, maxResponseTokens: response, microBatchSize: work.microBatch },
      ...{ generationBatchSize: work.generated, samplesPerPrompt: 1 },
    },
    0,
    { host: hostMemory(), gpu: free && { bytes: free.freeBytes, source: `free on ${deviceName(device)}` } },
  );
  const planBytes = device.kind === "cuda" ? plan.gpuBytes : plan.hostBytes;
  yield {
    notes: [
      `LoRA of rank ${ADAPTER.rank}, ${compute}, ${prompt} + ${response} tokens; ${work.generated} generated side by side, steps of ${work.trained} sequences`,
      `the plan: passes of ${plan.microBatchTokens} tokens, layers ${plan.checkpointing ? "recomputed" : "kept"}${free ? `; ${gigabytes(free.freeBytes)} GB of ${gigabytes(free.totalBytes)} GB were free` : ""}`,
    ],
    raw: { plan },
    rows: [
      {
        shape: name,
        phase: "nothing yet: CUDA itself",
        "first, s": "",
        "again, s": "",
        "used, GB": gigabytes(context),
        "plan, GB": gigabytes(plan.rows.find(({ what }) => what === "process")?.gpuBytes ?? 0),
      },
    ],
  };
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, used());
  }, SAMPLE_MILLISECONDS);
  const phase = async (what: string, act: () => Promise<unknown>): Promise<Finding> => {
    const timed = async () => {
      const start = performance.now();
      await act();
      return ((performance.now() - start) / 1000).toFixed(1);
    };
    const [first, again] = [await timed(), await timed()];
    await turn();
    peak = Math.max(peak, used()); // arenas keep their memory
    return {
      rows: [
        {
          ...{ shape: name, phase: what, "first, s": first, "again, s": again },
          ...{ "used, GB": gigabytes(peak), "plan, GB": gigabytes(planBytes) },
        },
      ],
    };
  };
  const { microBatchTokens, rowTokens, ranks, checkpointing } = plan;
  const engine = await startEngine({
    ...{ model: folder, device, threads: 0, adapter: ADAPTER, compute, microBatchTokens, rowTokens, workers: ranks },
    activationCheckpointing: checkpointing ? "Always" : "Never",
  });
  const batch = samples(config, work.generated, prompt, response);
  const trained = batch.slice(0, work.trained);
  yield await phase("log-probs and values", () => engine.evaluate(batch, { temperature: 1, values: true }));
  yield await phase("critic step", () => criticStep(engine, trained, work.microBatch));
  yield await phase("policy step", () => policyStep(engine, trained, work.microBatch));
  // from now on the reference differs from the policy
  yield await phase("log-probs, reference, values", () => engine.evaluate(batch, { temperature: 1, values: true }));
  // last, because it takes longest; arenas keep their memory, so the order of phases does not change the peak
  yield await phase("generation", () =>
    engine.generate(
      batch.map((sample) => sample.prompt),
      { seeds: batch.map((_, i) => i), temperature: 1, topP: 1, maxNewTokens: response },
    ),
  );
  clearInterval(timer);
  await engine.close();
  yield { goals: goalsOf(planBytes, peak, free && free.totalBytes - usedBefore) };
}

/** @param thereBytes memory of the device without the use by other processes; undefined for a CPU */
function goalsOf(planBytes: number, peak: number, thereBytes: number | undefined): Goal[] {
  const ratio = planBytes / peak;
  const within =
    thereBytes === undefined
      ? []
      : [
          {
            ...{ what: "an iteration runs within the device's memory", goal: `<= ${gigabytes(thereBytes)} GB` },
            ...{ measured: `${gigabytes(peak)} GB`, met: peak <= thereBytes },
          },
        ];
  return [
    ...within,
    {
      ...{ what: "memory plan / peak", goal: `${RATIO.least} to ${RATIO.most}` },
      measured: `${gigabytes(planBytes)} / ${gigabytes(peak)} GB = ${ratio.toFixed(2)}`,
      met: ratio >= RATIO.least && ratio <= RATIO.most,
    },
  ];
}

const gigabytes = (bytes: number) => (bytes / 1e9).toFixed(2);
