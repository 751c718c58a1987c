import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { describeIsolation, layersOf } from "./layers.ts";
import type { SandboxInfo } from "./zygote-messages.ts";

const laptop: SandboxInfo = {
  ...{ level: "namespaces", landlockAbi: 7, ownUser: true, procMounted: true, processesCounted: true, controlGroup: 2 },
  ...{ versions: {}, packages: {}, warm: [], gpus: [], residentBytes: 0 },
};
const pod: SandboxInfo = {
  ...{ level: "landlock", landlockAbi: 7, ownUser: false, procMounted: false, processesCounted: false },
  versions: {},
  packages: {},
  warm: [],
  gpus: [],
  residentBytes: 0,
  directory: "/sandbox",
  memoryBytes: 2 ** 30,
};

describe("missing layers", () => {
  const cases: [string, SandboxInfo, string[]][] = [
    ["root on a new kernel", laptop, []],
    ["no root", { ...laptop, ownUser: false, controlGroup: undefined }, ["ownUser", "controlGroup"]],
    ["no Landlock", { ...laptop, landlockAbi: 0 }, ["landlock"]],
    ["Landlock ABI 1", { ...laptop, landlockAbi: 1 }, ["landlockTruncate", "landlockTcp", "landlockScopes"]],
    ["Landlock ABI 4", { ...laptop, landlockAbi: 4 }, ["landlockScopes"]],
    ["an old kernel", { ...laptop, procMounted: false, processesCounted: false }, ["processCount", "proc"]],
    ["a pod", pod, ["namespaces"]],
    ["a pod without a memory limit", { ...pod, memoryBytes: undefined }, ["namespaces", "controlGroup"]],
    ["no isolation: the level says it", { ...laptop, level: "none" }, []],
  ];
  for (const [name, info, missing] of cases)
    test(`${name} lacks [${missing}]`, () => assert.deepEqual(layersOf(info).missing, missing));
});

test("one line names the applied layers, the missing layers and their meaning", () => {
  const all = "namespaces + own user + control group (v2) + rlimits + no capabilities + Landlock ABI 7 + seccomp";
  assert.equal(describeIsolation(laptop), `namespaces: ${all}; nothing is missing`);
  assert.match(
    describeIsolation(pod),
    /^landlock: own container \+ .*seccomp; missing: namespaces \(programs have one process/,
  );
  assert.match(describeIsolation({ ...laptop, level: "none" }), /^NO ISOLATION/);
});
