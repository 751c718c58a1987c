/** Inputs that a learner refuses before it loads anything: exit status 2, and one line with the reason. */
import assert from "node:assert/strict";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { manifest, World } from "../test/faults/real-learner.ts";

const [world, other, warned] = [new World(), new World(), new World()];
before(() => Promise.all([world.prepare(), other.prepare(), warned.prepare()]));
after(() => Promise.all([world.remove(), other.remove(), warned.remove()]));

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

test("a learner warns of a chat template whose turns end with a token that ends no response", {
  timeout: 60_000,
}, async () => {
  const policy = join(warned.folder, "policy");
  cpSync(join(import.meta.dirname, "../manifests/quickstart/policy"), policy, { recursive: true });
  writeFileSync(join(policy, "generation_config.json"), '{"eos_token_id":0}');
  const short = manifest().replace("maxPromptTokens: 256", "maxPromptTokens: 20"); // ends it
  const level = process.env.LOG_LEVEL ?? "warn";
  process.env.LOG_LEVEL = "info";
  try {
    const learner = warned.learner(short.replace("policy: quickstart", `policy: ${policy}`));
    assert.equal(await learner.exit, 2);
    assert.match(
      learner.output,
      /the chat template ends an answer with <\|im_end\|> \(2\), but only <\|endoftext\|> \(0\)/,
    );
  } finally {
    process.env.LOG_LEVEL = level;
  }
});
