/**
 * A whole run of real processes, interrupted and resumed: the weights of one that was not, bit for bit (promise 3 of the
 * design).
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { assertAccounted, RealRun, temporaryFolder } from "./real-run.ts";

const folder = temporaryFolder();
const runs: RealRun[] = [];
after(() => {
  for (const run of runs) run.stop();
  folder.remove();
});

function start(name: string, options: ConstructorParameters<typeof RealRun>[1]): RealRun {
  const run = new RealRun(join(folder.path, name), options);
  runs.push(run);
  return run;
}

test("interrupted and resumed: the same weights, bit for bit, as a replay that was not, and one that was", async () => {
  const broken = start("broken", { iterations: 3 });
  await broken.reached(1);
  await broken.until(
    "a running program",
    () => broken.query("SELECT 1 FROM samples WHERE state = 'leased'").length > 0,
  );
  broken.child.kill("SIGINT");
  const stopped = await broken.ended;
  assert.equal(stopped.status, 130, stopped.output);
  assert.match(stopped.output, /--resume/);

  const resumed = start("broken", { iterations: 3, resume: true });
  assert.equal((await resumed.ended).status, 0, resumed.output);
  assertAccounted(resumed, 3);

  const store = join(resumed.directory, "store.sqlite");
  const unbroken = start("unbroken", { iterations: 3, replay: store });
  assert.equal((await unbroken.ended).status, 0, unbroken.output);
  assert.equal(unbroken.newestDigest(), resumed.newestDigest());
  assert.equal(unbroken.newestPolicy(), resumed.newestPolicy());

  const again = start("again", { iterations: 3, replay: store });
  await again.reached(1);
  again.child.kill("SIGINT");
  // It may have been faster than the signal.
  if ((await again.ended).status === 130) {
    const goesOn = start("again", { iterations: 3, resume: true, replay: store });
    assert.equal((await goesOn.ended).status, 0, goesOn.output);
  }
  assert.equal(again.newestDigest(), resumed.newestDigest());
});
