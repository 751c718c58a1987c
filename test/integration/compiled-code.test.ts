/** Where `longrun` keeps compiled code. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const LONGRUN = join(import.meta.dirname, "../../controller/longrun.mjs");
const folder = mkdtempSync(join(tmpdir(), "longrun-compiled-"));
after(() => rmSync(folder, { recursive: true }));

function version(env: NodeJS.ProcessEnv) {
  const { NODE_COMPILE_CACHE: _, LONGRUN_CACHE: __, ...rest } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, [LONGRUN, "--version"], {
    env: { ...rest, ...env },
    ...{ encoding: "utf8", timeout: 60_000, killSignal: "SIGKILL" },
  });
  return { status, stdout, stderr };
}
const RIGHT = { status: 0, stdout: "0.2.0\n", stderr: "" };

test("Compiled code is kept in longrun's cache, which need not exist before", () => {
  const cache = join(folder, "xdg");
  assert.deepEqual(version({ XDG_CACHE_HOME: cache }), RIGHT);
  assert.equal(readdirSync(join(cache, "longrun/node")).length, 1);
});

test("A cache that cannot be made changes nothing else: below /proc, below a folder that is not there, in a file", () => {
  for (const cache of ["/proc/x", join(folder, "no/such"), LONGRUN])
    assert.deepEqual(version({ LONGRUN_CACHE: join(cache, "longrun") }), RIGHT, cache);
  assert.ok(!existsSync(join(folder, "no")));
});

test("A place that NODE_COMPILE_CACHE names is used as Node does", () => {
  const [cache, named] = [join(folder, "unused"), join(folder, "named")];
  assert.deepEqual(version({ XDG_CACHE_HOME: cache, NODE_COMPILE_CACHE: named }), RIGHT);
  assert.ok(existsSync(named) && !existsSync(cache));
});
