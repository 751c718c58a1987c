/**
 * Tests a whole run of real processes when parts of it die: every sample is accounted for, none is trained on twice, and the weights are
 * the same bit for bit (promises 1 to 3 of the design).
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { assertAccounted, processes, RealRun, temporaryFolder } from "./real-run.ts";

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

test("A run whose actor, sandbox and learner are killed ends by itself and accounts for every sample", async () => {
  const run = start("killed", { iterations: 4 });
  const kill = async (part: string) => process.kill(await run.until(part, () => run.find(part)), "SIGKILL");
  await run.reached(1);
  await kill("actor/main.ts");
  await run.reached(2);
  await kill("sandbox/zygote.py");
  await run.reached(3);
  await kill("learner/main.ts");
  const { status, output } = await run.ended;
  assert.equal(status, 0, output);
  assert.match(output, /learner ended with .*SIGKILL/);
  assertAccounted(run, 4);
  const lineages = run.query("SELECT lineage FROM lineages");
  assert.equal(lineages.length, 2, "a restarted learner begins a new lineage");
});

test("An interrupted and resumed run has the weights of an uninterrupted replay, bit for bit", async () => {
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
  // The command may have ended before the signal.
  if ((await again.ended).status === 130) {
    const goesOn = start("again", { iterations: 3, resume: true, replay: store });
    assert.equal((await goesOn.ended).status, 0, goesOn.output);
  }
  assert.equal(again.newestDigest(), resumed.newestDigest());
});

test("SIGKILL of the parent leaves no process", async () => {
  const run = start("orphans", { iterations: 50 });
  await run.until("a sandbox", () => run.find("sandbox/zygote.py"));
  const before = new Set(run.descendants().map(({ pid }) => pid));
  assert.ok(before.size >= 3, "a learner, an actor and its sandbox");
  run.child.kill("SIGKILL");
  await run.ended;
  const left = () => processes().filter(({ pid }) => before.has(pid));
  const since = performance.now();
  while (left().length > 0 && performance.now() - since < 10_000)
    await new Promise((resolve) => setTimeout(resolve, 50));
  assert.deepEqual(left(), []);
});
