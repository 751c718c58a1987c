/** A child is made before its program is known, for a task and a scratch directory like the last one's: every program has its own. */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { descendants } from "./descendants.fixture.ts";
import { execute } from "./execution.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { ensurePythonEnvironment } from "./python-env.ts";
import { Sandbox } from "./sandbox.ts";

const folder = mkdtempSync(join(tmpdir(), "lr-child-"));
chmodSync(folder, 0o755);
after(() => rmSync(folder, { recursive: true, force: true }));
const { python } = await ensurePythonEnvironment();
const inputs: Record<string, string> = {};
for (const task of ["first", "second"]) {
  inputs[task] = join(folder, task);
  mkdirSync(inputs[task]);
  writeFileSync(join(inputs[task], `${task}.csv`), "");
}

const MEBIBYTE = 2 ** 20;
const LOOK = `
import os, random, resource
held = os.statvfs(".")
files = os.listdir("input") if os.path.exists("input") else []
print(files, held.f_blocks * held.f_frsize >> 20, resource.getrlimit(resource.RLIMIT_CPU)[0], random.random() == expected)
open("left", "w").close()
`;

for (const level of ["namespaces", "landlock"] as const)
  test(`whatever the last one was, a program has its own task, limits and seed, at ${level}`, async (context) => {
    const sandbox = await Sandbox.start({ python, space: join(folder, level), inputs, level, warm: [] }).catch(
      (error: Error) => error.message,
    );
    if (typeof sandbox === "string") return context.skip(sandbox);
    try {
      const run = async (task: string, megabytes: number, timeoutSeconds: number, seed: number) => {
        const limits = { ...DEFAULT_LIMITS, scratchBytes: megabytes * MEBIBYTE, timeoutSeconds, processes: 1 };
        const program = Buffer.from(`import random\nexpected = random.Random(${seed}).random()\n${LOOK}`);
        const result = await execute(sandbox, { task, program, nonce: "", limits, seed });
        assert.equal(result.outcome, "completed", `${result.detail} ${result.terminalOutput}`);
        return result.terminalOutput.toString().trim();
      };
      const size = (megabytes: number, told: string) => (level === "namespaces" ? megabytes : told.split(" ")[1]);
      const processes: number[] = [];
      for (const [task, megabytes, seconds, seed] of [
        ["first", 8, 30, 1],
        ["first", 8, 30, 1],
        ["first", 8, 40, 2], // a time limit and a seed belong to no place
        ["second", 8, 40, 2],
        ["second", 16, 40, 2],
        ["first", 8, 30, 3],
        ["none", 8, 30, 3],
        ["first", 8, 30, 3],
      ] as const) {
        const told = await run(task, megabytes, seconds, seed);
        const files = task === "none" ? "" : `'${task}.csv'`;
        assert.equal(told, `[${files}] ${size(megabytes, told)} ${seconds + 10} True`);
        processes.push(descendants(sandbox.pid!).length);
      }
      assert.deepEqual(new Set(processes).size, 1, `one child waits, never more: ${processes}`);
    } finally {
      await sandbox.stop();
    }
  });

test("of the zygote's mounts a program at namespaces has none: no other /proc below its own, no other scratch", async (context) => {
  const sandbox = await Sandbox.start({
    python,
    space: join(folder, "mounts"),
    inputs,
    level: "namespaces",
    warm: [],
  }).catch((error: Error) => error.message);
  if (typeof sandbox === "string") return context.skip(sandbox);
  try {
    if (!sandbox.info.procMounted) return context.skip("programs have no /proc here to see their mounts in");
    const program = Buffer.from(`print(*(line.split()[4] for line in open("/proc/self/mountinfo")))`);
    const result = await execute(sandbox, { task: "first", program, nonce: "", limits: DEFAULT_LIMITS, seed: 0 });
    const mounts = result.terminalOutput.toString().trim().split(" ");
    const own = mounts.filter((place) => /^\/(proc|space|\.zygote)/.test(place)).sort();
    assert.deepEqual(own, ["/proc", "/space", "/space/scratch/input"], result.detail);
  } finally {
    await sandbox.stop();
  }
});
