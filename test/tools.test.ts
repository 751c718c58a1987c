import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { findTool, missingPackages, missingTools, TOOLS } from "./tools.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-tools-"));
after(() => rmSync(folder, { recursive: true }));

test("Each tool that PATH lacks is named with its package, and the others are found", () => {
  const onPath = TOOLS.filter((name) => !["libfaketimeMT.so.1", "ptp", "qemu-aarch64-static"].includes(name));
  const path = join(folder, "all");
  mkdirSync(path);
  for (const name of onPath) symlinkSync("/bin/true", join(path, name));
  assert.equal(missingTools(onPath, path), undefined);
  for (const name of onPath) {
    unlinkSync(join(path, name));
    const [its] = missingPackages([name], path);
    const remedy = `apt-get install -y --no-install-recommends ${its}`;
    assert.equal(missingTools(onPath, path), `not installed: ${name} (${remedy})`);
    symlinkSync("/bin/true", join(path, name));
  }
  assert.deepEqual(missingPackages(["iptables", "ip", "ss", "unshare"], ""), ["iptables", "iproute2", "util-linux"]);
});

test("A Python without the modules of a virtual environment is missing, as on a bare Debian", () => {
  const path = join(folder, "python");
  mkdirSync(path);
  writeFileSync(join(path, "python3"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  assert.equal(findTool("python3", path), join(path, "python3"));
  assert.deepEqual(missingPackages(["python3"], path), ["python3-venv"]);
});

test("A lane on a machine without programs says one line with the remedy, and ends with 2", () => {
  const env = { PATH: folder, LONGRUN_CACHE: folder };
  const lanes = fileURLToPath(new URL("lane-tools.ts", import.meta.url));
  const looked = spawnSync(process.execPath, [lanes, "test:faults"], { env, encoding: "utf8" });
  assert.equal(looked.status, 2);
  assert.match(looked.stderr, /^test:faults cannot be run here: not installed: python3 [^\n]*\n$/);

  const all = `import { LANES } from ${JSON.stringify(lanes)};
    console.log(JSON.stringify(Object.entries(LANES).map(([name, lane]) => [name, lane.unavailable()])))`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", all], { env, encoding: "utf8" });
  for (const [name, reason] of JSON.parse(stdout))
    assert.match(reason ?? "", /^[^\n]+(install|needs root|run `|run as root)[^\n]*$/, name);
});

test("Every script of package.json that runs tests looks for its tools", () => {
  const { scripts } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  for (const [name, script] of Object.entries<string>(scripts).filter(([it]) => /^test(:|$)/.test(it))) {
    const [, file] = /^node (\S+)$/.exec(script) ?? [];
    const looks = file
      ? readFileSync(file, "utf8").includes("lookForTools(")
      : script.startsWith(`node test/lane-tools.ts ${name} &&`);
    assert.ok(looks, `${name}: ${script}`);
  }
});
