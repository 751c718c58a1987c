/** When a learner estimates the rewardRange of a run. The learner is the real one, and ends because there is no policy. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseResolved } from "../crds/trainingrun.ts";
import { newSample } from "./store/store.fixture.ts";
import { openStore } from "./store/store.ts";
import { writeTaskFolder } from "./tasks/task-folder.fixture.ts";

const home = mkdtempSync(join(tmpdir(), "longrun-estimated-"));
after(() => rmSync(home, { recursive: true, force: true }));
const manifest = join(home, "config.yaml");
const grader = "grader: { metric: MAE, idColumn: id, targetColumns: [y], direction: Lower }";
writeFileSync(
  manifest,
  `{ apiVersion: longrun.dev/v1alpha1, kind: TrainingRun, metadata: { name: own }, spec: { model: { policy: ./none },
     tasks: [{ name: own, publicData: { path: a }, privateData: { path: b }, ${grader} }] } }`,
);
const task = writeTaskFolder(join(home, "task"), { "prepared/private/answers.csv": "id,y\n0,100\n1,300\n" });

/** Starts a learner in a run folder, and returns the resolved manifest that it leaves there. */
function start(run: string): string {
  const args = ["--run", run, "--manifest", manifest, "--task-dir", task, "--tls", home, "--listen", "127.0.0.1:0"];
  const learner = spawnSync(process.execPath, ["learner/main.ts", ...args, "--metrics-listen", "127.0.0.1:0"], {
    encoding: "utf8",
    cwd: join(import.meta.dirname, ".."),
    timeout: 60_000,
  });
  assert.match(learner.stderr, /none/, "it ends where it looks for the policy");
  assert.ok(existsSync(join(run, "trainingrun.yaml")), learner.stderr);
  return readFileSync(join(run, "trainingrun.yaml"), "utf8");
}
const rangeIn = (text: string) => parseResolved(text, "trainingrun.yaml").spec.tasks[0]!.grader!.rewardRange;

test("a new run gets a range with a comment, and keeps both when its learner starts again", () => {
  const run = join(home, "new");
  const text = start(run);
  assert.deepEqual(rangeIn(text), { worst: 100, best: 0 });
  assert.match(text, /# estimated from the answers\. worst: score of the best constant prediction/);
  assert.equal(start(run), text);
});

test("a run that an earlier version began goes on without a range", async () => {
  const run = join(home, "old");
  mkdirSync(run);
  const store = openStore(join(run, "store.sqlite"), {});
  await store.beginLineage(() => false);
  store.addSamples([newSample("a", { task: "own" })]);
  store.close();
  assert.equal(rangeIn(start(run)), undefined);
});
