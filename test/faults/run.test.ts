/**
 * A whole run of real processes and what must hold when parts of it die: every sample accounted for, none trained on
 * twice (promises 1 and 2 of the design).
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

test("killed actor, sandbox and learner: the run ends by itself with every sample accounted for", async () => {
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
