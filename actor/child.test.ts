/**
 * The sandbox makes a child before it knows the program, for the task and the scratch directory of the last program. Each program must get
 * its own task and scratch directory.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { descendants } from "./descendants.fixture.ts";
import { execute } from "./execution.ts";
import { ForkServer } from "./fork-server.ts";
import { encodeFrame } from "./frames.ts";
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
  test(`a program gets its own task, limits and seed after another program ran in the same sandbox, at ${level}`, async (context) => {
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
        ["first", 8, 40, 2], // a time limit and a seed need no new child
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

test("a program at namespaces sees none of the zygote's mounts: no other /proc below its own, no other scratch", async (context) => {
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
    const cover = /^\/proc\/[^/]+$/; // procfs.py
    assert.deepEqual(
      own.filter((place) => !cover.test(place)),
      ["/proc", "/space", "/space/scratch/input"],
      result.detail,
    );
  } finally {
    await sandbox.stop();
  }
});

test("at namespaces /proc/meminfo shows the memory that the program may use, also if the next one may use more", async (context) => {
  const sandbox = await Sandbox.start({
    python,
    space: join(folder, "meminfo"),
    inputs,
    level: "namespaces",
    warm: [],
  }).catch((error: Error) => error.message);
  if (typeof sandbox === "string") return context.skip(sandbox);
  try {
    if (!sandbox.info.procMounted) return context.skip("programs have no /proc here");
    const program = Buffer.from(`print(open("/proc/meminfo").readline().split()[1])`);
    for (const mebibytes of [256, 300, 300]) {
      const limits = { ...DEFAULT_LIMITS, memoryBytes: mebibytes * MEBIBYTE };
      const result = await execute(sandbox, { task: "first", program, nonce: "", limits, seed: 0 });
      assert.equal(Number(result.terminalOutput.toString()) * 1024, limits.memoryBytes, result.detail);
    }
  } finally {
    await sandbox.stop();
  }
});

/** Prints more than all buffers hold, so that it waits, while its children take 40 MiB of memory every 50 ms. */
const GROWS_WHILE_IT_PRINTS = `
import os, time
for number in range(30):
    if os.fork() == 0:
        time.sleep(0.05 * number)
        kept = bytearray(40 << 20)
        time.sleep(60)
while True:
    os.write(1, b"x" * 65536)
`;

test("the zygote goes on watching its program while the supervisor is busy and reads nothing", async (context) => {
  // Without a control group, which would end the program by itself.
  const server = ForkServer.use({ python, warm: [], severalProcesses: true });
  const { pid, control } = await server.fork(60);
  try {
    const config = { level: "namespaces", inputs, space: join(folder, "busy"), cpus: [], cpusPerSlot: 1, warm: [] };
    control.write(encodeFrame("C", JSON.stringify(config)));
    const [hello] = (await once(control, "data")) as [Buffer];
    if (hello.includes('"error"')) return context.skip(hello.toString("latin1", 5));
    control.pause();
    const limits = { ...DEFAULT_LIMITS, memoryBytes: 1024 * MEBIBYTE, timeoutSeconds: 60 };
    const program = Buffer.from(GROWS_WHILE_IT_PRINTS);
    const header = { task: "first", limits, seed: 0, nonceBytes: 0, programBytes: program.length };
    control.write(Buffer.concat([encodeFrame("R", JSON.stringify(header)), program]));
    const processes = () => descendants(pid).length;
    const until = async (seconds: number, holds: () => boolean) => {
      for (let waited = 0; waited < seconds && !holds(); waited += 0.01) await sleep(10);
      return holds();
    };
    assert.ok(await until(20, () => processes() > 25), "it begins");
    assert.ok(await until(30, () => processes() < 5), `it runs on as long as nobody reads: ${processes()} processes`);
  } finally {
    control.destroy();
    server.leave();
  }
});
