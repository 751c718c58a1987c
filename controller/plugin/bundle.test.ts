import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { bundle } from "./bundle.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-bundle-"));
const file = join(folder, "kubectl-longrun");
before(() => bundle(file));
after(() => rmSync(folder, { recursive: true }));

/** Runs the bundle with a Node that reports this version. */
function run(version: string) {
  const preload = join(folder, "version.cjs");
  const versions = `{ ...process.versions, node: ${JSON.stringify(version)} }`;
  writeFileSync(preload, `Object.defineProperty(process, "versions", { value: ${versions} });`);
  return spawnSync(process.execPath, ["--require", preload, file, "--version"], { encoding: "utf8" });
}

for (const version of ["18.20.8", "20.18.9"])
  test(`on Node ${version} the plugin says in one line which Node it needs`, () => {
    const { status, stdout, stderr } = run(version);
    assert.equal(
      stderr,
      `kubectl longrun needs Node 20.19 or newer, and node on PATH is ${version}: install a newer one (https://nodejs.org)\n`,
    );
    assert.deepEqual([status, stdout], [1, ""]);
  });

for (const version of ["20.19.0", "24.0.0"])
  test(`On Node ${version} the plugin runs without a warning of Node`, () => {
    const { status, stdout, stderr } = run(version);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  });
