/** What a learner does on a GPU, phase by phase, with the operations that each phase makes. */
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { ModelConfig } from "../../learner/model/config.ts";
import { writeHollowModel } from "../../learner/model/hollow.fixture.ts";
import { type EngineOptions, type RunningEngine, startEngine } from "../../learner/ppo/engine.ts";
import { ADAPTER, criticStep, greedy, policyStep, type Sample, samples } from "../bench/gpu.ts";
import { type Counts, counting } from "./counts.ts";

export interface Shape {
  config: ModelConfig;
  /** sequences, and the tokens of each */
  batch: number;
  prompt: number;
  response: number;
}

export const TRAINED = { lora: { adapter: ADAPTER }, all: {} } satisfies Record<string, Partial<EngineOptions>>;

export const PHASES: Record<string, (engine: RunningEngine, batch: Sample[]) => Promise<unknown>> = {
  "log-probs": (engine, batch) => engine.evaluate(batch, { temperature: 1, values: false }),
  "critic step": criticStep,
  "policy step": policyStep,
  generation: (engine, batch) => greedy(engine, batch, batch[0]!.response.length),
};

export interface PhaseResult {
  phase: string;
  /** of the second time: the first makes sessions */
  counts: Counts;
  /** of the first time */
  firstSeconds: number;
}

/** An engine on the first device. `act` is given the model's folder, too. */
export async function onDevice<T>(
  shape: Shape,
  options: Partial<EngineOptions>,
  act: (engine: RunningEngine, batch: Sample[], folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "longrun-rehearsal-"));
  try {
    writeHollowModel(folder, shape.config);
    const engine = await startEngine({
      ...{ model: folder, threads: 1, device: { kind: "cuda", id: 0 } },
      ...{ microBatchTokens: shape.batch * (shape.prompt + shape.response) },
      ...options,
    });
    try {
      return await act(engine, samples(shape.config, shape.batch, shape.prompt, shape.response), folder);
    } finally {
      await engine.close();
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Every phase twice. */
export function runPhases(
  shape: Shape,
  options: Partial<EngineOptions>,
  phases: readonly string[] = Object.keys(PHASES),
): Promise<PhaseResult[]> {
  return onDevice(shape, options, async (engine, batch) => {
    await engine.initializeCritic(0);
    const results: PhaseResult[] = [];
    for (const phase of phases) {
      const start = performance.now();
      await PHASES[phase]!(engine, batch);
      const firstSeconds = (performance.now() - start) / 1000;
      const { counts } = await counting(() => PHASES[phase]!(engine, batch));
      results.push({ phase, counts, firstSeconds });
    }
    return results;
  });
}
