/** The work of update.ts and update_torch.py: a model folder and a batch, which both read. */
import fs from "node:fs";
import path from "node:path";
import { configJson, type ModelConfig } from "../../learner/engine/model/config.ts";
import { uniforms } from "../../learner/engine/model/random.ts";
import { writeSafetensors } from "../../learner/engine/model/safetensors.ts";
import { elementCount, initialWeights, parameters } from "../../learner/engine/model/weights.ts";

const COMMON = {
  ...({ modelType: "qwen2", normEpsilon: 1e-6, ropeTheta: 10000, tied: true, queryKeyValueBias: true } as const),
  ...{ keyValueHeads: 2, maxPositions: 1024, initializerRange: 0.02 },
};

/** Parameters: 1.1, 3.4 and 28 million. */
export const SIZES = {
  quickstart: {
    ...{ ...COMMON, vocabSize: 2048, hiddenSize: 128, intermediateSize: 384 },
    ...{ layers: 4, heads: 4, headSize: 32 },
  },
  "3.4m": {
    ...{ ...COMMON, vocabSize: 4096, hiddenSize: 256, intermediateSize: 512 },
    ...{ layers: 4, heads: 4, headSize: 64 },
  },
  "27m": {
    ...{ ...COMMON, vocabSize: 8192, hiddenSize: 512, intermediateSize: 1536 },
    ...{ layers: 8, heads: 8, headSize: 64 },
  },
} satisfies Record<string, ModelConfig>;

export interface Work {
  size: keyof typeof SIZES;
  /** Tokens of prompt and response of each sample. */
  lengths: [prompt: number, response: number][];
  /** Prompts of this length are the same prompt; default: none. */
  sharedPromptTokens?: number;
  maxPromptTokens: number;
  maxResponseTokens: number;
}

/** Input of both sides besides the weights: arrays by sample. */
export interface Batch {
  prompts: number[][];
  responses: number[][];
  /** Log-prob of every token before the update, and every old value. */
  proximal: number;
  oldValue: number;
  advantages: number[];
  returns: number[];
  maxPromptTokens: number;
  maxResponseTokens: number;
  temperature: number;
  clipRatio: number;
  valueClip: number;
  entropyCoefficient: number;
  learningRate: number;
  gradientClip: number;
  weightDecay: number;
}

/** Writes config.json, model.safetensors and batch.json. @returns useful tokens, and the policy's parameters */
export function writeWork(folder: string, work: Work) {
  const { size, lengths, sharedPromptTokens = 0, maxPromptTokens, maxResponseTokens } = work;
  const config = SIZES[size];
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(config, { eos_token_id: 0 })));
  const weights = initialWeights(config, 0);
  const tensors = parameters(config).map(
    ({ name, shape }): [string, { shape: readonly number[]; data: Float32Array }] => [
      name,
      { shape, data: weights.get(name)! },
    ],
  );
  writeSafetensors(path.join(folder, "model.safetensors"), new Map(tensors));
  const next = uniforms(0, "bench");
  const tokens = (length: number) => Array.from({ length }, () => Math.floor(config.vocabSize * next()));
  const shared = tokens(sharedPromptTokens);
  const batch: Batch = {
    prompts: lengths.map(([prompt]) => (prompt === sharedPromptTokens ? shared : tokens(prompt))),
    responses: lengths.map(([, response]) => tokens(response)),
    proximal: -Math.log(config.vocabSize), // the approximate log-prob that random weights give every token
    oldValue: 0,
    advantages: lengths.map((_, i) => (i % 2 === 0 ? 1 : -1)),
    returns: lengths.map((_, i) => (i % 3) - 1),
    ...{ maxPromptTokens, maxResponseTokens },
    ...{ temperature: 1, clipRatio: 0.2, valueClip: 0.5, entropyCoefficient: 0.001 },
    ...{ learningRate: 1e-5, gradientClip: 1, weightDecay: 0.01 },
  };
  fs.writeFileSync(path.join(folder, "batch.json"), JSON.stringify(batch));
  return {
    tokens: lengths.reduce((sum, [prompt, response]) => sum + prompt + response, 0),
    parameters: tensors.reduce((sum, [, { shape }]) => sum + elementCount(shape), 0),
  };
}
