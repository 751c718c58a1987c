/** Tests what the zygote's watch finds in a /proc that the test writes. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const folder = mkdtempSync(join(tmpdir(), "lr-watch-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the value of `expression` for the usage of process 7 in that /proc. */
function usage(proc: string, expression: string): string {
  const code = `import watch\nusage = watch.Usage(${JSON.stringify(proc)}, "7", 0)\nusage._pids = ["7"]\nprint(${expression})`;
  const cwd = fileURLToPath(new URL("./sandbox", import.meta.url));
  const run = spawnSync("python3", ["-B", "-c", code], { cwd, encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  return run.stdout.trim();
}

function procWith(name: string, descriptors: string[], maps: string): string {
  const proc = join(folder, name);
  mkdirSync(join(proc, "7/fd"), { recursive: true });
  for (const [number, target] of descriptors.entries()) symlinkSync(target, join(proc, "7/fd", String(number)));
  writeFileSync(join(proc, "7/maps"), maps);
  return proc;
}

const file = join(folder, "file");
writeFileSync(file, "x");
const { dev, ino } = statSync(file);
const mapped = (inode: number) => `7f0000000000-7f0000001000 r--s 00000000 fe:00 ${inode}   /scratch/gone (deleted)\n`;

test("a deleted file that is mapped and open counts by its descriptor, one that is only mapped has no size", () => {
  assert.equal(usage(procWith("open", [file], mapped(ino)), `usage.deleted_bytes(${dev})`), "0");
  assert.equal(usage(procWith("closed", [], mapped(ino)), `usage.deleted_bytes(${dev})`), "None");
  const shared = "7f0000000000-7f0000001000 rw-s 00000000 00:01 9   /dev/zero (deleted)\n";
  assert.equal(usage(procWith("shared", [], shared), `usage.deleted_bytes(${dev})`), "0");
});

test("a descriptor of another file system with the same inode number does not stand for the file", () => {
  // The device number of scratch here is another than the open file's.
  assert.equal(usage(procWith("alike", [file], mapped(ino)), `usage.deleted_bytes(${dev + 1})`), "None");
});
