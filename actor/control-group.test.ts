import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { ControlGroup } from "./control-group.ts";

const folder = mkdtempSync(join(tmpdir(), "lr-groups-"));
after(() => rmSync(folder, { recursive: true }));

const MIB = 2 ** 20;
const LIMITS = { memoryBytes: 100 * MIB, filesBytes: 10 * MIB, processes: 7 };

/** A hierarchy on disk. `files`: files of groups, with their content. New groups get the files `made`. */
function hierarchy(files: Record<string, string>, membership: string, made: Record<string, string>) {
  const root = mkdtempSync(join(folder, "root-"));
  const fill = (base: string, content: Record<string, string>) => {
    for (const [path, text] of Object.entries(content)) {
      mkdirSync(join(base, path, ".."), { recursive: true });
      writeFileSync(join(base, path), text);
    }
  };
  fill(root, files);
  writeFileSync(join(root, "membership"), membership);
  const place = {
    root,
    membership: join(root, "membership"),
    mkdir: (path: string) => {
      mkdirSync(path);
      fill(path, made);
    },
  };
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const groupsIn = (path: string) => readdirSync(join(root, path)).filter((name) => name.startsWith("longrun-"));
  return { place, read, groupsIn, root };
}

const V2 = {
  "cgroup.procs": "",
  "memory.max": "max",
  "memory.current": String(30 * MIB),
  "pids.max": "max",
  "memory.events": "oom 1\noom_kill 2\n",
  "memory.swap.max": "max",
};
const parent = (path: string, enabled = "memory pids", max?: string) => ({
  [`${path}cgroup.procs`]: "1\n",
  [`${path}cgroup.controllers`]: "cpu memory pids\n",
  [`${path}cgroup.subtree_control`]: `${enabled}\n`,
  ...(max && { [`${path}memory.max`]: `${max}\n` }),
});

describe("version 2", () => {
  test("a group below the root of the hierarchy gets its limits, processes and kills through its files", () => {
    const { place, read, groupsIn } = hierarchy(parent(""), "0::/\n", V2);
    const group = ControlGroup.make(place)!;
    const [name] = groupsIn("");
    assert.match(name!, new RegExp(`^longrun-${process.pid}-`));
    assert.equal(group.version, 2);
    assert.ok(group.add(4711));
    assert.equal(read(`${name}/cgroup.procs`), "4711");
    group.start();
    group.limit(LIMITS);
    assert.equal(read(`${name}/memory.max`), String((30 + 100 + 10 + 256) * MIB));
    assert.equal(read(`${name}/memory.swap.max`), "0");
    assert.equal(read(`${name}/pids.max`), "12");
    assert.equal(group.oomKills(), 2);
  });

  test("the group is made beside a group without a limit, if the parent passes its controllers on", () => {
    const files = { ...parent("user/"), ...parent("user/session/", "", "max") };
    const { place, groupsIn } = hierarchy(files, "0::/user/session\n", V2);
    // The kernel refuses to delegate controllers from a group with processes; here the file simply stays unchanged.
    rmSync(join(place.root, "user/session/cgroup.subtree_control"));
    mkdirSync(join(place.root, "user/session/cgroup.subtree_control"));
    assert.ok(ControlGroup.make(place));
    assert.equal(groupsIn("user").length, 1);
    assert.equal(groupsIn("user/session").length, 0);
  });

  test("the actor never leaves a group that has a limit", () => {
    const files = { ...parent("user/"), ...parent("user/session/", "", "1000") };
    const { place, groupsIn, root } = hierarchy(files, "0::/user/session\n", V2);
    rmSync(join(root, "user/session/cgroup.subtree_control"));
    mkdirSync(join(root, "user/session/cgroup.subtree_control"));
    assert.equal(ControlGroup.make(place), undefined);
    assert.equal(groupsIn("user").length, 0);
  });

  const without: [string, Record<string, string>, string][] = [
    [
      "no controllers, as beside version 1",
      { "cgroup.procs": "", "cgroup.controllers": "\n", "cgroup.subtree_control": "\n" },
      "0::/\n",
    ],
    ["no control groups at all", {}, "0::/\n"],
    ["a membership that cannot be read", {}, "nonsense\n"],
  ];
  for (const [name, files, membership] of without)
    test(`no group is made on a machine with ${name}`, () =>
      assert.equal(ControlGroup.make(hierarchy(files, membership, V2).place), undefined));
});

test("version 1 has one group for memory and one for pids", () => {
  const files = { "memory/a/cgroup.procs": "", "pids/cgroup.procs": "" };
  const made = {
    "memory.limit_in_bytes": "9",
    "memory.usage_in_bytes": "0",
    "memory.oom_control": "under_oom 0\noom_kill 3\n",
    "pids.max": "max",
  };
  const { place, read, groupsIn } = hierarchy(files, "4:memory:/a\n8:pids:/\n0::/\n", made);
  const group = ControlGroup.make(place)!;
  assert.equal(group.version, 1);
  group.limit(LIMITS);
  assert.equal(read(`memory/a/${groupsIn("memory/a")[0]}/memory.limit_in_bytes`), String((100 + 10 + 256) * MIB));
  assert.equal(read(`pids/${groupsIn("pids")[0]}/pids.max`), "12");
  assert.equal(group.oomKills(), 3);
});

test("the groups of dead actors are removed, the groups of living actors stay", async () => {
  const ended = spawn("true");
  await new Promise((resolve) => ended.once("exit", resolve));
  const { place, root } = hierarchy(parent(""), "0::/\n", V2);
  mkdirSync(join(root, `longrun-${ended.pid}-x`));
  mkdirSync(join(root, "longrun-1-x"));
  ControlGroup.make(place);
  assert.equal(existsSync(join(root, `longrun-${ended.pid}-x`)), false);
  assert.equal(existsSync(join(root, "longrun-1-x")), true);
});

test("a process that exceeds its group's memory on this machine is killed and counted", async (context) => {
  const group = ControlGroup.make();
  if (!group) return context.skip("no control group can be made here: needs root or a delegated group");
  try {
    using hog = spawn("python3", [
      "-c",
      "import sys; sys.stdin.read(1); x = bytearray(b'x') * (400 << 20); print('BREACH')",
    ]);
    assert.ok(group.add(hog.pid!));
    group.limit({ memoryBytes: 50 * MIB, filesBytes: 0, processes: 4 });
    hog.stdin.end("x");
    const [status, signal] = await new Promise<[number | null, string | null]>((resolve) =>
      hog.once("exit", (code, by) => resolve([code, by])),
    );
    assert.deepEqual([status, signal], [null, "SIGKILL"]);
    assert.ok(group.oomKills() >= 1);
  } finally {
    group.remove();
  }
});
