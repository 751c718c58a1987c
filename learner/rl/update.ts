import type { Algorithm } from "../../crds/trainingrun.ts";
import {
  type CriticStepResult,
  type Engine,
  type PolicySample,
  type PolicyStepResult,
  permutation,
  type Sequence,
  uniforms,
  type ValueSample,
} from "../engine/index.ts";
import { importanceWeights } from "./advantages.ts";
import { batchAdvantages, hasSignal, klPlacement } from "./baselines.ts";
import { checkDeviation, type DeviationLimits } from "./deviation.ts";
import { type Clock, durationWeighting, durationWeights, type TimedSample } from "./durations.ts";
import { groupsOf, samplesPerPrompt, zeroSpreadShare } from "./groups.ts";
import { overlongPenalty } from "./overlong.ts";
import { learningRates } from "./schedule.ts";

/** One sample of the batch that an update trains on. */
export interface TrainingSample extends Sequence, TimedSample {
  task: string;
  /** Shared by the samples of one prompt. */
  group: string;
  /** log pi/T of the response tokens as they were sampled, float32 [response]. */
  behaviourLogProbs: Float32Array;
  reward: number;
  /** The score with its sign such that higher is better; undefined where there is no valid score. */
  goodness?: number;
  /** Whether the present weights wrote it: its version is the trained one, and no other start of the learner made that version. */
  onPolicy: boolean;
  /** The response was cut at `maxResponseTokens`; undefined if that is not known, which counts as not cut. */
  truncated?: boolean | undefined;
}

/** Inputs that change from one update to the next. */
export interface UpdateContext {
  seed: number;
  iteration: number;
  /** Number of iterations of the whole run; the learning rate decays over them. */
  iterations: number;
  temperature: number;
  /** Divisor of aggregation SeqMeanTokenSumNorm. */
  maxResponseTokens: number;
  /** How long each execution that `collection: Discard` threw away had run, seconds. */
  abandonedSeconds: number[];
  durationClock: Clock;
  /** Absent: nothing is checked, because other weights may have written the samples (`--replay`). */
  deviationLimits?: DeviationLimits | undefined;
  /** Called when a phase begins and after each of its steps; `total` is the number of optimiser steps of `train`. */
  onProgress?: (phase: "evaluate" | "train", done: number, total: number) => void;
}

/** The steps and figures of one update. */
export interface UpdateResult {
  policySteps: PolicyStepResult[];
  criticSteps: CriticStepResult[];
  /** Learning rate of every step; null if the policy was not trained. */
  learningRate: number | null;
  /** Learning rate of the critic's steps; null if the critic was not trained. */
  criticLearningRate: number | null;
  /** One duration weight a sample. */
  weights: number[];
  /** Mean over response tokens of log pi - log pi_reference before the update (k1); null, like the next field, if nothing was evaluated. */
  kl: number | null;
  /** Mean over response tokens of the policy's entropy at the sampling temperature, nats, before the update. */
  entropy: number | null;
  /** Largest |exp(proximal - behaviour) - 1| on policy: how far generation and training disagree; null without any. */
  importanceMaxDeviation: number | null;
  /** Whether that deviation is above `deviationLimits.warning`. */
  importanceDeviates: boolean;
  /** Mean over response tokens of the importance weight, after the cap; null, like the next field, if nothing was evaluated. */
  importanceMean: number | null;
  /** Share of the response tokens whose importance weight the cap cut. */
  importanceCappedShare: number | null;
  /** Share of the groups whose members all have the same reward, from which nothing is learned; null without groups. */
  zeroSpreadShare: number | null;
  /** The batch does not distinguish better samples from worse ones, and the policy was not changed. */
  noSignal: boolean;
}

/**
 * One PPO update on a whole batch (Algorithm 1): log-probs and values before it, weights, advantages, critic, policy. A batch without
 * signal trains no policy: without a critic nothing is evaluated either.
 *
 * @throws UpdateError `deviation` before anything is trained, if generation and training do not agree on the weights
 */
export async function update(
  engine: Engine,
  batch: TrainingSample[],
  o: Algorithm,
  context: UpdateContext,
): Promise<UpdateResult> {
  const useCritic = o.baseline === "Critic";
  const rewards = batch.map((sample) => sample.reward - overlongPenalty(sample, o, context.maxResponseTokens));
  const weighting = { ...o, durationWeighting: durationWeighting(o), durationClock: context.durationClock };
  const weights = durationWeights(batch, weighting, context.abandonedSeconds);
  const groups = groupsOf(batch.map(({ group }) => group));
  const goodness = batch.map((sample) => sample.goodness);
  const compared = { rewards, tasks: batch.map(({ task }) => task), goodness, groups, weights };
  const noSignal = !hasSignal(compared, o);
  const alike = samplesPerPrompt(o) > 1 ? zeroSpreadShare(rewards, groups) : null;
  if (noSignal && !useCritic) return nothingDone(weights, alike);

  context.onProgress?.("evaluate", 0, 1);
  if (useCritic) await engine.initializeCritic(rewards.reduce((sum, reward) => sum + reward, 0) / batch.length);
  const evaluated = await engine.evaluate(batch, { temperature: context.temperature, values: useCritic });

  const onPolicy = [...batch.keys()].filter((i) => batch[i].onPolicy);
  const deviations = onPolicy.map((i) => largestDeviation(evaluated[i].logProbs, batch[i].behaviourLogProbs));
  const importanceMaxDeviation = deviations.length > 0 ? Math.max(...deviations) : null;
  const { deviationLimits } = context;
  const importanceDeviates = deviationLimits !== undefined && checkDeviation(importanceMaxDeviation, deviationLimits);

  const advantages = batchAdvantages({ ...compared, evaluated }, o);
  /** Masked samples count in every statistic of the batch, and in no loss. */
  const unmasked = <T>(samples: T[]) => samples.filter((_, i) => o.truncated !== "Mask" || !batch[i].truncated);
  const samplesInLoss = unmasked(batch).length;
  const trainCritic = useCritic && samplesInLoss > 0;
  const trainPolicy = !noSignal && samplesInLoss > 0 && (!useCritic || context.iteration > o.criticWarmupIterations);
  const klInLoss = klPlacement(o) === "Loss";

  const policySamples = batch.map(({ prompt, response, behaviourLogProbs }, i): PolicySample => {
    const { logProbs: proximalLogProbs, referenceLogProbs } = evaluated[i];
    return {
      prompt,
      response,
      proximalLogProbs,
      advantages: advantages[i].advantages,
      importance: importanceWeights(proximalLogProbs, behaviourLogProbs, o.importanceCap),
      weight: weights[i],
      referenceLogProbs: klInLoss ? referenceLogProbs : undefined,
    };
  });
  const valueSamples = batch.map((sample, i): ValueSample => {
    const { prompt, response } = sample;
    return { prompt, response, oldValues: evaluated[i].values, returns: advantages[i].returns };
  });

  const adam = { beta1: o.adamBeta1, beta2: o.adamBeta2, epsilon: o.adamEpsilon, weightDecay: o.weightDecay };
  const { gradientClip, aggregation, microBatchSize } = o;
  const { maxResponseTokens } = context;
  const shared = { adam, gradientClip, aggregation, maxResponseTokens, microBatchSize };
  const criticSteps: CriticStepResult[] = [];
  const policySteps: PolicyStepResult[] = [];
  const steps = Math.ceil(samplesInLoss / o.miniBatchSize) * o.ppoEpochs * (Number(trainCritic) + Number(trainPolicy));
  const rates = learningRates(context.iteration, context.iterations, o);
  const stepDone = () => context.onProgress?.("train", criticSteps.length + policySteps.length, steps);
  stepDone();
  for (const minibatch of trainCritic ? minibatches(unmasked(valueSamples), o, context, "critic") : []) {
    const step = { ...shared, valueClip: o.valueClip, learningRate: rates.critic };
    criticSteps.push(await engine.updateCritic(minibatch, step));
    stepDone();
  }
  for (const minibatch of trainPolicy ? minibatches(unmasked(policySamples), o, context, "policy") : []) {
    const step = {
      ...shared,
      temperature: context.temperature,
      clipRatio: o.clipRatio,
      clipRatioHigh: o.clipRatioHigh,
      dualClip: o.dualClip,
      entropyCoefficient: o.entropyCoefficient,
      klCoefficient: klInLoss ? o.klCoefficient : 0,
      learningRate: rates.policy,
    };
    policySteps.push(await engine.updatePolicy(minibatch, step));
    stepDone();
  }

  const kl = evaluated.map((e) => e.logProbs.map((logProb, t) => logProb - e.referenceLogProbs[t]));
  return {
    policySteps,
    criticSteps,
    learningRate: trainPolicy ? rates.policy : null,
    criticLearningRate: trainCritic ? rates.critic : null,
    weights,
    kl: meanOverTokens(kl),
    entropy: meanOverTokens(evaluated.map((e) => e.entropies)),
    importanceMaxDeviation,
    importanceDeviates,
    importanceMean: meanOverTokens(policySamples.map(({ importance }) => importance)),
    importanceCappedShare: meanOverTokens(
      policySamples.map(({ importance }) =>
        importance.map((weight) => Number(weight === Math.fround(o.importanceCap))),
      ),
    ),
    zeroSpreadShare: alike,
    noSignal,
  };
}

/** The result for a batch that trains nothing, so that nobody uses its log-probs. */
function nothingDone(weights: number[], zeroSpreadShare: number | null): UpdateResult {
  const evaluated = { kl: null, entropy: null, importanceMean: null, importanceCappedShare: null };
  const unchecked = { importanceMaxDeviation: null, importanceDeviates: false };
  const untrained = { policySteps: [], criticSteps: [], learningRate: null, criticLearningRate: null };
  return { ...untrained, ...evaluated, ...unchecked, weights, zeroSpreadShare, noSignal: true };
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

function largestDeviation(proximal: Float32Array, behaviour: Float32Array): number {
  return proximal.reduce((largest, logProb, t) => Math.max(largest, Math.abs(Math.expm1(logProb - behaviour[t]))), 0);
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
