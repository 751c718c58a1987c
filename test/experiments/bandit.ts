/**
 * The bandit of section 3.1 of the paper: a few actions with a reward and a duration, a softmax policy over them, and the learner's policy
 * gradient. It shows the effects of a collection and of a weighting without a model: {@link simulate} draws batches and weighs them with
 * the learner's own functions, and {@link expected} computes the same for an infinitely large batch by integration, without these
 * functions.
 */
import * as vega from "vega";
import { uniforms } from "../../learner/engine/model/random.ts";
import { tokenStatistics, whitenBy } from "../../learner/rl/advantages.ts";
import { type DurationOptions, durationWeights, type Weighting } from "../../learner/rl/durations.ts";

// Public, but without a type.
const { quantileNormal } = vega as unknown as { quantileNormal: (probability: number) => number };

interface Action {
  name: string;
  /** Median of its log-normal duration, in seconds. */
  seconds: number;
  /** Mean of its normally distributed reward. */
  reward: number;
}

export interface World {
  name: string;
  actions: Action[];
}

/**
 * How B executions become a batch.
 *
 * | | in flight | a batch |
 * | --- | --- | --- |
 * | `RateBiased` | | completions in a fixed time, proportional to pi / duration: the sampler of section 3.1 |
 * | `WaitAll` | B | all |
 * | `CarryOver` | m B | the B complete ones that were dispatched first; the rest trains later |
 * | `Discard` | m B | the B that complete first; the rest is thrown away |
 */
export interface Collection {
  kind: "RateBiased" | "WaitAll" | "CarryOver" | "Discard";
  /** m, at least 1. */
  oversampling: number;
}

export type { Weighting };
/** `Raw`: the reward; `Plain`: the reward less its mean over the batch, whitened (`algorithm.whitening`). */
export type Advantage = "Raw" | "Plain";

export interface Cell {
  world: World;
  collection: Collection;
  weighting: Weighting;
  advantage: Advantage;
}

/** Standard deviation of a duration's logarithm. */
export const DURATION_SPREAD = 0.3;
/** Standard deviation of a reward. */
export const REWARD_SPREAD = 0.3;
export const BATCH = 128;
export const UPDATES = 100;
export const LEARNING_RATE = 0.1;
/** The defaults of `algorithm.durationCap` and `algorithm.importanceCap`. */
const DURATION_CAP = 4;
const IMPORTANCE_CAP = 2;

const WEIGHTS: Omit<DurationOptions, "durationWeighting"> = {
  durationCap: DURATION_CAP,
  startupSeconds: 0,
  timeoutWeight: "Full",
  durationClock: "Wall",
};

export interface Course {
  /** Probability of each action after each update; the first entry is before all updates. [UPDATES + 1][actions] */
  policy: number[][];
  /** Share of each action among the first batch's samples. [actions] */
  firstShares: number[];
  /** Total seconds if every execution in flight runs at once; `RateBiased` has no clock. */
  seconds?: number;
}

export function softmax(logits: readonly number[]): number[] {
  const most = Math.max(...logits);
  const exponentials = logits.map((logit) => Math.exp(logit - most));
  const total = sum(exponentials);
  return exponentials.map((value) => value / total);
}

export const expectedReward = (policy: readonly number[], { actions }: World) =>
  sum(policy.map((probability, i) => probability * actions[i]!.reward));

interface Execution {
  action: number;
  dispatched: number;
  ends: number;
  seconds: number;
  reward: number;
  /** Probability of the action under the policy that chose it. */
  probability: number;
}

/** Returns one course of `updates` with batches of {@link BATCH}, reproducible by its seed. */
export function simulate({ world, collection, weighting, advantage }: Cell, seed: number, updates = UPDATES): Course {
  const { actions } = world;
  // The seed excludes the arm's name, so that arms with the same seed draw the same numbers.
  const next = uniforms(seed, "bandit", world.name);
  const logits = actions.map(() => 0);
  const course: Course = { policy: [softmax(logits)], firstShares: [] };
  let now = 0;
  let dispatched = 0;
  let inFlight: Execution[] = [];
  const dispatch = (policy: number[], count: number, shares = policy) => {
    for (let i = 0; i < count; i++) {
      const action = draw(shares, next());
      const { seconds, reward } = actions[action]!;
      const lasts = seconds * Math.exp(DURATION_SPREAD * quantileNormal(open(next())));
      const rewarded = reward + REWARD_SPREAD * quantileNormal(open(next()));
      inFlight.push({
        action,
        dispatched: dispatched++,
        ends: now + lasts,
        seconds: lasts,
        reward: rewarded,
        probability: policy[action]!,
      });
    }
  };

  for (let update = 0; update < updates; update++) {
    const policy = softmax(logits);
    let batch: Execution[];
    let abandoned: number[] = [];
    if (collection.kind === "RateBiased") {
      // Probabilities proportional to pi / duration give an action by E[1/t], and within it the density f(t) / t, which for a log-normal is
      // log-normal with a median smaller by exp(-spread^2).
      const rates = policy.map((probability, i) => probability / actions[i]!.seconds);
      dispatch(
        policy,
        BATCH,
        rates.map((rate) => rate / sum(rates)),
      );
      for (const execution of inFlight) execution.seconds *= Math.exp(-(DURATION_SPREAD ** 2));
      batch = inFlight;
      inFlight = [];
    } else {
      dispatch(policy, Math.ceil(collection.oversampling * BATCH) - inFlight.length);
      const began = now;
      const byEnd = [...inFlight].sort((a, b) => a.ends - b.ends);
      now = Math.max(now, byEnd[BATCH - 1]!.ends);
      const complete = inFlight.filter(({ ends }) => ends <= now);
      batch =
        collection.kind === "Discard"
          ? byEnd.slice(0, BATCH)
          : complete.sort((a, b) => a.dispatched - b.dispatched).slice(0, BATCH);
      const taken = new Set(batch);
      const rest = inFlight.filter((execution) => !taken.has(execution));
      if (collection.kind === "Discard") {
        // They are abandoned a moment after the last kept one ended.
        abandoned = rest.map(() => now - began + 1e-6);
      }
      inFlight = collection.kind === "CarryOver" ? rest : [];
    }
    if (update === 0)
      course.firstShares = actions.map((_, i) => batch.filter(({ action }) => action === i).length / BATCH);

    const timed = batch.map(({ seconds }) => ({ outcome: "completed" as const, durationSeconds: seconds }));
    const weights = durationWeights(timed, { ...WEIGHTS, durationWeighting: weighting }, abandoned);
    const advantages = batch.map(({ reward }) => Float32Array.of(reward));
    if (advantage === "Plain") whitenBy(advantages, tokenStatistics(advantages));
    const gradient = actions.map(() => 0);
    for (const [i, { action, probability }] of batch.entries()) {
      const importance = Math.min(policy[action]! / probability, IMPORTANCE_CAP);
      const scale = (importance * weights[i]! * advantages[i]![0]!) / batch.length;
      for (const a of gradient.keys()) gradient[a]! += scale * ((a === action ? 1 : 0) - policy[a]!);
    }
    for (const a of logits.keys()) logits[a]! += LEARNING_RATE * gradient[a]!;
    course.policy.push(softmax(logits));
  }
  if (collection.kind !== "RateBiased") course.seconds = now;
  return course;
}

/** Points of the integral over an action's duration: the middles of equally likely ranges. */
const QUANTILES = 400;

/** Returns the course of an infinitely large batch whose samples are all of the current policy: without chance and without lag. */
export function expected({ world, collection, weighting, advantage }: Cell): Course {
  const { actions } = world;
  const durations = actions.map(({ seconds }) =>
    Array.from(
      { length: QUANTILES },
      (_, k) => seconds * Math.exp(DURATION_SPREAD * quantileNormal((k + 0.5) / QUANTILES)),
    ),
  );
  const logits = actions.map(() => 0);
  const course: Course = { policy: [softmax(logits)], firstShares: [] };
  for (let update = 0; update < UPDATES; update++) {
    const policy = softmax(logits);
    const mass = collectedMass(policy, durations, collection);
    const shares = mass.map(sum);
    if (update === 0) course.firstShares = shares;
    // Sum over an action's durations of the share of the batch times the weight.
    const weighted = expectedWeights(mass, durations, weighting);
    const rewards = actions.map(({ reward }) => reward);
    const mean = sum(rewards.map((reward, a) => shares[a]! * reward));
    const variance = sum(rewards.map((reward, a) => shares[a]! * ((reward - mean) ** 2 + REWARD_SPREAD ** 2)));
    const advantages = rewards.map((reward) =>
      advantage === "Raw" ? reward : (reward - mean) / Math.sqrt(variance + 1e-8),
    );
    const pull = advantages.map((value, a) => weighted[a]! * value);
    for (const a of logits.keys()) logits[a]! += LEARNING_RATE * (pull[a]! - policy[a]! * sum(pull));
    course.policy.push(softmax(logits));
  }
  return course;
}

/** Returns the share of each action and duration in a batch. [actions][QUANTILES], sum 1 */
function collectedMass(policy: number[], durations: number[][], collection: Collection): number[][] {
  const launched = policy.map((probability) => probability / QUANTILES);
  if (collection.kind === "RateBiased") {
    return normalized(durations.map((list, a) => list.map((seconds) => launched[a]! / seconds)));
  }
  if (collection.kind !== "Discard") return durations.map((list, a) => list.map(() => launched[a]!));
  // The executions that end first, up to the share 1 / m of the launched ones.
  const all = durations.flatMap((list, a) => list.map((seconds, k) => ({ a, k, seconds })));
  let left = 1 / collection.oversampling;
  const mass = durations.map((list) => list.map(() => 0));
  for (const { a, k } of all.sort((x, y) => x.seconds - y.seconds)) {
    mass[a]![k] = Math.min(launched[a]!, left);
    left -= mass[a]![k]!;
  }
  return normalized(mass);
}

/** Returns for each action the sum over its durations of share times weight; sum 1. */
function expectedWeights(mass: number[][], durations: number[][], weighting: Weighting): number[] {
  const byDuration = (weight: (seconds: number) => number) =>
    normalized(mass.map((list, a) => list.map((share, k) => share * weight(durations[a]![k]!))));
  // All discarded executions had run longer than all kept ones, so each kept one had probability 1.
  if (weighting === "Off" || weighting === "Completion") return mass.map(sum);
  const paper = byDuration((seconds) => seconds);
  if (weighting === "Paper") return paper.map(sum);
  const mean = sum(mass.flatMap((list, a) => list.map((share, k) => share * durations[a]![k]!)));
  return byDuration((seconds) => Math.min(seconds / mean, DURATION_CAP)).map(sum);
}

function normalized(mass: number[][]): number[][] {
  const total = sum(mass.flat());
  return mass.map((list) => list.map((value) => value / total));
}

function draw(probabilities: readonly number[], uniform: number): number {
  let left = uniform;
  for (const [i, probability] of probabilities.entries()) {
    left -= probability;
    if (left < 0) return i;
  }
  return probabilities.length - 1;
}

/** Avoids 0, whose normal quantile is minus infinity. */
const open = (uniform: number) => uniform + 2 ** -33;

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
