/** Tests runs whose learner fails, waits or has no room, on a real API server: spec.failurePolicy. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "../../controller/operator/kube/errors.ts";
import { DEPLOYMENT, POD } from "../../controller/operator/kube/resources.ts";
import type { ConditionType } from "../../controller/operator/status/conditions.ts";
import { setSuspended } from "../../controller/plugin/changes.ts";
import type { Cluster } from "../../controller/plugin/cluster.ts";
import { receive } from "./receiver.ts";
import { Phase } from "./simulated-learner.ts";
import { answers, conditionOf, hasEvent, restartOperator, skip, start, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

/** Namespaces whose learners are down. */
const down = new Set<string>();

useWorld({
  ready: () => {
    world.mute = (pod) => down.has(pod.metadata.namespace!);
  },
});

const condition = async (namespace: string, type: ConditionType) => (await conditionOf(namespace, type))!;
const status = (namespace: string) => world.status(namespace, "run");
const replicas = async (namespace: string) => (await world.deployment(namespace, "run"))?.spec?.replicas;

async function learnerPod(namespace: string): Promise<string> {
  const [pod] = await eventually(async () => {
    const pods = (await world.podsOf(namespace, "run", "learner")).filter((it) => !it.metadata.deletionTimestamp);
    return pods.length > 0 && pods;
  });
  return pod!.metadata.name;
}

async function patchContainer(namespace: string, container: object, pod?: string): Promise<void> {
  const containerStatuses = [{ name: "learner", image: "", imageID: "", ready: false, ...container }];
  const place = { namespace, name: pod ?? (await learnerPod(namespace)) };
  await world.client.mergePatch(
    POD,
    place,
    { status: { phase: "Running", containerStatuses } },
    { subresource: "status" },
  );
}

/** Ends the container as the kubelet reports it: at once, then while it backs off. @param end how many ended before */
async function crash(namespace: string, end: number, exitCode: number, message = "why", reason = "Error") {
  down.add(namespace);
  const terminated = { exitCode, reason, message, finishedAt: new Date().toISOString() };
  const pod = await learnerPod(namespace);
  await patchContainer(namespace, { restartCount: end, state: { terminated } }, pod);
  const waiting = { state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated } };
  await patchContainer(namespace, { restartCount: end, ...waiting }, pod).catch((error) => {
    // Without retries the run may have failed meanwhile, and its pod may be deleted.
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  });
  return terminated;
}

/** Restarts the container like the kubelet. */
async function restart(namespace: string, ends: number, terminated: object) {
  const startedAt = new Date().toISOString();
  await patchContainer(namespace, {
    ...{ restartCount: ends, ready: true, started: true },
    state: { running: { startedAt } },
    lastState: { terminated },
  });
  down.delete(namespace);
}

const iterationLine = (iteration: number) =>
  JSON.stringify({
    iteration,
    lineage: 1,
    elapsedSeconds: 60,
    meanScore: 900,
    validFraction: 1,
    meanDurationSeconds: 2,
  });

const cluster = (namespace: string) =>
  ({ client: world.client, namespace, signal: new AbortController().signal }) as unknown as Cluster;

describe("The failures of a learner", { skip, concurrency: 5 }, () => {
  test("The condition of a learner without actors says since when it waits, for how much, and why", async () => {
    const { namespace, learner } = await start({ actors: { autoscaling: "External", replicas: 0, min: 0 } });
    const blockedSinceUnixMs = Date.UTC(2026, 10, 23, 8);
    learner.work(12);
    learner.say({ phase: Phase.EXECUTING, blocked: "NoActors", blockedSinceUnixMs });
    const progressing = await eventually(async () => {
      const found = await condition(namespace, "Progressing");
      return found?.reason === "NoResults" && found;
    });
    assert.equal(
      progressing.message,
      "no actor is connected to the learner since 2026-11-23T08:00:00Z: 12 executions are queued; no actor is requested (spec.actors)",
    );
    assert.equal((await condition(namespace, "Failed")).status, "False");
    await world.patchRun(namespace, "run", { actors: { replicas: 1 } });
    await eventually(async () => (await status(namespace)).actors?.running === 1);
    learner.say({ blocked: "", blockedSinceUnixMs: 0 });
    await eventually(async () => (await condition(namespace, "Progressing")).status === "True");
  });

  test("The controller counts each failure once, resets the count with progress, and ends the run after too many", async (t) => {
    const { url, received } = await receive(t);
    const { namespace, learner } = await start({
      failurePolicy: { retries: 2 },
      notifications: { webhook: { url } },
      ttlSecondsAfterFinished: 3600,
    });
    learner.say({ iteration: 6, iterationJson: iterationLine(5) });
    await eventually(async () => (await status(namespace)).iteration === 5);

    const first = await crash(namespace, 0, 74, "EIO: i/o error, write");
    const crashing = await eventually(async () => {
      const found = await condition(namespace, "LearnerAvailable");
      return found.reason === "LearnerCrashing" && found;
    });
    assert.match(
      crashing.message,
      /^the learner ended with status 74 \(EIO: i\/o error, write\) and starts again from its newest checkpoint, failure 1 of the 2 that/,
    );
    await restart(namespace, 1, first);
    const again = await answers(namespace);
    const { podUid, ...failures } = (await status(namespace)).failures!;
    assert.match(podUid!, /^[0-9a-f-]{36}$/);
    assert.deepEqual(failures, {
      ...{ count: 1, class: "Infrastructure", iteration: 5, podEnds: 1 },
      message: "the learner ended with status 74 (EIO: i/o error, write)",
      lastFailureTime: first.finishedAt.replace(/\.\d+Z/, "Z"),
    });
    const second = await crash(namespace, 1, 71, "CUDA failure 2: out of memory");
    await eventually(async () => (await status(namespace)).failures?.count === 2);
    await restartOperator();
    await restart(namespace, 2, second);
    await sleep(1000);
    assert.equal((await status(namespace)).failures?.count, 2, "a restarted controller counts no failure twice");

    // Progress resets the count.
    (await answers(namespace)).say({ iteration: 7, iterationJson: iterationLine(6) });
    assert.notEqual(again, world.learners.get(`${namespace}/run`));
    await eventually(async () => (await status(namespace)).failures?.count === 0);

    let before: object = second;
    for (const end of [2, 3]) {
      before = await crash(namespace, end, 137, "", "OOMKilled");
      await eventually(async () => (await status(namespace)).failures?.count === end - 1);
      await restart(namespace, end + 1, before);
      await answers(namespace);
    }
    assert.equal((await condition(namespace, "Failed")).status, "False");
    await crash(namespace, 4, 137, "", "OOMKilled");
    const failed = await eventually(async () => {
      const found = await condition(namespace, "Failed");
      return found.status === "True" && found;
    });
    assert.equal(failed.reason, "Resource");
    assert.match(
      failed.message,
      /^the learner failed 3 times without finishing an iteration, the last time it was killed for memory; .*kubectl longrun resume run/,
    );
    const { phase, completionTime } = await status(namespace);
    assert.equal(phase, "Failed");
    assert.ok(completionTime);
    const succeeded = await condition(namespace, "Succeeded");
    assert.deepEqual([succeeded.status, succeeded.reason, succeeded.message], ["False", "RunFailed", failed.message]);
    await hasEvent(namespace, /^RunFailed: the learner failed 3 times/);
    await eventually(async () => (await replicas(namespace)) === 0);
    await eventually(async () => (await status(namespace)).notification?.state === "Delivered");

    // A failed run trains no more, even with a working learner.
    down.delete(namespace);
    await world.client.mergePatch(DEPLOYMENT, { namespace, name: "run-learner" }, { spec: { replicas: 1 } });
    await hasEvent(namespace, /^Repaired: Deployment run-learner/);
    await eventually(async () => (await replicas(namespace)) === 0);
    assert.deepEqual([(await status(namespace)).phase, (await status(namespace)).iteration], ["Failed", 6]);

    // Resumed, by one command.
    const said: string[] = [];
    const options = { wait: true, timeoutSeconds: 60, say: (line: string) => void said.push(line) };
    await setSuspended(cluster(namespace), "run", false, options);
    assert.match(
      said.join("\n"),
      /^run has failed: .*\nrun continues from its newest checkpoint\nthe learner answers$/,
    );
    const resumed = await status(namespace);
    assert.deepEqual(
      [resumed.phase, resumed.completionTime, resumed.notification, resumed.failures?.count],
      ["Running", undefined, undefined, 0],
    );
    assert.equal((await condition(namespace, "Failed")).status, "False");
    assert.equal((await condition(namespace, "Succeeded")).status, "Unknown");
    (await answers(namespace)).say({ phase: Phase.SUCCEEDED, message: "all 12 iterations are done" });
    await eventually(async () => (await status(namespace)).phase === "Succeeded");
    await eventually(() => received.length === 2);
    assert.deepEqual(
      received.map(({ data }) => data.phase),
      ["Failed", "Succeeded"],
    );
  });

  test("A failed run that is suspended is Suspended, can be edited, and waits for its resume; its ttl does not delete it", async () => {
    const { namespace } = await start({ failurePolicy: { retries: 0 }, ttlSecondsAfterFinished: 5 });
    await crash(namespace, 0, 1, "x is not a function");
    const failed = await eventually(async () => {
      const found = await condition(namespace, "Failed");
      return found.status === "True" && found;
    });
    assert.deepEqual(
      [failed.reason, /^the learner failed: it ended with status 1/.test(failed.message!)],
      ["Fault", true],
    );
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await status(namespace)).phase === "Suspended");
    const suspended = await condition(namespace, "Suspended");
    assert.match(suspended.message!, /a resume/);
    await world.patchRun(namespace, "run", { model: { generationBatchSize: 8 } });
    await sleep(6000);
    assert.equal(
      (await status(namespace)).phase,
      "Suspended",
      "a suspended run has not ended, so its ttl does not delete it",
    );
    assert.equal(await replicas(namespace), 0);
    down.delete(namespace);
    await world.patchRun(namespace, "run", { suspend: false });
    await answers(namespace);
    assert.equal((await status(namespace)).phase, "Running");
  });

  test("A full volume blocks the run, however often the learner starts, and never ends it", async () => {
    const { namespace } = await start({ failurePolicy: { retries: 1 }, learner: { storage: { size: "10Gi" } } });
    let before: object = {};
    for (const end of [0, 1, 2, 3]) {
      before = await crash(namespace, end, 73, "the disk of /data/run is full (ENOSPC)");
      await eventually(async () => (await status(namespace)).failures?.podEnds === end + 1);
      const full = await eventually(async () => {
        const found = await condition(namespace, "LearnerAvailable");
        return found.reason === "VolumeFull" && found;
      });
      assert.match(full.message!, /^volume run-data \(10Gi\) is full: raise spec\.learner\.storage\.size/);
      assert.equal((await condition(namespace, "Ready")).reason, "VolumeFull");
    }
    const { failures, phase } = await status(namespace);
    assert.deepEqual([failures?.count, failures?.class, phase], [0, "Resource", "Running"]);
    assert.equal(await replicas(namespace), 1);
    await restart(namespace, 4, before);
    await answers(namespace);
    assert.equal((await condition(namespace, "Ready")).status, "True");
  });

  test("A failed learner of 0.2, which stays alive, ends the run, and the run can be resumed", async () => {
    const { namespace, learner } = await start();
    learner.say({ phase: Phase.FAILED_RUN, message: "no result for 960 s: no actor is connected" });
    await eventually(async () => (await condition(namespace, "Failed"))?.status === "True");
    await eventually(async () => (await replicas(namespace)) === 0);
    const options = { wait: true, timeoutSeconds: 60, say: () => {} };
    await setSuspended(cluster(namespace), "run", false, options);
    assert.equal((await status(namespace)).phase, "Running");
  });
});
