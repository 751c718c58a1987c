import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { copyCheckpoint, findCheckpoint } from "./copy-checkpoint.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-copy-"));
after(() => rmSync(folder, { recursive: true }));

const run = join(folder, "run");
for (const name of ["1-000003", "1-000012", "2-000004", "2-000005.partial"]) {
  mkdirSync(join(run, "checkpoints", name), { recursive: true });
  writeFileSync(join(run, "checkpoints", name, "state.json"), name);
}

const CASES: [iteration: number | undefined, name: string | RegExp][] = [
  [undefined, "2-000004"],
  [3, "1-000003"],
  [12, "1-000012"],
  [5, /does not have the checkpoint of iteration 5: there are 1-000003, .*change spec\.initFrom/],
];
for (const [iteration, expected] of CASES)
  test(`findCheckpoint finds or refuses iteration ${iteration ?? "newest"}`, () => {
    if (typeof expected === "string") assert.equal(findCheckpoint(run, iteration), expected);
    else assert.throws(() => findCheckpoint(run, iteration), { message: expected });
  });

test("findCheckpoint refuses a run without a checkpoint", () =>
  assert.throws(() => findCheckpoint(join(folder, "fresh")), /does not have a checkpoint: there is none/));

test("copyCheckpoint replaces the files of an earlier try", async () => {
  const target = join(folder, "init");
  await copyCheckpoint(run, target, 3);
  mkdirSync(`${target}.partial`);
  assert.equal(await copyCheckpoint(run, target), "2-000004");
  assert.equal(readFileSync(join(target, "state.json"), "utf8"), "2-000004");
  assert.ok(!existsSync(`${target}.partial`));
});
