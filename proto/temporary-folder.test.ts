import assert from "node:assert/strict";
import fs, { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, beforeEach, test } from "node:test";
import { makeTemporaryFolder, removeLeftFolders, startTicks } from "./temporary-folder.ts";

const before = process.env.TMPDIR;
const root = mkdtempSync(join(tmpdir(), "longrun-temporary-"));
beforeEach(() => {
  process.env.TMPDIR = mkdtempSync(join(root, "t"));
});
after(() => {
  if (before === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = before;
  rmSync(root, { recursive: true, force: true });
});

test("A process removes the folders of killed processes of its machine and PID namespace, and no other folder", () => {
  const make = (name: string) => {
    const path = join(tmpdir(), name);
    mkdirSync(path);
    writeFileSync(join(path, "key.pem"), "");
    return path;
  };
  const first = makeTemporaryFolder("longrun-run-");
  const [, place] = /^longrun-run-([0-9a-f]{8})-\d+-\d+-/.exec(basename(first))!;
  const killed = make(`longrun-run-${place}-2147483647-5-abcdef`);
  const reused = make(`longrun-run-${place}-${process.pid}-5-abcdef`);
  const sandbox = make(`longrun-sandbox-${place}-2147483647-5-fedcba`);
  removeLeftFolders("longrun-sandbox-");
  assert.ok(!existsSync(sandbox));
  const kept = [
    first,
    make(`longrun-run-${place}-${process.ppid}-${startTicks(process.ppid)}-abcdef`),
    make(`longrun-run-${place === "00000000" ? "1" : "0"}0000000-2147483647-5-abcdef`), // another machine or namespace
    make("longrun-run-2147483647-5-abcdef"), // an earlier version's, without a place
    make(`longrun-sandbox-${place}-2147483647-5-abcdef`),
    make("longrun-run-notes"),
    makeTemporaryFolder("longrun-run-"),
  ];
  assert.deepEqual([killed, reused].filter(existsSync), []);
  assert.deepEqual(kept.filter(existsSync), kept);
  assert.equal(statSync(first).mode & 0o777, 0o700);
});

test("A temporary folder that cannot be listed, for example with mode 1733, can be used", (context) => {
  // A root user lists folders of every mode.
  const list = context.mock.method(fs, "readdirSync", () => {
    throw Object.assign(new Error("EACCES"), { code: "EACCES" });
  });
  syncBuiltinESMExports();
  try {
    assert.ok(existsSync(makeTemporaryFolder("longrun-run-")));
    assert.equal(list.mock.callCount(), 1);
  } finally {
    list.mock.restore();
    syncBuiltinESMExports();
  }
});
