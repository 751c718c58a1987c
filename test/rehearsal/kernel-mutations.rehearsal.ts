/** Each fault that kernel-mutations.ts puts into a kernel or a launch is noticed. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import test from "node:test";
import { MUTATIONS } from "./kernel-mutations.ts";

const SCRIPT = path.join(import.meta.dirname, "kernel-mutations.ts");
/** Goals are 20; a change of PTX that leaves fewer would be noticed. */
const LEAST = 20;

type Line = { begins: number } | { at: number; noticed: string[] };

test("Each of the faults put into PTX and into launches is noticed", () => {
  assert.ok(MUTATIONS.length >= LEAST);
  const noticed = new Map<number, string[]>();
  for (let from = 0; from < MUTATIONS.length; ) {
    const { stdout, stderr, status } = spawnSync(process.execPath, [SCRIPT, String(from)], { encoding: "utf8" });
    const lines = stdout
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line): Line => JSON.parse(line));
    for (const line of lines) if ("at" in line) noticed.set(line.at, line.noticed);
    if (status === 0) break;
    const last = lines.at(-1);
    assert.ok(last && "begins" in last && last.begins >= from, `a case fails without a mutation: ${stderr}`);
    const [reason = ""] = stderr.split("\n").filter((line) => line.startsWith("rehearsal: "));
    assert.notEqual(reason, "", `${MUTATIONS[last.begins]!.name}: ${stderr}`); // not the stand-in, which ends the process with a reason
    noticed.set(last.begins, [reason]);
    from = last.begins + 1;
  }
  const missed = MUTATIONS.filter((_, at) => !noticed.get(at)?.length).map(({ name, kernel }) => `${kernel}: ${name}`);
  assert.deepEqual(missed, []);
});
