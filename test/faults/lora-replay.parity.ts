/** Tests a whole run that trains adapters, its replay, and a changed model below the adapters. */
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { readConfig, writeModelFolder } from "../../learner/engine/model/folder.ts";
import { initialWeights } from "../../learner/engine/model/weights.ts";
import { RealRun, temporaryFolder } from "./real-run.ts";

const folder = temporaryFolder();
const runs: RealRun[] = [];
after(() => {
  for (const run of runs) run.stop();
  folder.remove();
});

const POLICY = join(import.meta.dirname, "../../manifests/quickstart/policy");
const model = join(folder.path, "model");
cpSync(POLICY, model, { recursive: true });

function start(name: string, options: ConstructorParameters<typeof RealRun>[1]): RealRun {
  const run = new RealRun(join(folder.path, name), options);
  runs.push(run);
  return run;
}

test("Replayed adapters are bit-identical, interrupted or not; with another base model the run is refused", async () => {
  const settings = [`model.policy=${model}`, "model.adaptation={type: LoRA, rank: 4}"];
  const recorded = start("recorded", { iterations: 3, settings });
  assert.equal((await recorded.ended).status, 0, recorded.output);
  const replay = join(recorded.directory, "store.sqlite");

  const replayed = start("replayed", { iterations: 3, settings, replay });
  await replayed.reached(1);
  replayed.child.kill("SIGINT");
  // The command may have ended before the signal.
  if ((await replayed.ended).status === 130) {
    const goesOn = start("replayed", { iterations: 3, resume: true, replay });
    assert.equal((await goesOn.ended).status, 0, goesOn.output);
  }
  assert.deepEqual(
    replayed.lines().map(({ iteration }) => iteration),
    [1, 2, 3],
  );
  assert.equal(replayed.newestDigest(), recorded.newestDigest());
  assert.equal(replayed.newestPolicy(), recorded.newestPolicy());

  const config = readConfig(model);
  writeModelFolder(model, model, config, initialWeights(config, 1)); // the same sizes, other numbers
  const swapped = start("recorded", { iterations: 3, resume: true, settings: ["stopping.iterations=4"] });
  const { status, output } = await swapped.ended;
  assert.equal(status, 2, output);
  assert.match(
    output,
    /model is another model \([0-9a-f]{12}\) than the one \([0-9a-f]{12}\) that the adapters in .* were trained with: put that one back, or begin a new run/,
  );
});
