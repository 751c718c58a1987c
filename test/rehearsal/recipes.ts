/** The recipes of `manifests/examples`: their GPUs, and the sizes with which they can be rehearsed. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseQuantity } from "../../crds/quantity.ts";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { fitRun } from "../../learner/engine/fit.ts";
import { SHAPES, writeHollowModel } from "../../learner/engine/model/hollow.fixture.ts";
import type { MemoryPlan } from "../../learner/engine/plan.ts";
import { requestOf } from "../../learner/engine-options.ts";

const ROOT = path.join(import.meta.dirname, "../..");

export interface Recipe {
  /** Path below the project's folder. */
  file: string;
  /** Shape of the model that it fetches. */
  shape: keyof typeof SHAPES;
  gpus: number;
  /** Free memory of such a GPU, 10^9 bytes. */
  gigabytes: number;
}

export const RECIPES: readonly Recipe[] = [
  { file: "manifests/examples/laptop-gpu.yaml", shape: "0.5b", gpus: 1, gigabytes: 12 },
  { file: "manifests/examples/one-gpu.yaml", shape: "3b", gpus: 1, gigabytes: 80 },
  { file: "manifests/examples/eight-gpus.yaml", shape: "3b", gpus: 8, gigabytes: 40 },
];

/** Returns the plan of a recipe, for a machine that has the memory that the recipe asks for. @throws EngineError `memory` */
export function planOf({ file, shape, gpus, gigabytes }: Recipe): MemoryPlan {
  const { spec } = parseTrainingRun(readFileSync(path.join(ROOT, file), "utf8"), file);
  const model = mkdtempSync(path.join(os.tmpdir(), "longrun-recipe-"));
  try {
    writeHollowModel(model, SHAPES[shape]);
    const devices = Array.from({ length: gpus }, (_, id) => ({ kind: "cuda", id }) as const);
    const request = { ...requestOf(spec, model, devices[0]!), ...(gpus > 1 && { devices }) };
    const memory = parseQuantity(String(spec.learner.resources.limits?.memory))!;
    const budget = {
      gpu: { bytes: gigabytes * 1e9, source: "given" },
      host: { bytes: memory, source: "learner.resources.limits" },
    };
    return fitRun(request, spec.learner.threads, budget, spec.learner.activationCheckpointing);
  } finally {
    rmSync(model, { recursive: true });
  }
}

/**
 * Overrides of sizes, and of settings that follow from them. The bundled policy of a million weights replaces the model: it has Qwen2's
 * layers, fewer and narrower. It knows short prompts and the task diamonds, which replaces each recipe's task. Its programs need no torch.
 */
export const SMALL: readonly string[] = [
  ...["model.source=null", "model.policy=quickstart", "prompts.style=Short", "actors.packages=Basic"],
  "tasks=[{name: diamonds, executionTimeoutSeconds: 20, executionMemoryBytes: 1610612736}]",
  ...["model.maxPromptTokens=256", "model.maxResponseTokens=256", "model.generationBatchSize=8"],
  ...["model.instrumenterMaxPromptTokens=768", "model.instrumenterMaxResponseTokens=16"],
  ...["algorithm.batchSize=8", "algorithm.miniBatchSize=8", "algorithm.microBatchSize=2", "algorithm.groupSize=4"],
  ...["evaluation.samples=2", "evaluation.everyIterations=1", "stopping.iterations=2"],
  ...["actors.min=1", "actors.max=1", "actors.slots=1"],
];
