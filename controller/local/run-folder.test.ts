import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { describeFileError } from "../../proto/errors.ts";
import { createRunFolder as create, holdRunFolder, MANIFEST, newRunFolder, releaseRunFolder } from "./run-folder.ts";

const run = parseTrainingRun(
  "apiVersion: longrun.dev/v1alpha1\nkind: TrainingRun\nmetadata: { name: test }\nspec: { tasks: [{ name: wage }], model: { policy: p } }",
  "test",
);
function createRunFolder(out: string | undefined, now: Date): string {
  const directory = newRunFolder(run, out, now);
  create(directory, run);
  return directory;
}
const NOW = new Date("2026-01-31T09:05:07.123Z");
const parent = mkdtempSync(join(tmpdir(), "longrun-run-folder-"));
after(() => rmSync(parent, { recursive: true, force: true }));

describe("createRunFolder", () => {
  test("writes the resolved manifest", () => {
    const directory = createRunFolder(join(parent, "a", "b"), NOW);
    assert.deepEqual(parseTrainingRun(readFileSync(join(directory, MANIFEST), "utf8"), MANIFEST), run);
    assert.ok(existsSync(join(directory, "logs")));
  });
  test("It is named after the run and the UTC time", (context) => {
    const before = process.cwd();
    context.after(() => process.chdir(before));
    process.chdir(parent);
    assert.match(createRunFolder(undefined, NOW), /\/runs\/test-20260131T090507Z$/);
  });
  test("It may be an existing empty folder, and no other one", () => {
    const empty = join(parent, "empty");
    mkdirSync(empty);
    createRunFolder(empty, NOW);
    releaseRunFolder(empty);
    assert.throws(
      () => createRunFolder(empty, NOW),
      /not empty; choose another one, or continue the run in it: --resume/,
    );
    const other = join(parent, "other");
    mkdirSync(other);
    writeFileSync(join(other, "file"), "");
    assert.throws(() => createRunFolder(other, NOW), { code: "input", message: /not empty; choose another one$/ });
  });
  test("An impossible folder is refused in one line", () => {
    writeFileSync(join(parent, "file"), "");
    for (const [out, reason] of [
      [join(parent, "file", "x"), /^--out .*\/file\/x: a part of this path is not a folder; check the path$/],
      ["/proc/longrun", /^--out \/proc\/longrun: .*choose another place$/],
    ] as const)
      assert.throws(() => newRunFolder(run, out, NOW), { code: "input", message: reason });
    assert.throws(() => createRunFolder(join(parent, "file"), NOW), { code: "input", message: /is a file/ });
    const readOnly = describeFileError("/data/run/lock", Object.assign(new Error(), { code: "EROFS" }));
    assert.equal(readOnly, "/data/run/lock: the disk is read-only; make it writable, or choose another place");
  });
});

describe("a run folder", () => {
  const directory = join(parent, "held");
  const changeLock = (change: object): void => {
    const lock = join(directory, "lock");
    writeFileSync(lock, JSON.stringify({ ...JSON.parse(readFileSync(lock, "utf8")), ...change }));
  };
  test("is held by one living process", async () => {
    createRunFolder(directory, NOW);
    assert.throws(() => holdRunFolder(directory), {
      code: "input",
      message: new RegExp(`alive \\(process ${process.pid}\\)`),
    });
    releaseRunFolder(directory);
    holdRunFolder(directory);
  });
  test("is free when its holder has died", async () => {
    const child = spawn("true");
    await new Promise((resolve) => child.once("close", resolve));
    changeLock({ pid: child.pid });
    holdRunFolder(directory);
  });
  test("is free when its holder’s number belongs to another process", () => {
    changeLock({ startTicks: "1" });
    holdRunFolder(directory);
  });
  test("stays held when its holder ran on another machine or in another container, whose processes cannot be seen", () => {
    changeLock({ pid: 2147483647, place: "another" });
    assert.throws(() => holdRunFolder(directory), {
      code: "input",
      message: `${directory}: process 2147483647 of ${hostname()} holds this run, and cannot be seen from here; once it has ended, remove ${join(directory, "lock")}`,
    });
    rmSync(join(directory, "lock"));
    holdRunFolder(directory);
  });
  test("is free when its holder was cut off while writing", () => {
    writeFileSync(join(directory, "lock"), '{"pid":');
    holdRunFolder(directory);
  });
  test("says that its lock cannot be removed, as on a disk that became read-only", () => {
    const lock = join(directory, "lock");
    rmSync(lock);
    mkdirSync(join(lock, "cannot be removed"), { recursive: true });
    assert.throws(() => releaseRunFolder(directory), { code: "ERR_FS_EISDIR" });
    rmSync(lock, { recursive: true });
    holdRunFolder(directory);
  });
});
