/** Tests that each fault of a store and of a run folder is found, by making it. */
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { before, test } from "node:test";
import { newResult, newSample, scratchFolder } from "../../learner/store/store.fixture.ts";
import { openStore } from "../../learner/store/store.ts";
import { auditFolder, auditStore } from "./accounts.ts";

const EXPECTED = { iterations: 2, batch: 2 };
const folder = scratchFolder();
const sound = join(folder, "sound.sqlite");

/** Two iterations; sample e is lost, f is left over, and g still runs. */
before(async () => {
  const store = openStore(sound, { leaseSeconds: 10, leaseGraceSeconds: 5, maxAttempts: 1 });
  await store.beginLineage(() => true);
  const names = ["a", "b", "c", "d", "e", "f", "g"];
  store.addSamples(names.map((id) => newSample(id)));
  for (const name of names.slice(0, 6)) {
    const lease = store.leases.takeAll(["actor-0"])[0]!;
    if (name === "e") store.leases.fail("actor-0", lease, "its sandbox ended");
    else store.leases.accept("actor-0", lease, newResult());
  }
  store.leases.takeAll(["actor-0"]);
  for (const id of ["a", "b", "c", "d", "f"]) store.setGrade(id, { valid: true, score: 1, reward: 1, reason: "" });
  store.commitIteration({ iteration: 1, sampleIds: ["a", "b"], metrics: {} });
  store.commitIteration({ iteration: 2, sampleIds: ["c", "d"], metrics: {} });
  store.close();
});

function audit(...changes: string[]) {
  const path = join(folder, "changed.sqlite");
  copyFileSync(sound, path);
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  for (const change of changes) database.exec(change);
  database.close();
  return auditStore(path, EXPECTED);
}

test("auditStore finds nothing in a sound store, and counts every sample by its outcome", () => {
  assert.deepEqual(audit(), {
    findings: [],
    counts: {
      doubled: 0,
      "samples trained": 4,
      "samples lost: its sandbox ended": 1,
      "samples left over when the run was over": 2,
      "attempts accepted": 5,
      "attempts failed: its sandbox ended": 1,
      "attempts running": 1,
      learners: 1,
    },
  });
});

const FAULTS: [what: RegExp, ...changes: string[]][] = [
  [
    /they trained on 2,1/,
    "DELETE FROM batches WHERE sample = 'd'",
    "UPDATE samples SET used = NULL, used_iteration = NULL WHERE id = 'd'",
  ],
  [/they trained on 2,0/, "UPDATE iterations SET superseded_by = 2 WHERE iteration = 2"],
  [/1 samples were trained on twice/, "UPDATE batches SET sample = 'a' WHERE sample = 'd'"],
  [/in no batch.*: d,f /, "UPDATE batches SET sample = 'f' WHERE sample = 'd'"],
  [/two accepted results: a /, "UPDATE attempts SET execution = 'a', number = 2 WHERE execution = 'b'"],
  [/do not belong together: a /, "UPDATE results SET attempt = 2 WHERE execution = 'a'"],
  [/finished without a result.*: f /, "DELETE FROM results WHERE execution = 'f'"],
  [/has no grade: c /, "DELETE FROM grades WHERE sample = 'c'"],
  [/without a reason: e /, "UPDATE attempts SET reason = NULL WHERE execution = 'e'"],
  [/lost although no attempt of it was: e/, "DELETE FROM attempts WHERE execution = 'e'"],
  [/not leased.*: g /, "UPDATE samples SET state = 'queued' WHERE id = 'g'"],
  [/refers to a row that is missing/, "UPDATE grades SET sample = 'x' WHERE sample = 'f'"],
];
for (const [what, ...changes] of FAULTS)
  test(`auditStore finds ${what.source}`, () => assert.match(audit(...changes).findings.join("\n"), what));

test("auditStore finds a damaged file", () => {
  const path = join(folder, "damaged.sqlite");
  const bytes = readFileSync(sound);
  writeFileSync(path, bytes.fill(7, bytes.length - 2 * 4096 + 100, bytes.length));
  assert.match(auditStore(path, EXPECTED).findings.join("\n"), /damaged|cannot be read/);
  assert.match(auditStore(join(folder, "none.sqlite"), EXPECTED).findings.join("\n"), /cannot be read/);
});

test("auditFolder finds the faults of a run folder", () => {
  const run = join(folder, "run");
  const make = (files: Record<string, string> = {}) => {
    rmSync(run, { recursive: true, force: true });
    mkdirSync(join(run, "tensorboard"), { recursive: true });
    const all = {
      ...{ "trainingrun.yaml": "", "report.html": "", "store.sqlite": "", "fence.json": "{}" },
      "metrics.jsonl": '{"iteration":1,"samples":2}\n{"iteration":2,"samples":2}\n',
      "summary.json": '{"state":"succeeded","iterations":2}',
      ...files,
    };
    for (const [name, text] of Object.entries(all)) writeFileSync(join(run, name), text);
    return auditFolder(run, EXPECTED).join("\n");
  };
  assert.equal(make(), "");
  assert.match(make({ "metrics.jsonl": '{"iteration":1,"samples":2}\n{"iteration":1,"samples":2}\n' }), /1:2,1:2/);
  assert.match(make({ "summary.json": '{"state":"stopped","iterations":2}' }), /stopped/);
  assert.match(make({ "tensorboard/a.partial": "" }), /left over.*a\.partial/);
  assert.match(make({ lock: "{}" }), /left over.*lock/);
  rmSync(join(run, "report.html"));
  assert.match(auditFolder(run, EXPECTED).join("\n"), /report\.html missing/);
});
