/** Inputs that a learner refuses before it loads anything: exit status 2, and one line with the reason. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { manifest, World } from "../test/faults/real-learner.ts";

const [world, other] = [new World(), new World()];
before(() => Promise.all([world.prepare(), other.prepare()]));
after(() => Promise.all([world.remove(), other.remove()]));

test("a learner refuses a task statement that does not fit before it listens", { timeout: 60_000 }, async () => {
  const learner = other.learner(manifest().replace("maxPromptTokens: 256", "maxPromptTokens: 20"));
  assert.equal(await learner.exit, 2);
  assert.match(
    learner.output,
    /^task \S+: its statement takes a prompt of \d+ tokens, model\.maxPromptTokens is 20; raise it/m,
  );
  await assert.rejects(learner.listening);
});

test("a learner refuses lengths beyond the model's context", { timeout: 60_000 }, async () => {
  const learner = world.learner(manifest().replace("maxResponseTokens: 160", "maxResponseTokens: 800"));
  assert.equal(await learner.exit, 2);
  assert.equal(
    learner.output,
    "model.maxPromptTokens and model.maxResponseTokens are 256 + 800 tokens, but model.policy has 1024 positions " +
      "(max_position_embeddings): set model.maxResponseTokens to 768 or less, or model.maxPromptTokens to 224 or less\n",
  );
  assert.equal(learner.termination, learner.output.trimEnd());
});
