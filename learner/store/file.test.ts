/** Tests the store's file: several openers, damage, a full disk, stores of earlier versions. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { missingTools } from "../../test/tools.ts";
import { newResult, newSample } from "./store.fixture.ts";
import { openStore } from "./store.ts";
import { downgrade, fails, folder, newPath, newStore, taken } from "./store-tests.fixture.ts";

test("a second learner takes the store over; writes of the first fail and change nothing", async () => {
  const { store, path } = await newStore();
  store.addSamples([newSample("a"), newSample("b")]);
  const lease = taken(store);
  const second = openStore(path);
  await second.beginLineage(() => true);
  const writes: Record<string, () => unknown> = {
    addSamples: () => store.addSamples([newSample("c")]),
    take: () => store.leases.takeAll(["actor-0"])[0],
    accept: () => store.leases.accept("actor-0", lease, newResult()),
    setGrade: () => store.setGrade("a", { valid: false, reward: 0, reason: "" }),
    commit: () => store.commitIteration({ iteration: 1, sampleIds: [], metrics: {} }),
  };
  for (const write of Object.values(writes)) assert.throws(write, fails("fenced", /newer learner/));
  const { queued, running } = second.counts();
  assert.deepEqual({ queued, running }, { queued: 1, running: 1 });
  assert.equal(second.leases.accept("actor-0", lease, newResult()), "accepted");
});

test("a reader does not take the store over and cannot write", async () => {
  const { store, path } = await newStore();
  store.addSamples([newSample("a")]);
  const reader = openStore(path, { readOnly: true });
  assert.equal(reader.counts().queued, 1);
  assert.throws(() => reader.addSamples([newSample("b")]), fails("readOnly"));
  store.addSamples([newSample("b")]);
  assert.equal(reader.counts().queued, 2);
});

test("running attempts survive a restart; their grace period begins when actors can reach the learner", async () => {
  const { store, path, clock } = await newStore();
  store.addSamples([newSample("a"), newSample("b")]);
  const [a] = [taken(store), taken(store)];
  store.close();
  clock.seconds += 1000;
  const again = openStore(path, { leaseGraceSeconds: 5, maxAttempts: 9, now: () => clock.seconds * 1000 });
  clock.seconds += 100; // loading weights
  again.leases.startGrace();
  clock.seconds += 4;
  assert.equal(again.leases.expire(), 0);
  assert.deepEqual(again.leases.reconcile("actor-0", [a]), []);
  assert.equal(again.counts().queued, 1, "b is not held any more");
  clock.seconds += 50;
  assert.equal(again.leases.accept("actor-0", a, newResult()), "accepted");
});

const damage: [string, string, (path: string) => void][] = [
  ["is no database", "open", (path) => writeFileSync(path, "hello, this is a text and not a database".repeat(20))],
  [
    "is another program's database",
    "open",
    (path) => new DatabaseSync(path).exec("CREATE TABLE t (x); PRAGMA user_version = 1"),
  ],
  [
    "was made by a later version",
    "schemaVersion",
    (path) => {
      openStore(path).close();
      new DatabaseSync(path).exec("PRAGMA user_version = 99");
    },
  ],
  [
    "is cut off",
    "open",
    (path) => {
      openStore(path).close();
      truncateSync(path, 8192);
    },
  ],
];
for (const [name, code, make] of damage) {
  test(`a file that ${name} is refused by name`, () => {
    const path = newPath();
    make(path);
    assert.throws(() => openStore(path), fails(code, new RegExp(path)));
  });
}

test("the store's errors name a missing folder and a lasting lock", async () => {
  assert.throws(() => openStore(join(folder, "no", "store.sqlite")), fails("open", /folder must exist/));
  const { store, path } = await newStore({ busySeconds: 0.05 });
  const other = new DatabaseSync(path);
  other.exec("BEGIN IMMEDIATE");
  assert.throws(() => store.addSamples([newSample("a")]), fails("busy", /locked by another process/));
  other.exec("ROLLBACK");
  store.addSamples([newSample("a")]);
});

const mayMount = process.getuid?.() === 0;
test("the error of a disk that is too full to open the store names the disk", {
  skip: missingTools(["mount"]) ?? (!mayMount && "needs root"),
}, (context) => {
  const disk = join(folder, "disk");
  mkdirSync(disk);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", disk]);
  context.after(() => execFileSync("umount", ["--lazy", disk]));
  const path = join(disk, "store.sqlite");
  openStore(path).close();
  assert.throws(() => writeFileSync(join(disk, "filler"), Buffer.alloc(2 ** 20)), /ENOSPC/);
  assert.throws(() => openStore(path), fails("diskFull", /the disk of \S+ is full/));
  rmSync(join(disk, "filler"));
  openStore(path).close();
});

test("a full disk gives a clear error and loses nothing, and writes succeed again once there is space", async () => {
  const { store, path } = await newStore();
  store.addSamples([newSample("a")]);
  store.close();
  const big = newSample("big", { solution: "x".repeat(1e6) });
  // A limit on the file stands for the disk's.
  const full = openStore(path, { maxBytes: 300_000 });
  assert.throws(() => full.addSamples([newSample("b"), big]), fails("diskFull", /free space/));
  assert.equal(full.counts().queued, 1);
  full.addSamples([newSample("b")]);
  full.close();
  const enlarged = openStore(path);
  enlarged.addSamples([big]);
  assert.equal(enlarged.counts().queued, 3);
});

test("a store of an earlier version can be read as it is; a writer migrates it", async () => {
  const { store, path } = await newStore();
  store.addSamples([newSample("a")]);
  const lease = taken(store);
  assert.equal(store.leases.accept("actor-0", lease, newResult()), "accepted");
  store.setGrade("a", { valid: true, score: 1, reward: 1, reason: "valid" });
  store.close();
  downgrade(path, 2);
  const none = { guards: [], clamped: false, capped: false };
  const graded = { valid: true, score: 1, reward: 1, reason: "valid", family: undefined };
  const reader = openStore(path, { readOnly: true });
  assert.deepEqual(reader.samples(["a"])[0].grade, { ...graded, ...none });
  reader.close();
  const writer = openStore(path);
  assert.deepEqual(writer.samples(["a"])[0].grade, { ...graded, ...none });
  const flagged = { guards: ["perfect"], clamped: true, capped: true };
  writer.setGrade("a", { ...graded, ...flagged });
  writer.close();
  assert.deepEqual(openStore(path).samples(["a"])[0].grade, { ...graded, ...flagged });
});

test("truncated is unknown in a store of an earlier version, which a writer migrates", async () => {
  const { store, path } = await newStore();
  store.addSamples([newSample("cut", { truncated: true }), newSample("ended", { truncated: false }), newSample("old")]);
  const known = (at: string, ids: string[], options = {}) => {
    const opened = openStore(at, options);
    const found = opened.samples(ids).map(({ truncated }) => truncated);
    opened.close();
    return found;
  };
  store.close();
  assert.deepEqual(known(path, ["cut", "ended", "old"]), [true, false, undefined]);
  downgrade(path, 4);
  assert.deepEqual(known(path, ["cut", "ended"], { readOnly: true }), [undefined, undefined]);
  const writer = openStore(path);
  writer.addSamples([newSample("new", { truncated: true })]);
  writer.close();
  assert.deepEqual(known(path, ["cut", "ended", "new"]), [undefined, undefined, true]);
});

test("a migrated store counts and offers the same samples, and has the indexes of a new one", async () => {
  const { store, path } = await newStore();
  store.addSamples(["a", "b", "c", "d"].map((id) => newSample(id)));
  for (const lease of [taken(store), taken(store), taken(store)]) store.leases.accept("actor-0", lease, newResult());
  store.leases.fail("actor-0", taken(store), "gone");
  for (const id of ["a", "b"]) store.setGrade(id, { valid: false, reward: -1, reason: "failed" });
  store.commitIteration({ iteration: 1, sampleIds: ["a"], metrics: {} });
  const totals = store.totals();
  store.close();
  const objects = objectsOf(path);
  downgrade(path, 5);
  assert.notDeepEqual(objectsOf(path), objects);
  const migrated = openStore(path);
  assert.deepEqual(objectsOf(path), objects);
  assert.deepEqual(migrated.totals(), totals);
  assert.deepEqual(
    migrated.ungraded().map(({ id }) => id),
    ["c"],
  );
  migrated.addSamples([newSample("e")]);
  assert.deepEqual(migrated.counts(), { ...totals, queued: totals.queued + 1 });
  migrated.close();
});

test("a store of version 6 has no debug prompts; a writer migrates it and keeps the kind of each sample", async () => {
  const { store, path } = await newStore();
  store.addSamples([newSample("a"), newSample("b", { kind: "improve", previous: "a" })]);
  store.close();
  downgrade(path, 6);
  const kinds = (of: ReturnType<typeof openStore>, ids: string[]) =>
    of.samples(ids).map(({ kind, depth }) => [kind, depth]);
  const reader = openStore(path, { readOnly: true });
  assert.deepEqual(kinds(reader, ["a", "b"]), [
    ["scratch", undefined],
    ["improve", undefined],
  ]);
  reader.close();
  const writer = openStore(path);
  writer.addSamples([newSample("c", { kind: "debug", previous: "b", depth: 1, previousStep: "failed" })]);
  assert.deepEqual(kinds(writer, ["a", "b", "c"]), [
    ["scratch", undefined],
    ["improve", undefined],
    ["debug", 1],
  ]);
  assert.throws(() => writer.addSamples([newSample("d", { kind: "other" as "debug" })]), /CHECK/);
  writer.close();
});

test("outcomes of a store of an earlier version are read; its samples have no depth", async () => {
  const { store, path } = await newStore();
  store.addSamples([newSample("a"), newSample("b", { kind: "improve", previous: "a" })]);
  store.close();
  for (const version of [6, 2]) {
    downgrade(path, version);
    const reader = openStore(path, { readOnly: true });
    const outcomes = reader.outcomes().map(({ id, kind, previous, depth }) => [id, kind, previous, depth]);
    reader.close();
    assert.deepEqual(outcomes, [
      ["a", "scratch", null, null],
      ["b", "improve", "a", null],
    ]);
    openStore(path).close(); // migrates it
  }
});

test("a store of version 8 has no private scores; a reader finds none, a writer migrates it", async () => {
  const { store, path } = await newStore();
  store.addSamples([newSample("old", { state: "notExecuted" }), newSample("new", { state: "notExecuted" })]);
  const grade = { valid: true, score: 1, reward: 1, reason: "valid" };
  store.setGrade("old", grade, { score: 2, reason: "valid" });
  store.close();
  downgrade(path, 8);
  const reader = openStore(path, { readOnly: true });
  assert.equal(reader.privateScore("old"), undefined);
  reader.close();
  const writer = openStore(path);
  assert.equal(writer.privateScore("old"), undefined);
  writer.setGrade("new", grade, { reason: "Pearson is undefined" });
  assert.deepEqual(writer.privateScore("new"), { reason: "Pearson is undefined" });
  assert.deepEqual(writer.gaps("diamonds"), []);
  writer.setGrade("new", grade, { score: 3.5, reason: "valid" });
  assert.deepEqual(writer.privateScore("new"), { score: 3.5, reason: "valid" }, "the newest counts");
  assert.deepEqual([writer.gaps("diamonds"), writer.gaps("wage")], [[-2.5], []]);
  assert.equal(JSON.stringify(writer.sample("new")).includes("3.5"), false, "it is no part of the sample");
  writer.close();
});

const objectsOf = (path: string) =>
  new DatabaseSync(path, { readOnly: true })
    .prepare("SELECT type, name, sql FROM sqlite_schema WHERE type <> 'table' ORDER BY name")
    .all();

test("after a clean close a copy of the file alone can be read", async () => {
  const { store, path } = await newStore();
  store.addSamples([newSample("a")]);
  store.close();
  const copy = newPath();
  copyFileSync(path, copy);
  assert.equal(openStore(copy, { readOnly: true }).counts().queued, 1);
});
