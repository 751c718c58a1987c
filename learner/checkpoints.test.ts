import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checkBase, loadCheckpoint, pruneCheckpoints, saveCheckpoint } from "./checkpoints.ts";
import type { Engine } from "./engine/engine.ts";
import { scratchFolder } from "./store/store.fixture.ts";

/** An engine whose state is one text, which is also its digest. */
function engineWith(weights: string): Engine & { weights: string } {
  const engine = {
    weights,
    save: async (directory: string) => {
      writeFileSync(join(directory, "weights"), engine.weights);
      return { digest: engine.weights };
    },
    load: async (directory: string) => {
      engine.weights = readFileSync(join(directory, "weights"), "utf8");
    },
    digest: async () => engine.weights,
  };
  return engine as unknown as Engine & { weights: string };
}

const STATE = { iteration: 3, elapsedSeconds: 12, base: "a model" };

test("a checkpoint is loaded as it was saved, and no temporary folder stays", async () => {
  const run = scratchFolder();
  const saved = await saveCheckpoint(run, engineWith("third"), 2, STATE);
  assert.deepEqual([saved.path, saved.digest], ["checkpoints/2-000003", "third"]);
  assert.deepEqual(readdirSync(join(run, "checkpoints")), ["2-000003"]);
  const engine = engineWith("first");
  const state = await loadCheckpoint(run, engine, saved, assert.fail);
  assert.deepEqual([state, engine.weights], [{ ...STATE, digest: "third" }, "third"]);
});

const BROKEN: [name: string, harm: (folder: string) => void, reason: RegExp][] = [
  [
    "that holds other weights than the store committed",
    (folder) => writeFileSync(join(folder, "weights"), "second"),
    /checkpoint checkpoints\/1-000003 is not used: its digest is second, the store has third/,
  ],
  [
    "whose state is torn",
    (folder) => writeFileSync(join(folder, "state.json"), '{"iteration": 3'),
    /is not used: .*JSON/,
  ],
];
for (const [name, harm, reason] of BROKEN)
  test(`a checkpoint is not used ${name}`, async () => {
    const run = scratchFolder();
    const saved = await saveCheckpoint(run, engineWith("third"), 1, STATE);
    harm(join(run, saved.path));
    const reasons: string[] = [];
    assert.equal(await loadCheckpoint(run, engineWith("first"), saved, (why) => reasons.push(why)), undefined);
    assert.match(reasons.join(), reason);
  });

test("all checkpoint folders but the ones to keep are deleted, also partial ones", async () => {
  const run = scratchFolder();
  for (const name of ["1-000001", "1-000002", "2-000002", "2-000003.partial"])
    mkdirSync(join(run, "checkpoints", name), { recursive: true });
  await pruneCheckpoints(run, ["checkpoints/2-000002", "checkpoints/1-000001"]);
  assert.deepEqual(readdirSync(join(run, "checkpoints")).sort(), ["1-000001", "2-000002"]);
});

test("a checkpoint of adapters is refused if the model is another than in training", async () => {
  const run = scratchFolder();
  const { path } = await saveCheckpoint(run, engineWith("third"), 1, STATE);
  const folder = join(run, path);
  checkBase(folder, "a model", "models/a");
  checkBase(folder, undefined, "models/b");
  assert.throws(() => checkBase(folder, "another one", "models/b"), {
    code: "weights",
    message: /models\/b is another/,
  });
});
