/** Limits one learner's costs for the controller and the API server, whatever it sends. */
import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeObject } from "../../controller/operator/kube/types.ts";
import { STATUS_BURST, STATUS_REFILL_SECONDS, STATUS_SECONDS } from "../../controller/operator/status/status-writes.ts";
import { startFlood } from "./flooding-learner.ts";
import { Phase } from "./simulated-learner.ts";
import { answers as answersIn, skip, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

/** Lets the world's controller user elect a leader in this namespace. */
async function allowLeases(namespace: string): Promise<void> {
  const rbac = { group: "rbac.authorization.k8s.io", version: "v1", namespaced: true };
  const metadata = { namespace, name: "leases" };
  await world.client.create({ ...rbac, plural: "roles", kind: "Role" }, {
    metadata,
    rules: [{ apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create", "get", "patch"] }],
  } as KubeObject);
  await world.client.create({ ...rbac, plural: "rolebindings", kind: "RoleBinding" }, {
    metadata,
    roleRef: { apiGroup: rbac.group, kind: "Role", name: "leases" },
    subjects: [{ apiGroup: rbac.group, kind: "User", name: "controller" }],
  } as KubeObject);
}

let namespace: string;
/** Learners that are dialled instead of the simulated one. */
const floods = new Map<string, string>();
let lost: string | undefined;

useWorld({
  controller: false,
  ready: async () => {
    namespace = await world.namespace();
    await allowLeases(namespace);
    await world.operator({
      ...{ qps: 50, burst: 100 },
      // A busy machine may give the whole process no time for seconds, which is no fault of the controller.
      lease: { namespace, leaseSeconds: 15, renewSeconds: 12, retrySeconds: 0.5 },
      onLost: (why) => {
        lost = why;
      },
      dial: async (key) => {
        const address = floods.get(key) ?? world.learners.get(key)?.address;
        if (!address) throw new Error("connection refused");
        return { address, close() {} };
      },
    });
  },
});

describe("status traffic", { skip, concurrency: 1 }, () => {
  let flooding: { address: string; stop(): void }[] = [];
  afterEach(() => {
    for (const { stop } of flooding.splice(0)) stop();
  });

  const answers = (name: string) => answersIn(namespace, name);
  const statusWrites = (name: string, from: number) =>
    world.writes(namespace, from).filter((it) => it.subresource === "status" && it.name === name);
  const converges = (name: string) =>
    eventually(async () => {
      const from = world.auditLength();
      await sleep(1500);
      return statusWrites(name, from).length === 0;
    });

  test("A learner that flips its phase 200 times a second causes few writes, and its end is seen at once", async () => {
    await world.createRun(namespace, "flips");
    const learner = await answers("flips");
    await converges("flips");
    const from = world.auditLength();
    const startedMs = performance.now();
    while (performance.now() - startedMs < 8000) {
      learner.say({ phase: Phase.FINAL_EVALUATION });
      await sleep(5);
      learner.say({ phase: Phase.EXECUTING });
      await sleep(5);
    }
    const seconds = (performance.now() - startedMs) / 1000;
    const { length } = statusWrites("flips", from);
    assert.ok(length >= 4, `${length} writes: it is followed`);
    assert.ok(length <= STATUS_BURST + seconds / STATUS_REFILL_SECONDS + 1, `${length} writes in ${seconds} s`);
    const endedMs = performance.now();
    learner.say({ phase: Phase.FAILED_RUN, message: "the disk is full" });
    await eventually(async () => (await world.status(namespace, "flips")).phase === "Failed");
    assert.ok(performance.now() - endedMs < 1500, `${performance.now() - endedMs} ms until the end was seen`);
  });

  test("Counts are written at intervals, and a new phase at once", async () => {
    await world.createRun(namespace, "counts");
    const learner = await answers("counts");
    await converges("counts");
    const from = world.auditLength();
    const startedMs = performance.now();
    for (let completed = 1; performance.now() - startedMs < 8000; completed++) {
      learner.say({ executions: { completed } });
      await sleep(100);
    }
    assert.ok(statusWrites("counts", from).length <= 1 + 8 / STATUS_SECONDS, "counts");
    const saidMs = performance.now();
    learner.say({ phase: Phase.FINAL_EVALUATION });
    await eventually(async () => (await world.status(namespace, "counts")).phase === "Evaluating");
    assert.ok(performance.now() - saidMs < 1500, `${performance.now() - saidMs} ms until the phase was seen`);
  });

  for (const [what, bytes] of [
    ["long statuses", 900_000],
    ["statuses that are too long", 3_000_000],
    ["short statuses", 10],
  ] as const)
    test(`The controller renews its lease and serves other runs while learners flood it with ${what}`, async () => {
      const names = [0, 1, 2].map((i) => `flood-${bytes}-${i}`);
      const other = `other-${bytes}`;
      for (const name of [...names, other]) await world.createRun(namespace, name);
      for (const name of [...names, other]) await answers(name);
      flooding = await Promise.all(names.map((name) => startFlood(world.client, namespace, name, bytes)));
      for (const [i, { address }] of flooding.entries()) floods.set(`${namespace}/${names[i]}`, address);
      for (const name of names) world.learner(namespace, name).stop(); // the controller then dials the flood
      await sleep(2000);

      let longestMs = 0;
      let lastMs = performance.now();
      const beat = setInterval(() => {
        longestMs = Math.max(longestMs, performance.now() - lastMs);
        lastMs = performance.now();
      }, 10);
      const from = world.auditLength();
      const learner = await answers(other);
      await sleep(6000);
      const startedMs = performance.now();
      await world.patchRun(namespace, other, { suspend: true });
      await eventually(() => learner.suspended.length === 1);
      const suspendMs = performance.now() - startedMs;
      clearInterval(beat);

      const renewals = world.controlPlane
        .audit()
        .slice(from)
        .filter(({ resource }) => resource.endsWith("/leases"));
      assert.ok(renewals.length >= 2, `${renewals.length} renewals`);
      assert.equal(lost, undefined);
      assert.ok(longestMs < 1000, `the thread was busy for ${longestMs} ms`);
      assert.ok(suspendMs < 2000, `${suspendMs} ms until the learner was told to suspend`);
      const writes = names.map((name) => statusWrites(name, from).length);
      assert.ok(Math.max(...writes) <= STATUS_BURST + 5, `${writes} writes`);
      for (const name of names)
        await world.patchRun(namespace, name, { suspend: true, learner: { checkpoint: { waitSeconds: 0.1 } } });
    });
});
