/** A tiny model, batches and steps for tests of the trainer and the engine. */
import type { PolicySample, PolicyStep, PretrainStep, ValueSample } from "./engine.ts";
import { randomSamples } from "./samples.fixture.ts";
import { tinyModel } from "./tiny-model.fixture.ts";
import { Trainer } from "./trainer.ts";

const VOCABULARY = 23;
export const { folder, model } = tinyModel({
  ...{ modelType: "qwen2", vocabSize: VOCABULARY, hiddenSize: 16, intermediateSize: 24, layers: 2 },
  ...{ heads: 4, keyValueHeads: 2, headSize: 4, normEpsilon: 1e-6, ropeTheta: 10000, tied: true },
  ...{ queryKeyValueBias: true, maxPositions: 64, initializerRange: 0.2 },
});

export const PRETRAIN: PretrainStep = {
  ...{ learningRate: 0.01, gradientClip: 1, aggregation: "TokenMean", microBatchSize: 8 },
  adam: { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 },
};
export const POLICY: PolicyStep = {
  ...{ ...PRETRAIN, aggregation: "SeqMeanTokenMean", temperature: 0.8 },
  ...{ clipRatio: 0.2, dualClip: 0, entropyCoefficient: 0.01 },
};
export const VALUE = { ...PRETRAIN, valueClip: 0.5 };

export const samples = (count: number, seed = 1): (PolicySample & ValueSample)[] =>
  randomSamples(VOCABULARY, count, seed);

/** Calls `work` with a trainer of the model and returns its result; closes the trainer. */
export async function withTrainer<T>(work: (trainer: Trainer) => Promise<T>, options = {}): Promise<T> {
  const trainer = new Trainer({ model, threads: 1, ...options });
  try {
    return await work(trainer);
  } finally {
    await trainer.close();
  }
}
