/** Runs a learner's phases on a GPU and counts each phase's operations. */
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import {
  type EngineOptions,
  type GenerateOptions,
  type RunningEngine,
  startEngine,
} from "../../learner/engine/engine.ts";
import type { ModelConfig } from "../../learner/engine/model/config.ts";
import { writeHollowModel } from "../../learner/engine/model/hollow.fixture.ts";
import { ADAPTER, criticStep, policyStep, type Sample, samples } from "../bench/gpu.ts";
import { type Counts, counting } from "./counts.ts";
import { type Placement, placements } from "./placement.ts";

/** Tokens of a generated response: four chunks. */
const GENERATED = 64;

export interface Shape {
  config: ModelConfig;
  /** Number of sequences, and tokens of each. */
  batch: number;
  prompt: number;
  response: number;
}

/** Engine options by the figures' names. */
export const CONFIGURATIONS: Record<string, Partial<EngineOptions>> = {
  "LoRA, float32": { adapter: ADAPTER },
  "LoRA, bfloat16": { adapter: ADAPTER, compute: "bfloat16" },
  "LoRA, float32, layers recomputed": { adapter: ADAPTER, activationCheckpointing: "Always" },
  "every weight, float32": {},
  "every weight, bfloat16": { compute: "bfloat16" },
  "every weight, bfloat16, layers recomputed": { compute: "bfloat16", activationCheckpointing: "Always" },
};

export const PHASES: Record<string, (engine: RunningEngine, batch: Sample[]) => Promise<unknown>> = {
  "log-probs": (engine, batch) => engine.evaluate(batch, { temperature: 1, values: false }),
  "critic step": criticStep,
  "policy step": policyStep,
  generation: (engine, batch) => sampled(engine, batch, {}),
};

/** Samples responses as a run does. */
export const sampled = (engine: RunningEngine, batch: Sample[], options: Partial<GenerateOptions>) =>
  engine.generate(
    batch.map(({ prompt }) => prompt),
    {
      seeds: batch.map((_, i) => i),
      temperature: 1,
      topP: 1,
      maxNewTokens: Math.min(GENERATED, batch[0]!.response.length),
      ...options,
    },
  );

export interface PhaseResult {
  phase: string;
  /** Counts of the second time, because the first makes sessions. */
  counts: Counts;
  /** Seconds of the first time. */
  firstSeconds: number;
}

/** Tokens are uninitialised memory, mostly 0, so 0 must not end a response: all responses are equally long. */
export function endWith(folder: string, token: number): void {
  const file = path.join(folder, "config.json");
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), eos_token_id: token }));
}

/** Runs `act` with an engine on the first device. `act` also gets the model's folder. */
export async function onDevice<T>(
  shape: Shape,
  options: Partial<EngineOptions>,
  act: (engine: RunningEngine, batch: Sample[], folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "longrun-rehearsal-"));
  try {
    writeHollowModel(folder, shape.config);
    endWith(folder, shape.config.vocabSize - 1);
    const engine = await startEngine({
      ...{ model: folder, threads: 1, device: { kind: "cuda", id: 0 } },
      microBatchTokens: shape.batch * (shape.prompt + shape.response),
      activationCheckpointing: "Never", // Auto would depend on this machine's memory
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

/** Runs every phase twice. Returns counts, and where each graph's nodes ran. */
export async function runPhases(
  shape: Shape,
  options: Partial<EngineOptions>,
): Promise<{ phases: PhaseResult[]; placements: Record<string, Placement> }> {
  const profiles = await mkdtemp(path.join(os.tmpdir(), "longrun-profiles-"));
  try {
    process.env.LONGRUN_PROFILE = path.join(profiles, "run"); // the engine's worker reads it when it starts
    const phases = await onDevice(shape, options, async (engine, batch) => {
      await engine.initializeCritic(0);
      const results: PhaseResult[] = [];
      for (const [phase, act] of Object.entries(PHASES)) {
        const start = performance.now();
        await act(engine, batch);
        const firstSeconds = (performance.now() - start) / 1000;
        const { counts } = await counting(() => act(engine, batch));
        results.push({ phase, counts, firstSeconds });
      }
      return results;
    });
    return { phases, placements: placements(path.join(profiles, "run")) };
  } finally {
    delete process.env.LONGRUN_PROFILE;
    await rm(profiles, { recursive: true });
  }
}

/** `node test/rehearsal/phases.ts '{"shape":…,"options":…}' FILE` writes the result of `runPhases` as JSON. */
if (import.meta.main) {
  const [asked, file] = process.argv.slice(2) as [string, string];
  const { shape, options } = JSON.parse(asked) as { shape: Shape; options: Partial<EngineOptions> };
  writeFileSync(file, JSON.stringify(await runPhases(shape, options)));
  process.exit(0);
}
