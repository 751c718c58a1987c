import { permutation, uniforms } from "../rng.ts";
import {
  type Advantages,
  addValidScores,
  batchMeanAdvantages,
  generalizedAdvantages,
  importanceWeights,
  nextKlCoefficient,
  tokenRewards,
  whiten,
} from "./advantages.ts";
import { type DurationOptions, durationWeights, effectiveSampleSize, type TimedSample } from "./durations.ts";
import type { Engine, PolicySample, Sequence, ValueSample } from "./engine.ts";

/** One sample of the batch that an update trains on. */
export interface TrainingSample extends Sequence, TimedSample {
  /** log pi/T of the response tokens as they were sampled, float32 [response]. */
  behaviourLogProbs: Float32Array;
  reward: number;
  /** The score with its sign such that higher is better; undefined where there is no valid score. */
  goodness?: number;
  /** Iterations between the policy version that wrote it and this one. */
  lag: number;
}

/** The part of `spec.algorithm` that an update reads. */
export interface UpdateOptions extends DurationOptions {
  ppoEpochs: number;
  miniBatchSize: number;
  microBatchSize: number;
  learningRate: number;
  criticLearningRate: number;
  clipRatio: number;
  dualClip: number;
  valueClip: number;
  entropyCoefficient: number;
  gamma: number;
  lambda: number;
  klController: "Fixed" | "Adaptive";
  klTarget: number;
  klHorizon: number;
  gradientClip: number;
  adamBeta1: number;
  adamBeta2: number;
  adamEpsilon: number;
  weightDecay: number;
  aggregation: "SeqMeanTokenMean" | "TokenMean";
  baseline: "Critic" | "BatchMean";
  whitening: "Plain" | "Weighted";
  validScoreWeight: number;
  importanceCap: number;
  criticWarmupIterations: number;
  maxStaleness: number;
  stalenessPolicy: "Wait" | "Drop" | "Mask";
}

/** What makes one update different from the next with the same options. */
export interface UpdateContext {
  seed: number;
  iteration: number;
  temperature: number;
  klCoefficient: number;
  /** How long each execution that `collection: Discard` threw away had run, seconds. */
  abandonedSeconds: number[];
}

/** Figures of one update; means over tokens or optimiser steps as named. */
export interface UpdateFigures {
  /** Mean over tokens of the k3 estimate of KL(policy || reference), before the update; never negative. */
  kl: number;
  /** Mean over tokens of the policy's entropy at the sampling temperature, nats, before the update. */
  entropy: number;
  ratioMean: number;
  ratioMax: number;
  clipFraction: number;
  policyLoss: number;
  gradientNorm: number;
  valueLoss?: number;
  explainedVariance?: number;
  criticGradientNorm?: number;
  /** Optimiser steps left out because their gradient was not finite. */
  skippedSteps: number;
  steps: number;
  /** Largest |exp(proximal - behaviour) - 1| at lag 0: how far generation and training disagree. */
  importanceMaxDeviation: number;
  weights: number[];
  effectiveSampleSize: number;
  maxDurationWeight: number;
  maskedSamples: number;
  nextKlCoefficient: number;
  trainedTokens: number;
  secondsEvaluate: number;
  secondsTrain: number;
}

/**
 * One PPO update on a whole batch, top to bottom: log-probs and values with the weights that it starts from,
 * advantages, duration weights, critic update, policy update (Algorithm 1; `Formulas` in the design).
 */
export async function update(
  engine: Engine,
  batch: TrainingSample[],
  o: UpdateOptions,
  context: UpdateContext,
): Promise<UpdateFigures> {
  const useCritic = o.baseline === "Critic";
  const started = performance.now();
  const meanReward = batch.reduce((sum, sample) => sum + sample.reward, 0) / batch.length;
  if (useCritic) await engine.initializeCritic(meanReward);
  const evaluated = await engine.evaluate(batch, { temperature: context.temperature, values: useCritic });
  const evaluatedAt = performance.now();

  const weights = durationWeights(batch, o, context.abandonedSeconds);
  const masked = batch.map((sample) => o.stalenessPolicy === "Mask" && sample.lag > o.maxStaleness);
  const trainedWeights = weights.map((weight, i) => (masked[i] ? 0 : weight));

  const results = batch.map((sample, i): Advantages => {
    const { logProbs, referenceLogProbs, values } = evaluated[i];
    const rewarded = { reward: sample.reward, proximalLogProbs: logProbs, referenceLogProbs, values };
    const rewards = tokenRewards(rewarded, context.klCoefficient);
    return useCritic
      ? generalizedAdvantages(rewards, values, o.gamma, o.lambda)
      : batchMeanAdvantages(rewards, meanReward, o.gamma);
  });
  const advantages = results.map((result) => result.advantages);
  whiten(advantages, o.whitening === "Weighted" ? trainedWeights : undefined);
  addValidScores(
    advantages,
    batch.map((sample) => sample.goodness),
    o.validScoreWeight,
  );

  const policySamples = batch.map((sample, i): PolicySample => {
    const proximalLogProbs = evaluated[i].logProbs;
    const importance = importanceWeights(proximalLogProbs, sample.behaviourLogProbs, o.importanceCap);
    return {
      prompt: sample.prompt,
      response: sample.response,
      proximalLogProbs,
      advantages: advantages[i],
      importance,
      weight: trainedWeights[i],
    };
  });
  const valueSamples = batch.map((sample, i): ValueSample => {
    const { prompt, response } = sample;
    return { prompt, response, oldValues: evaluated[i].values, returns: results[i].returns };
  });

  const adam = { beta1: o.adamBeta1, beta2: o.adamBeta2, epsilon: o.adamEpsilon, weightDecay: o.weightDecay };
  const shared = { adam, gradientClip: o.gradientClip, aggregation: o.aggregation, microBatchSize: o.microBatchSize };
  const valueSteps = [];
  if (useCritic) {
    for (const minibatch of minibatches(valueSamples, o, context, "critic")) {
      const step = { ...shared, valueClip: o.valueClip, learningRate: o.criticLearningRate };
      valueSteps.push(await engine.updateCritic(minibatch, step));
    }
  }
  const policySteps = [];
  if (!useCritic || context.iteration > o.criticWarmupIterations) {
    for (const minibatch of minibatches(policySamples, o, context, "policy")) {
      const step = {
        ...shared,
        temperature: context.temperature,
        clipRatio: o.clipRatio,
        dualClip: o.dualClip,
        entropyCoefficient: o.entropyCoefficient,
        learningRate: o.learningRate,
      };
      policySteps.push(await engine.updatePolicy(minibatch, step));
    }
  }

  const klK1 = meanOverTokens(evaluated.map((e) => e.logProbs.map((logProb, t) => logProb - e.referenceLogProbs[t])));
  const steps = [...valueSteps, ...policySteps];
  return {
    kl: meanOverTokens(evaluated.map((e) => k3(e.logProbs, e.referenceLogProbs))),
    entropy: meanOverTokens(evaluated.map((e) => e.entropies)),
    ratioMean: mean(policySteps.map((step) => step.ratioMean)),
    ratioMax: Math.max(0, ...policySteps.map((step) => step.ratioMax)),
    clipFraction: mean(policySteps.map((step) => step.clipFraction)),
    policyLoss: mean(policySteps.map((step) => step.loss)),
    gradientNorm: mean(policySteps.map((step) => step.gradientNorm)),
    valueLoss: useCritic ? mean(valueSteps.map((step) => step.loss)) : undefined,
    explainedVariance: useCritic ? explainedVariance(valueSamples) : undefined,
    criticGradientNorm: useCritic ? mean(valueSteps.map((step) => step.gradientNorm)) : undefined,
    skippedSteps: steps.filter((step) => step.skipped).length,
    steps: steps.length,
    importanceMaxDeviation: Math.max(
      0,
      ...batch.map((sample, i) =>
        sample.lag === 0 ? largestDeviation(evaluated[i].logProbs, sample.behaviourLogProbs) : 0,
      ),
    ),
    weights: trainedWeights,
    effectiveSampleSize: effectiveSampleSize(trainedWeights),
    maxDurationWeight: Math.max(...trainedWeights),
    maskedSamples: masked.filter(Boolean).length,
    nextKlCoefficient: nextKlCoefficient(context.klCoefficient, klK1, batch.length, o),
    trainedTokens: batch.reduce((sum, sample) => sum + sample.prompt.length + sample.response.length, 0) * o.ppoEpochs,
    secondsEvaluate: (evaluatedAt - started) / 1000,
    secondsTrain: (performance.now() - evaluatedAt) / 1000,
  };
}

/** `ppoEpochs` passes over the batch, each in an order of its own, cut into minibatches; the last may be smaller. */
function* minibatches<T>(
  samples: T[],
  o: { ppoEpochs: number; miniBatchSize: number },
  context: UpdateContext,
  name: string,
): Generator<T[]> {
  for (let epoch = 0; epoch < o.ppoEpochs; epoch++) {
    const order = permutation(samples.length, uniforms(context.seed, "minibatch", name, context.iteration, epoch));
    for (let start = 0; start < order.length; start += o.miniBatchSize) {
      yield order.slice(start, start + o.miniBatchSize).map((index) => samples[index]);
    }
  }
}

/** Schulman's k3 estimate of KL per token: exp(d) - 1 - d with d = logp_ref - logp. */
function k3(logProbs: Float32Array, referenceLogProbs: Float32Array): Float32Array {
  return logProbs.map((logProb, t) => Math.expm1(referenceLogProbs[t] - logProb) - (referenceLogProbs[t] - logProb));
}

function largestDeviation(proximal: Float32Array, behaviour: Float32Array): number {
  return proximal.reduce((largest, logProb, t) => Math.max(largest, Math.abs(Math.expm1(logProb - behaviour[t]))), 0);
}

/** 1 - Var(R - V) / Var(R) over all tokens; 0 where the returns do not vary. */
function explainedVariance(samples: ValueSample[]): number {
  const returns = samples.flatMap((sample) => [...sample.returns]);
  const residuals = samples.flatMap((sample) => [...sample.returns.map((value, t) => value - sample.oldValues[t])]);
  const total = variance(returns);
  return total > 0 ? 1 - variance(residuals) / total : 0;
}

function variance(values: number[]): number {
  const center = mean(values);
  return mean(values.map((value) => (value - center) ** 2));
}

function mean(values: number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function meanOverTokens(rows: Float32Array[]): number {
  let sum = 0;
  let count = 0;
  for (const row of rows) {
    for (const value of row) sum += value;
    count += row.length;
  }
  return count > 0 ? sum / count : 0;
}
