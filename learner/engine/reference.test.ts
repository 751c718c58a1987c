/** Tests a reference that is taken from a folder, as a warm start leaves it. */
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { model, PRETRAIN, samples } from "./engine.fixture.ts";
import { PROJECTIONS } from "./model/lora.ts";
import { Trainer } from "./trainer.ts";

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "reference-"));
after(() => fs.rmSync(folder, { recursive: true }));
const LORA = { rank: 2, alpha: 4, targets: PROJECTIONS, seed: 1 };
const STEP = { ...PRETRAIN, learningRate: 1e-2 };

for (const [name, adapter] of [
  ["every weight", undefined],
  ["an adapter", { ...LORA, reference: true }],
] as const)
  test(`${name}: the reference is the policy of a folder, stays there, and begins as the model`, async () => {
    const batch = samples(5);
    const trainer = new Trainer({ model, threads: 1, adapter });
    const evaluated = () => trainer.evaluate(batch, { temperature: 1, values: false });
    const initial = await evaluated();
    for (const { logProbs, referenceLogProbs } of initial) assert.deepEqual(referenceLogProbs, logProbs);
    for (let step = 0; step < 3; step++) await trainer.pretrain(batch, STEP);
    const trained = await evaluated();
    assert.deepEqual(
      trained.map(({ referenceLogProbs }) => referenceLogProbs),
      initial.map(({ logProbs }) => logProbs),
    );

    const out = path.join(folder, name);
    fs.mkdirSync(out);
    await trainer.savePolicy(out);
    await trainer.loadPolicy(out);
    await trainer.loadReference(out);
    const warm = await evaluated();
    for (const [i, { logProbs, referenceLogProbs }] of warm.entries()) {
      assert.deepEqual(logProbs, trained[i]!.logProbs);
      assert.deepEqual(referenceLogProbs, logProbs);
      assert.notDeepEqual(logProbs, initial[i]!.logProbs);
    }
    await trainer.pretrain(batch, STEP);
    const later = await evaluated();
    for (const [i, { logProbs, referenceLogProbs }] of later.entries()) {
      assert.notDeepEqual(logProbs, trained[i]!.logProbs);
      assert.deepEqual(referenceLogProbs, trained[i]!.logProbs);
    }
    await trainer.close();
  });

test("measureFit has the mean log-probs and the share of most probable tokens of the same policy", async () => {
  const batch = samples(5);
  const trainer = new Trainer({ model, threads: 1 });
  const { loss, correct, tokens } = await trainer.measureFit(batch);
  const all = (await trainer.evaluate(batch, { temperature: 1, values: false })).flatMap(({ logProbs }) => [
    ...logProbs,
  ]);
  assert.equal(tokens, all.length);
  assert.ok(Math.abs(loss + all.reduce((sum, x) => sum + x, 0)) < 1e-3);
  assert.ok(correct < 0.5 * tokens, `${correct} of ${tokens}`);
  for (let step = 0; step < 60; step++) await trainer.pretrain(batch, STEP);
  // responses of the same prompt begin with different tokens
  const learned = await trainer.measureFit(batch);
  assert.ok(learned.correct > 0.9 * tokens, `${learned.correct} of ${tokens}`);
  await trainer.close();
});

test("an engine whose reference has no adapter of its own refuses one", async () => {
  const trainer = new Trainer({ model, threads: 1, adapter: LORA });
  await assert.rejects(trainer.loadReference(folder), { code: "reference" });
  await trainer.close();
});
