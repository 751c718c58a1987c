/** Tests how a sandbox reads the limits of its container, and how it keeps programs below the memory limit. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Sandbox } from "./sandbox.ts";
import { Sidecar } from "./sidecar.fixture.ts";
import { environment, folder, inputs, run } from "./small-task.fixture.ts";

describe("the container's memory limit", () => {
  let group: string | undefined;
  before(() => {
    group = memoryGroup(700 << 20);
  });
  after(() => group && rmdirSync(group));

  test("a program is killed before it fills the container, also if its own limit is higher", async (context) => {
    if (!group) return context.skip("no control group can be made: needs root and a writable memory controller");
    const sidecar = new Sidecar({ environment, warm: ["numpy"], controlGroup: group });
    try {
      if (!sidecar.contained) return context.skip("needs root and namespaces");
      await sidecar.listening();
      const sandbox = await Sandbox.start({ socket: sidecar.socket, inputs, level: "landlock", startSeconds: 20 });
      const { memoryBytes = 0 } = sandbox.info;
      assert.ok(memoryBytes > 300 << 20 && memoryBytes < 700 << 20, `${memoryBytes}`);
      const { pid } = sidecar;
      // bytes, not bytearray: if memory is short for a bytearray's content, CPython 3.11 prints a line of its own ("deallocated bytearray
      // object has exported buffers", a field that was never set), up to 4 MiB in 3 s if the watch is late.
      const stubborn = `
kept = []
while True:
    try: kept.append(b"x" * (4 << 20))
    except MemoryError: pass`;
      for (const program of ["kept = []\nwhile True: kept.append(b'x' * (16 << 20))", stubborn]) {
        const result = await run(sandbox, program, { memoryBytes: 8 * 2 ** 30, timeoutSeconds: 3 });
        assert.ok(["outOfMemory", "timedOut"].includes(result.outcome), `${result.outcome} ${result.detail}`);
        assert.ok(result.peakMemoryBytes > memoryBytes / 2 && result.peakMemoryBytes < 700 << 20);
      }
      assert.equal(sidecar.pid, pid);
      assert.ok(sandbox.alive, "the kernel killed the container");
      await sandbox.stop();
    } finally {
      await sidecar.stop();
    }
  });

  test("a sandbox in a container that is too small for programs is refused with the setting to raise", async (context) => {
    const small = memoryGroup(80 << 20);
    if (!small) return context.skip("no control group can be made");
    const sidecar = new Sidecar({ environment, warm: [], controlGroup: small });
    try {
      if (!sidecar.contained) return context.skip("needs root and namespaces");
      await sidecar.listening();
      const start = Sandbox.start({ socket: sidecar.socket, inputs, level: "landlock", startSeconds: 20 });
      await assert.rejects(start, /memory limit of 80 MiB leaves programs .*raise it \(spec.actors.sandboxResources\)/);
    } finally {
      await sidecar.stop();
      rmdirSync(small);
    }
  });

  const cgroup = (files: Record<string, string>, membership: string, expression: string) => {
    const root = mkdtempSync(join(folder, "cgroup-"));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(root, path, ".."), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    writeFileSync(join(root, "membership"), membership);
    const code = `
import sys; sys.path.insert(0, ${JSON.stringify(join(import.meta.dirname, "sandbox"))})
import cgroup; cgroup.ROOT, cgroup.MEMBERSHIP = ${JSON.stringify(root)}, ${JSON.stringify(join(root, "membership"))}
cgroup.RESERVE_BYTES = cgroup.RESERVE_SHARE = 0
print(${expression})`;
    return spawnSync(join(environment, "bin", "python"), ["-B", "-c", code], { encoding: "utf8" });
  };
  const stat2 = "anon 10\nfile 900\nshmem 5\nkernel_stack 1\npagetables 2\nslab_unreclaimable 3\nsock 4\n";
  const cases: [string, Record<string, string>, string, string, string][] = [
    [
      "v2",
      { "memory.max": "1000\n", "memory.stat": stat2 },
      "0::/\n",
      "cgroup.memory_for_programs(100)",
      "(875, 1000)",
    ],
    [
      "v2 below",
      { "a/memory.max": "1000\n", "a/memory.stat": stat2 },
      "0::/a\n",
      "cgroup.memory_for_programs(0)[1]",
      "1000",
    ],
    ["v2 without a limit", { "memory.max": "max\n" }, "0::/\n", "cgroup.memory_for_programs(0)", "None"],
    [
      "v1, seen as the root",
      { "memory/memory.limit_in_bytes": "1000\n", "memory/memory.stat": "cache 900\nrss 10\nshmem 5\n" },
      "4:memory:/kubepods/x\n0::/\n",
      "cgroup.memory_for_programs(100)",
      "(885, 1000)",
    ],
    [
      "v1 without a limit",
      { "memory/memory.limit_in_bytes": "9223372036854771712\n" },
      "4:memory:/\n0::/\n",
      "cgroup.memory_for_programs(0)",
      "None",
    ],
    ["no control group", {}, "0::/\n", "cgroup.memory_for_programs(0), cgroup.cpus()", "None None"],
    ["v2 processors", { "cpu.max": "350000 100000\n" }, "0::/\n", "cgroup.cpus()", "3"],
    ["v2 part of one", { "cpu.max": "50000 100000\n" }, "0::/\n", "cgroup.cpus()", "1"],
    ["v2 all of them", { "cpu.max": "max 100000\n" }, "0::/\n", "cgroup.cpus()", "None"],
    [
      "v1 processors",
      { "cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n" },
      "3:cpu,cpuacct:/x\n",
      "cgroup.cpus()",
      "2",
    ],
    ["v1 all of them", { "cpu/cpu.cfs_quota_us": "-1\n" }, "3:cpu:/x\n", "cgroup.cpus()", "None"],
  ];
  for (const [name, files, membership, expression, expected] of cases)
    test(`the sandbox reads the limits of its control group: ${name}`, () => {
      const { stdout, stderr } = cgroup(files, membership, expression);
      assert.equal(stdout.trim(), expected, stderr);
    });
});

/** Makes a control group with that limit, if this machine allows it. */
function memoryGroup(bytes: number): string | undefined {
  for (const [root, file] of [
    ["/sys/fs/cgroup/memory", "memory.limit_in_bytes"],
    ["/sys/fs/cgroup", "memory.max"],
  ] as const)
    try {
      const path = mkdtempSync(join(root, "lr-test-"));
      try {
        chmodSync(path, 0o755);
        if (!existsSync(join(path, file))) throw new Error("no such controller");
        writeFileSync(join(path, file), String(bytes));
        return path;
      } catch {
        rmdirSync(path);
      }
    } catch {
      // Not possible on this machine.
    }
  return undefined;
}
