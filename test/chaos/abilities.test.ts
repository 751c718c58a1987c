import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Ability, findAbilities } from "./abilities.ts";
import { type LocalRun, localTroubles } from "./local-troubles.ts";

const path = mkdtempSync(join(tmpdir(), "longrun-abilities-"));
after(() => rmSync(path, { recursive: true }));

/** Programs that succeed; `unshare` and `nsenter` run the command behind their options. */
const RUNS = 'while case $1 in -*) ;; *) false ;; esac; do shift; done; exec "$@"';
const WORKING = {
  unshare: RUNS,
  nsenter: RUNS,
  sh: 'exec /bin/sh "$@"',
  mount: "",
  ip: "",
  iptables: "",
  ss: "",
  true: "",
};
const BROKEN = "echo some detail >&2; echo the kernel has none >&2; exit 1";

function abilities(programs: Record<string, string>, isRoot = true) {
  for (const name of Object.keys(WORKING)) rmSync(join(path, name), { force: true });
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(path, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(path, name), 0o755);
  }
  const lines: string[] = [];
  const found = findAbilities((line) => lines.push(line), { isRoot, env: { PATH: path } });
  // Whether libfaketime is installed depends on the machine.
  found.delete("clocks");
  return { found: [...found], lines: lines.filter((line) => !line.includes("libfaketime")) };
}

test("A missing program leaves troubles out, in one line with the remedy", () => {
  const { iptables: _, ...without } = WORKING;
  const { found, lines } = abilities(without);
  assert.deepEqual(found, ["volumes", "network"]);
  assert.equal(
    lines[0],
    "not installed: iptables (apt-get install -y --no-install-recommends iptables): no half-open connections, no unreachable learner",
  );
});

test("A program that the kernel refuses leaves troubles out", () => {
  const { found, lines } = abilities({ ...WORKING, iptables: BROKEN });
  assert.deepEqual(found, ["volumes", "network"]);
  assert.equal(lines[0], "the kernel has none: no half-open connections, no unreachable learner");
});

test("`ss -K` that ends no connection leaves resets out", () => {
  const { found, lines } = abilities(WORKING);
  assert.deepEqual(found, ["volumes", "network", "filters"]);
  assert.deepEqual(lines, ["the kernel ignores ss -K: no connections that are reset"]);
});

test("Without root one line names all that is left out", () => {
  const { found, lines } = abilities(WORKING, false);
  assert.deepEqual(found, []);
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, /^not root: no full or read-only volumes, no network that is down, /);
});

test("Troubles strike only with what this machine can do", () => {
  const names = (...can: Ability[]) => localTroubles({} as LocalRun, new Set(can)).map(({ name }) => name);
  const always = names();
  const added = (...can: Ability[]) => names(...can).filter((name) => !always.includes(name));
  assert.deepEqual(added("volumes"), ["full volume", "read-only volume"]);
  assert.deepEqual(added("network"), ["network down"]);
  assert.deepEqual(added("filters"), ["half-open connections", "learner unreachable"]);
  assert.deepEqual(added("resets"), ["connections reset"]);
  assert.deepEqual(added("clocks"), ["clock forwards", "clock backwards"]);
});
