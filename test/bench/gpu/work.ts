/** Work for the GPU: models, batches, and the calls of an iteration. */

import type { ComputeFormat, RunningEngine } from "../../../learner/engine/engine.ts";
import type { ModelConfig } from "../../../learner/engine/model/config.ts";
import { SHAPES } from "../../../learner/engine/model/hollow.fixture.ts";
import { PROJECTIONS } from "../../../learner/engine/model/lora.ts";
import { uniforms } from "../../../learner/engine/model/random.ts";
import type { Device } from "../../../learner/engine/runtime/device.ts";
import { SIZES } from "../update-work.ts";

export const MODELS: Record<keyof typeof SHAPES | "quickstart", ModelConfig> = {
  ...SHAPES,
  quickstart: SIZES.quickstart,
};

export const ADAPTER = { rank: 16, alpha: 16, targets: PROJECTIONS, seed: 1 };

/** Kinds of training, and a step's operations per token and weight. */
export const TRAINED = {
  // forward and backward through a frozen trunk: two products of each matrix with every token, and no gradient of the matrix
  lora: { engine: { adapter: ADAPTER }, operations: 4, name: "LoRA" },
  all: { engine: {}, operations: 6, name: "every weight" },
};
export type Trained = keyof typeof TRAINED;

/** Returns the formats that a device can compute in: ONNX Runtime has the last two on CUDA only. */
export const formatsOf = ({ kind }: Device): ComputeFormat[] =>
  kind === "cuda" ? ["bfloat16", "float32", "tf32"] : ["float32"];

export const STEP = {
  learningRate: 1e-4,
  gradientClip: 1,
  aggregation: "TokenMean" as const,
  temperature: 1,
  clipRatio: 0.2,
  dualClip: 0,
  ...{ entropyCoefficient: 0, adam: { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0 } },
};

export type Sample = { prompt: Int32Array; response: Int32Array };

/** Random tokens. */
export function samples(config: ModelConfig, count: number, prompt: number, response: number): Sample[] {
  const next = uniforms(2, "tokens");
  const draw = (length: number) => Int32Array.from({ length }, () => Math.floor(config.vocabSize * next()));
  return Array.from({ length: count }, () => ({ prompt: draw(prompt), response: draw(response) }));
}

/** Log-prob of each token before the update, the same for PyTorch. */
export const PROXIMAL = -10;
export const filled = (length: number, value: number) => new Float32Array(length).fill(value);
export const advantageOf = (i: number) => (i % 2 === 0 ? 1 : -1);
export const returnOf = (i: number) => (i % 3) - 1;

/** @param microBatchSize sequences of a forward and backward pass; default: all */
export async function policyStep(engine: RunningEngine, batch: Sample[], microBatchSize = batch.length) {
  const policy = batch.map((sample, i) => ({
    ...sample,
    proximalLogProbs: filled(sample.response.length, PROXIMAL),
    advantages: filled(sample.response.length, advantageOf(i)),
    importance: filled(sample.response.length, 1),
    weight: 1,
  }));
  return engine.updatePolicy(policy, { ...STEP, microBatchSize });
}

/** @param microBatchSize sequences of a forward and backward pass; default: all */
export async function criticStep(engine: RunningEngine, batch: Sample[], microBatchSize = batch.length) {
  const critic = batch.map((sample, i) => ({
    ...sample,
    oldValues: filled(sample.response.length, 0),
    returns: filled(sample.response.length, returnOf(i)),
  }));
  return engine.updateCritic(critic, { ...STEP, valueClip: 0, microBatchSize });
}
