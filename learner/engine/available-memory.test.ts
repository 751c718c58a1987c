import assert from "node:assert/strict";
import { test } from "node:test";
import { gpuMemory, hostMemory, leastGpuMemory } from "./available-memory.ts";
import { GB, gpus } from "./plan.fixture.ts";

test("the available memory is the container's limit or the free memory, whichever is less", () => {
  const machine = { limitBytes: 0, freeBytes: 5 * GB, nvidiaSmi: () => "81000\n" };
  assert.deepEqual(hostMemory(machine), { bytes: 5 * GB, source: "free on this machine" });
  assert.equal(hostMemory({ ...machine, limitBytes: 2 * GB }).source, "the container's limit");
  assert.equal(hostMemory({ ...machine, limitBytes: 2 ** 63 }).bytes, 5 * GB);
  const asked: string[][] = [];
  const smi = { ...machine, nvidiaSmi: (args: string[]) => String(asked.push(args) && 81000) };
  assert.deepEqual(gpuMemory({ kind: "cuda", id: 1 }, smi), { bytes: 81000 * 2 ** 20, source: "free on cuda:1" });
  assert.ok(asked[0]!.includes("--id=1"));
  const none = () => {
    throw new Error("ENOENT");
  };
  assert.equal(gpuMemory({ kind: "cuda", id: 0 }, { ...machine, nvidiaSmi: none }), undefined);
  const free: Record<string, number> = { "--id=0": 81000, "--id=1": 40000, "--id=2": 81000 };
  const each = { ...machine, nvidiaSmi: (args: string[]) => String(free[args.at(-1)!]) };
  assert.deepEqual(leastGpuMemory(gpus(3), each), { bytes: 40000 * 2 ** 20, source: "free on cuda:1" });
  assert.equal(leastGpuMemory(gpus(4), each), undefined, "of one it is not known");
});
