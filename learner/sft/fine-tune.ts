/** Supervised training: cross-entropy on responses, in epochs, from any step on. */
import type { Algorithm } from "../../crds/trainingrun.ts";
import { type Engine, permutation, type Sequence, uniforms } from "../engine/index.ts";
import { scheduleFactor } from "../rl/schedule.ts";

export interface FineTuneSettings {
  epochs: number;
  /** examples of an optimiser step */
  batchSize: number;
  /** most examples in memory at once; it changes a gradient by rounding alone */
  microBatchSize: number;
  /** the highest */
  learningRate: number;
  schedule: Algorithm["learningRateSchedule"]["type"];
  /** share of all steps in which the learning rate rises */
  warmupShare: number;
  /** largest norm of a gradient; 0: no limit */
  gradientClip: number;
  weightDecay: number;
  /** of the order of examples */
  seed: number;
}

/** torch.optim.AdamW's and TRL's defaults. Weight decay is a setting. */
const ADAM = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };

/** TRL's defaults, except that the learning rate rises during a twentieth of the steps. */
export const FINE_TUNE_DEFAULTS = {
  epochs: 3,
  batchSize: 8,
  microBatchSize: 8,
  schedule: "Linear",
  warmupShare: 0.05,
  gradientClip: 1,
  weightDecay: 0,
  seed: 0,
} satisfies Partial<FineTuneSettings>;
/** The default learning rate for every weight, and for adapters. */
export const LEARNING_RATES = { full: 2e-5, lora: 2e-4 };

/** A step that was taken. */
export interface FineTuneStep {
  /** from 1 */
  step: number;
  epoch: number;
  learningRate: number;
  /** mean cross-entropy of the batch's response tokens before the step, nats */
  loss: number;
  gradientNorm: number;
  /** response tokens of the batch, and tokens with their prompts */
  responseTokens: number;
  tokens: number;
  seconds: number;
}

/** How well the policy predicts the held-out responses. */
export interface HeldOut {
  /** steps taken before */
  step: number;
  /** mean cross-entropy of response tokens, nats */
  loss: number;
  /** share of response tokens that are the policy's most probable ones */
  accuracy: number;
}

interface Watching {
  /** stops after a step that was begun */
  signal?: AbortSignal | undefined;
  onStep(step: FineTuneStep): void | Promise<void>;
  onHeldOut(heldOut: HeldOut): void | Promise<void>;
}

/** Returns the number of optimiser steps. */
export const stepsOf = (examples: number, { epochs, batchSize }: Pick<FineTuneSettings, "epochs" | "batchSize">) =>
  epochs * Math.ceil(examples / batchSize);

/**
 * Trains the engine's policy. The order of examples and the learning rate are functions of the step, so that training which goes on
 * from a checkpoint takes the same steps. Held-out examples are measured before the first step and after each epoch.
 *
 * @param from where training goes on: the steps that the policy has taken, and the newest one after which held-out examples were measured
 * @throws the signal's reason; Error for a gradient that is not finite
 */
export async function fineTune(
  engine: Pick<Engine, "pretrain" | "measureFit">,
  { training, heldOut }: { training: readonly Sequence[]; heldOut: readonly Sequence[] },
  settings: FineTuneSettings,
  { signal, onStep, onHeldOut }: Watching,
  from: { step: number; measured?: number | undefined } = { step: 0 },
): Promise<void> {
  const ofEpoch = stepsOf(training.length, { ...settings, epochs: 1 });
  const measure = async (step: number) => {
    if (heldOut.length === 0) return;
    signal?.throwIfAborted();
    const { loss, correct, tokens } = await engine.measureFit([...heldOut]);
    await onHeldOut({ step, loss: loss / tokens, accuracy: correct / tokens });
  };
  if (from.step % ofEpoch === 0 && from.measured !== from.step) await measure(from.step);
  for (let step = from.step + 1; step <= settings.epochs * ofEpoch; step++) {
    signal?.throwIfAborted();
    const began = performance.now();
    const epoch = Math.ceil(step / ofEpoch);
    const batch = batchOf(training, settings, epoch, (step - 1) % ofEpoch);
    const learningRate = learningRateOf(step, settings.epochs * ofEpoch, settings);
    const { loss, gradientNorm, skipped } = await engine.pretrain(batch, {
      learningRate,
      gradientClip: settings.gradientClip,
      adam: { ...ADAM, weightDecay: settings.weightDecay },
      aggregation: "TokenMean",
      microBatchSize: settings.microBatchSize,
    });
    if (skipped) throw new Error(`the gradient of step ${step} is not finite; use a lower learning rate`);
    const responseTokens = batch.reduce((total, { response }) => total + response.length, 0);
    const tokens = batch.reduce((total, { prompt }) => total + prompt.length, responseTokens);
    const seconds = (performance.now() - began) / 1000;
    await onStep({ step, epoch, learningRate, loss, gradientNorm, responseTokens, tokens, seconds });
    if (step % ofEpoch === 0) await measure(step);
  }
}

/** Returns the examples of an epoch's k-th step (k from 0): each epoch has an order of its own. */
function batchOf(training: readonly Sequence[], settings: FineTuneSettings, epoch: number, k: number): Sequence[] {
  const { batchSize, seed } = settings;
  const order = permutation(training.length, uniforms(seed, "order of examples", epoch));
  return order.slice(k * batchSize, (k + 1) * batchSize).map((i) => training[i]!);
}

/** Returns the learning rate of a step, from 1. */
function learningRateOf(step: number, steps: number, settings: FineTuneSettings): number {
  const { learningRate, schedule, warmupShare } = settings;
  const warmupIterations = Math.min(Math.ceil(warmupShare * steps), steps - 1);
  return learningRate * scheduleFactor(step, steps, { type: schedule, warmupIterations, minimumRatio: 0 });
}
