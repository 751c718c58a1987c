import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { tokenRewards } from "./advantages.ts";
import { groupsOf, grpoAdvantages, rlooAdvantages, samplesPerPrompt, zeroSpreadShare } from "./groups.ts";

const close = (actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance = 1e-9) => {
  assert.equal(actual.length, expected.length);
  for (let i = 0; i < expected.length; i++)
    assert.ok(Math.abs(actual[i] - expected[i]) <= tolerance, `[${i}] ${actual[i]} is not ${expected[i]}`);
};

test("a group's members are found anywhere in the batch", () => {
  assert.deepEqual(groupsOf(["a", "b", "a", "c", "b"]), [[0, 2], [1, 4], [3]]);
});

test("GRPO's advantage is the distance from the group's mean in its standard deviations", () => {
  // group a: 1, 3, mean 2, std sqrt(2); group b: -10, -10, 5, mean -5, std sqrt((25 + 25 + 100) / 2)
  const [returns, groups] = [[1, -10, 3, -10, 5], groupsOf(["a", "b", "a", "b", "b"])];
  const [a, b] = [Math.SQRT2, Math.sqrt(75)];
  close(grpoAdvantages(returns, groups, true), [-1 / a, -5 / b, 1 / a, -5 / b, 10 / b], 1e-6);
  close(grpoAdvantages(returns, groups, false), [-1, -5, 1, -5, 10]);
});

test("RLOO's advantage is the distance from the mean of the others", () => {
  close(rlooAdvantages([1, -10, 3, -10, 5], groupsOf(["a", "b", "a", "b", "b"])), [-2, -7.5, 2, -7.5, 15]);
});

test("equal rewards and a single sample have no advantage", () => {
  for (const advantages of [grpoAdvantages, rlooAdvantages])
    assert.deepEqual(advantages([-9.7, -9.7, 4], groupsOf(["a", "a", "b"]), true), [0, 0, 0]);
  assert.equal(zeroSpreadShare([-9.7, -9.7, 4, 3, 4], groupsOf(["a", "a", "b", "b", "c"])), 2 / 3);
});

test("only group baselines take several samples of a prompt", () => {
  assert.deepEqual(
    (["Critic", "BatchMean", "GRPO", "RLOO"] as const).map((baseline) => samplesPerPrompt({ baseline, groupSize: 8 })),
    [1, 1, 8, 8],
  );
});

// numbers from verl's own functions, made by test/fixtures/reference/make_advantage_reference.py

interface Reference {
  groups: {
    groups: string[];
    rewards: number[];
    klCoefficient: number;
    kl: number[][];
    grpo: number[];
    grpoWithoutStd: number[];
    rloo: number[];
  }[];
}
const file = path.join(import.meta.dirname, "../../test/fixtures/ppo/advantages.json");
const reference = JSON.parse(fs.readFileSync(file, "utf8")) as Reference;

for (const { groups: names, rewards, klCoefficient, kl, ...expected } of reference.groups) {
  test(`advantages equal verl's with KL ${klCoefficient} in the reward`, () => {
    const returns = rewards.map((reward, i) => {
      const proximalLogProbs = Float32Array.from(kl[i]!);
      const referenceLogProbs = new Float32Array(proximalLogProbs.length);
      return tokenRewards(reward, { logProbs: proximalLogProbs, referenceLogProbs }, klCoefficient).reduce(
        (a, b) => a + b,
      );
    });
    const groups = groupsOf(names);
    const worst = 2e-5; // verl computes in float32
    close(grpoAdvantages(returns, groups, true), expected.grpo, worst);
    close(grpoAdvantages(returns, groups, false), expected.grpoWithoutStd, worst);
    close(rlooAdvantages(returns, groups), expected.rloo, worst);
  });
}
