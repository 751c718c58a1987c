import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addValidScores,
  batchMeanAdvantages,
  generalizedAdvantages,
  importanceWeights,
  tokenRewards,
  tokenStatistics,
  whitenBy,
} from "./advantages.ts";

const close = (actual: ArrayLike<number>, expected: number[], tolerance = 1e-6) => {
  assert.equal(actual.length, expected.length);
  for (const [i, value] of expected.entries()) {
    assert.ok(Math.abs(actual[i] - value) <= tolerance, `[${i}] ${actual[i]} is not ${value}`);
  }
};

test("every token's reward has its KL term, and the last token's also the reward", () => {
  const evaluated = { logProbs: Float32Array.of(-1, -2, -3), referenceLogProbs: Float32Array.of(-1.5, -2, -2) };
  close(tokenRewards(2, evaluated, 0.1), [-0.05, 0, 2.1]);
});

test("GAE with gamma 0.9 and lambda 0.5 equals the values computed by hand", () => {
  const { advantages, returns } = generalizedAdvantages(Float64Array.of(1, 2), Float32Array.of(0.5, 0.25), 0.9, 0.5);
  // delta_1 = 2 - 0.25 = 1.75; delta_0 = 1 + 0.9 * 0.25 - 0.5 = 0.725; A_0 = 0.725 + 0.45 * 1.75 = 1.5125
  close(advantages, [1.5125, 1.75]);
  close(returns, [2.0125, 2]);
});

test("the return with gamma 1 and lambda 1 is the reward to go for any values", () => {
  const { returns } = generalizedAdvantages(Float64Array.of(0.5, 0, -10), Float32Array.of(3, -7, 1), 1, 1);
  close(returns, [-9.5, -10, -10]);
});

test("the batch-mean baseline subtracts the mean reward from the reward to go", () => {
  close(batchMeanAdvantages(Float64Array.of(0, 1), -4, 1).advantages, [5, 5]);
});

test("whitening is over all tokens of the batch, with Bessel's variance", () => {
  const batch = [Float32Array.of(1, 2), Float32Array.of(6)];
  whitenBy(batch, tokenStatistics(batch));
  const std = Math.sqrt((4 + 1 + 9) / 2);
  close(batch[0], [-2 / std, -1 / std]);
  close(batch[1], [3 / std]);
});

test("whitening leaves a single token and a constant batch finite", () => {
  const one = [Float32Array.of(5)];
  whitenBy(one, tokenStatistics(one));
  assert.equal(one[0][0], 5);
  const constant = [Float32Array.of(2, 2), Float32Array.of(2)];
  whitenBy(constant, tokenStatistics(constant));
  close(constant[0], [0, 0]);
});

test("a valid sample's z-score among valid samples is clipped and added to all of its tokens", () => {
  const batch = [new Float32Array(2), new Float32Array(1), new Float32Array(1)];
  addValidScores(batch, [1, undefined, 3], 0.5);
  const z = 1 / Math.SQRT2;
  close(batch[0], [-0.5 * z, -0.5 * z]);
  close(batch[1], [0]);
  close(batch[2], [0.5 * z]);
  const outlier = Array.from({ length: 30 }, () => new Float32Array(1));
  addValidScores(outlier, [...new Array(29).fill(0), 100], 1);
  close(outlier[29], [3]);
});

test("equal valid scores and a single valid score change nothing", () => {
  for (const goodness of [
    [0.7, 0.7, 0.7],
    [-3, undefined, -3],
    [undefined, 5, undefined],
  ]) {
    const batch = [1, 2, 3].map((advantage) => Float32Array.of(advantage));
    addValidScores(batch, goodness, 0.5);
    assert.deepEqual(batch, [Float32Array.of(1), Float32Array.of(2), Float32Array.of(3)], `${goodness}`);
  }
});

test("importance weights are 1 on policy and capped off policy", () => {
  close(importanceWeights(Float32Array.of(-1, 0, -3), Float32Array.of(-1, -5, -2), 2), [1, 2, Math.exp(-1)]);
});
