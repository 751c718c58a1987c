import assert from "node:assert/strict";
import { test } from "node:test";
import type { Algorithm } from "../crds/trainingrun.ts";
import { areAlike } from "./resample.ts";
import { newSample } from "./store/store.fixture.ts";
import type { Sample } from "./store/types.ts";

const sampleOf = (reward: number, score?: number, length = 3) =>
  ({
    ...newSample("a", { responseTokens: new Int32Array(length) }),
    grade: { valid: score !== undefined, score, reward, reason: "valid" },
  }) as unknown as Sample;
const alike = (samples: Sample[], change: object = {}) =>
  areAlike(samples, { validScoreWeight: 0, ...change } as Algorithm, 10);

test("samples are alike if nothing that training compares differs", () => {
  assert.ok(alike([sampleOf(1), sampleOf(1)]));
  assert.ok(!alike([sampleOf(1), sampleOf(-10)]));
  assert.ok(alike([sampleOf(1, 5), sampleOf(1, 6)]), "clamped rewards");
  assert.ok(!alike([sampleOf(1, 5), sampleOf(1, 6)], { validScoreWeight: 0.5 }));
  const penalty = { overlongPenalty: { bufferTokens: 4, factor: 1 } };
  assert.ok(!alike([sampleOf(1, 5, 3), sampleOf(1, 5, 9)], penalty), "one is penalised for its length");
  assert.ok(alike([sampleOf(1, 5, 3), sampleOf(1, 5, 4)], penalty));
});
