import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Fence } from "./fence.ts";
import { newSample, scratchFolder } from "./store/store.fixture.ts";
import { openStore } from "./store/store.ts";

const folder = scratchFolder();
const file = join(folder, "fence.json");
const fenced = (message: RegExp) => ({ name: "StoreError", code: "fenced", message });

test("the learner that takes the token last holds it, and its number grows", () => {
  const first = Fence.take(folder, "pod-1/7", new Date("2030-01-01T00:00:00Z"));
  first.check();
  const second = Fence.take(folder, "pod-2/7", new Date("2030-01-01T00:01:00Z"));
  second.check();
  assert.throws(
    () => first.check(),
    fenced(/fence\.json was taken by pod-2\/7 at 2030-01-01T00:01:00\.000Z \(number 2, ours is 1\)/),
  );
  assert.equal(JSON.parse(readFileSync(file, "utf8")).number, 2);
});

test("a token whose file is damaged or missing has no holder and can be taken", () => {
  const holder = Fence.take(folder, "a");
  writeFileSync(file, '{"number":');
  assert.throws(() => holder.check(), fenced(/is gone or damaged: stop this learner/));
  Fence.take(folder, "b").check();
  const last = Fence.take(folder, "c");
  rmSync(file);
  assert.throws(() => last.check(), fenced(/is gone or damaged: stop this learner/));
});

test("a learner that fails to take the token, or was killed while it took it, leaves no file", () => {
  const own = join(folder, "own");
  mkdirSync(join(own, "fence.json", "in the way"), { recursive: true });
  assert.throws(() => Fence.take(own, "a"), {
    name: "StoreError",
    code: "io",
    message: /fence\.json cannot be written/,
  });
  assert.deepEqual(readdirSync(own), ["fence.json"]);
  rmSync(join(own, "fence.json"), { recursive: true });
  writeFileSync(join(own, "fence.json.0e1f"), "");
  Fence.take(own, "b").check();
  assert.deepEqual(readdirSync(own), ["fence.json"]);
});

test("the later file counts if two learners took the same number", () => {
  rmSync(file, { force: true });
  const first = Fence.take(folder, "a");
  rmSync(file);
  const second = Fence.take(folder, "b");
  second.check();
  assert.throws(() => first.check(), fenced(/was taken by b .*number 1, ours is 1/));
});

test("a store writes nothing once the token is lost, although its own file was not taken over", async () => {
  const fence = Fence.take(folder, "a");
  const store = openStore(join(folder, "store.sqlite"), { checkFence: () => fence.check() });
  await store.beginLineage(() => true);
  store.addSamples([newSample("s1")]);
  Fence.take(folder, "b");
  assert.throws(() => store.addSamples([newSample("s2")]), fenced(/taken by b/));
  assert.throws(() => store.checkFence(), fenced(/taken by b/));
  assert.equal(store.totals().queued, 1);
  store.close();
});

test("the error of a folder that cannot be written names the folder", () => {
  assert.throws(() => Fence.take(join(folder, "nowhere"), "a"), { name: "StoreError", code: "io", message: /nowhere/ });
});
