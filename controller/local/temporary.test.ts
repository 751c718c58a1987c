import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { startTicks } from "./run-folder.ts";
import { makeTemporaryFolder } from "./temporary.ts";

const before = process.env.TMPDIR;
const parent = mkdtempSync(join(tmpdir(), "longrun-temporary-"));
process.env.TMPDIR = parent;
after(() => {
  if (before === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = before;
  rmSync(parent, { recursive: true, force: true });
});

test("a command removes the folders of those that were killed, and no other", () => {
  const make = (name: string) => {
    const path = join(parent, name);
    mkdirSync(path);
    writeFileSync(join(path, "key.pem"), "");
    return path;
  };
  const killed = make("longrun-run-2147483647-5-abcdef");
  const reused = make(`longrun-run-${process.pid}-5-abcdef`);
  const living = make(`longrun-run-${process.ppid}-${startTicks(process.ppid)}-abcdef`);
  const other = make("longrun-run-notes");
  const mine = makeTemporaryFolder();
  assert.deepEqual([killed, reused, living, other, mine].map(existsSync), [false, false, true, true, true]);
  assert.equal(statSync(mine).mode & 0o777, 0o700);
});
