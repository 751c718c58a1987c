import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { checkFolder, makeFolder } from "./folders.ts";

const home = mkdtempSync(join(tmpdir(), "longrun-folders-"));
after(() => rmSync(home, { recursive: true }));
const at = (...parts: string[]) => join(home, ...parts);

test("A folder is made with those above it, and an existing one stays", () => {
  makeFolder(at("a/b/c"), "--out", 0o700);
  assert.deepEqual(
    [at("a"), at("a/b"), at("a/b/c")].map((path) => statSync(path).mode & 0o777),
    Array(3).fill(0o700),
  );
  writeFileSync(at("a/b/c/file"), "");
  symlinkSync(at("a"), at("link"));
  for (const path of [at("a/b/c"), at("link/b/c"), at("link/d")]) makeFolder(path, "--out");
  assert.deepEqual(readdirSync(at("a")).sort(), ["b", "d"]);
  assert.deepEqual(readdirSync(at("a/b/c")), ["file"]);
});

test("A path that takes no folder is refused at once, and a check makes none", () => {
  writeFileSync(at("file"), "");
  symlinkSync(at("nowhere"), at("dangling"));
  const none = "no folder can be created there; choose another place";
  const inTheWay = "a part of this path is not a folder; check the path";
  for (const [path, why] of [
    ["/proc/longrun", none],
    ["/proc/longrun/a/b", none],
    ["/dev/fd/longrun/a", none],
    ["/sys/longrun", /: (no permission|the disk is read-only|no folder can be created)/],
    [at("file"), inTheWay],
    [at("file/a"), inTheWay],
    [at("dangling/a"), none],
  ] as const) {
    const message = typeof why === "string" ? `--out ${path}: ${why}` : why;
    assert.throws(() => makeFolder(path, "--out"), { name: "FolderError", code: "input", message });
    if (!path.includes("dangling")) assert.throws(() => checkFolder(path, "--out"), { code: "input", message });
  }
  checkFolder(at("new/folder"));
  assert.deepEqual(readdirSync(home).sort(), ["a", "dangling", "file", "link"]);
});
