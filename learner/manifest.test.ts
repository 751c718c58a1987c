import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readManifest, writeManifest } from "./manifest.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-manifest-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const newer = join(folder, "config.yaml");
const give = (spec: string): string => {
  const tasks = "tasks: [{ name: diamonds }], model: { policy: quickstart }";
  writeFileSync(
    newer,
    `{ apiVersion: longrun.dev/v1alpha1, kind: TrainingRun, metadata: { name: a }, spec: { ${tasks}${spec} } }`,
  );
  return newer;
};

test("a newer manifest replaces the run folder's, and fields that must not change are refused", () => {
  const run = join(folder, "data/run");
  assert.throws(() => readManifest(run), /trainingrun\.yaml is missing; --run names the folder of a run/);
  assert.throws(
    () => readManifest(run, join(folder, "nothing.yaml")),
    /--manifest .*nothing\.yaml: there is no such file/,
  );
  writeManifest(run, readManifest(run, give("")));
  assert.equal(readManifest(run).spec.algorithm.batchSize, 128);
  assert.match(readFileSync(join(run, "trainingrun.yaml"), "utf8"), /policy: quickstart\n/);

  const { mtimeMs, ino } = statSync(join(run, "trainingrun.yaml"));
  writeManifest(run, readManifest(run, give("")));
  const same = statSync(join(run, "trainingrun.yaml"));
  assert.deepEqual([same.mtimeMs, same.ino], [mtimeMs, ino], "the same manifest is not written again");

  const changed = readManifest(run, give(", actors: { max: 7 }, stopping: { iterations: 3 }"));
  assert.equal(readManifest(run).spec.stopping.iterations !== 3, true, "reading writes nothing");
  writeManifest(run, changed);
  assert.deepEqual([readManifest(run).spec.actors.max, readManifest(run).spec.stopping.iterations], [7, 3]);

  assert.throws(
    () => readManifest(run, give(", seed: 9")),
    /config\.yaml:1: .*seed cannot change while the run exists/,
  );
  assert.throws(() => readManifest(run, give(", initFrom: { path: x }")), /initFrom is used once/);

  const path = give("");
  writeFileSync(path, readFileSync(path, "utf8").replace("{ name: diamonds }", "{ name: movie }, { name: wage }"));
  const names = readManifest(run, path).spec.tasks.map(({ name }) => name);
  assert.deepEqual(names, ["movie", "wage"], "a run whose learner starts was suspended: its tasks may have changed");
});

test("a run of another name takes over a run folder, which a checkpoint of a third run began", () => {
  const run = join(folder, "data/adopted");
  writeManifest(run, readManifest(run, give(", initFrom: { path: x }")));
  const path = give("");
  writeFileSync(path, readFileSync(path, "utf8").replace("name: a", "name: b"));
  writeManifest(run, readManifest(run, path));
  assert.deepEqual([readManifest(run).metadata.name, readManifest(run).spec.initFrom], ["b", undefined]);
});

test("a range that the run estimated stays if a newer manifest has none", () => {
  const run = join(folder, "data/estimated");
  const own = (change = ""): string => {
    const grader = `{ metric: RMSE, idColumn: id, targetColumns: [y], direction: Lower${change} }`;
    const task = `{ name: own, publicData: { path: a }, privateData: { path: b }, grader: ${grader} }`;
    writeFileSync(
      newer,
      `{ apiVersion: longrun.dev/v1alpha1, kind: TrainingRun, metadata: { name: a }, spec: { tasks: [${task}], model: { policy: quickstart } } }`,
    );
    return newer;
  };
  const begun = readManifest(run, own());
  begun.spec.tasks[0]!.grader!.rewardRange = { worst: 30, best: 0 };
  writeManifest(run, begun, { [begun.spec.tasks[0]!.name]: "estimated" });
  const text = readFileSync(join(run, "trainingrun.yaml"), "utf8");
  assert.match(text, /# estimated/);
  writeManifest(run, readManifest(run, own()));
  assert.equal(readFileSync(join(run, "trainingrun.yaml"), "utf8"), text, "range and note");
  assert.throws(() => readManifest(run, own(", rewardFloor: -8")), /grader cannot change|cannot change while/);
  assert.throws(() => readManifest(run, own(", rewardRange: { worst: 9, best: 0 }")), /cannot change/);
});

test("a run folder of an earlier version is read although some of its fields and values were removed", () => {
  const run = join(folder, "data/earlier");
  writeManifest(run, readManifest(run, give("")));
  const path = join(run, "trainingrun.yaml");
  const now = readFileSync(path, "utf8");
  const earlier = (from: string, to: string): void =>
    writeFileSync(
      path,
      now.replace("klPlacement:", `klController: Fixed\n    klTarget: 0.1\n    klPlacement:`).replace(from, to),
    );
  earlier("", "");
  assert.equal(readManifest(run).spec.algorithm.batchSize, 128);
  writeManifest(run, readManifest(run, give("")));
  assert.equal(readFileSync(path, "utf8"), now, "they are gone");

  earlier("stalenessPolicy: Wait", "stalenessPolicy: Mask");
  assert.throws(() => readManifest(run), /stalenessPolicy is "Mask", a removed value; give one of Wait, Drop/);
  const corrected = readManifest(run, give(", algorithm: { stalenessPolicy: Drop }"));
  assert.equal(corrected.spec.algorithm.stalenessPolicy, "Drop");

  earlier("klController: Fixed", "klController: Adaptive");
  assert.throws(() => readManifest(run, give("")), /klController is "Adaptive", a removed field: .* create a new one/);
});
