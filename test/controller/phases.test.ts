/** Tests the phases of a run, its learner and the notifications of its end, on a real API server with simulated learners. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { CONFIG_MAP, PERSISTENT_VOLUME_CLAIM, POD, SECRET } from "../../controller/operator/kube/resources.ts";
import type { KubeObject } from "../../controller/operator/kube/types.ts";
import { FINALIZER } from "../../controller/operator/parts/lifecycle/deletion.ts";
import { receive } from "./receiver.ts";
import { Phase } from "./simulated-learner.ts";
import { answers, conditionOf, hasActors, hasEvent, skip, start, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

useWorld();

describe("the phases of a run", { skip, concurrency: 6 }, () => {
  test("A suspension takes a checkpoint and deletes all but the volume; a resume continues the run", async () => {
    const { namespace, learner } = await start({ actors: { min: 2, max: 2 } });
    await hasActors(namespace, 2);
    let release = () => {};
    learner.onSuspend = () => new Promise((resolve) => (release = resolve));
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(() => learner.suspended.length === 1);
    await eventually(async () => (await conditionOf(namespace, "Suspended"))?.reason === "Suspending");
    assert.equal(
      (await world.deployment(namespace, "run"))?.spec?.replicas,
      1,
      "the learner stays until its checkpoint is on disk",
    );
    assert.equal((await world.actors(namespace, "run")).length, 2, "executions run on meanwhile");
    release();
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
    await hasActors(namespace, 0);
    assert.equal((await world.list(PERSISTENT_VOLUME_CLAIM, namespace)).length, 1);
    assert.match((await conditionOf(namespace, "Suspended"))!.message, /checkpoint of iteration 3/);
    await hasEvent(namespace, /^CheckpointWritten: the checkpoint of iteration 3 is on the volume/);
    await eventually(async () => !(await world.run(namespace, "run"))?.metadata.finalizers?.includes(FINALIZER));
    assert.equal(learner.suspended.length, 1);
    await eventually(() => !world.learners.has(`${namespace}/run`));

    await world.patchRun(namespace, "run", { suspend: false });
    await answers(namespace);
    await hasActors(namespace, 2);
    assert.equal((await world.status(namespace, "run")).phase, "Running");
    await hasEvent(namespace, /^Resumed: /);
  });

  test("A resume before the end of the suspension gets a learner that trains", async () => {
    const { namespace, learner } = await start();
    let release = () => {};
    learner.onSuspend = () => new Promise((resolve) => (release = resolve));
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(() => learner.suspended.length === 1);
    await world.patchRun(namespace, "run", { suspend: false });
    await sleep(300);
    release();
    await eventually(() => world.learners.has(`${namespace}/run`) && world.learner(namespace, "run") !== learner);
    await answers(namespace);
    assert.equal((await world.status(namespace, "run")).phase, "Running");
  });

  test("The controller does not wait without end for a learner that never writes its checkpoint", async () => {
    const { namespace, learner } = await start({
      actors: { drainSeconds: 0 },
      learner: { checkpoint: { waitSeconds: 1 } },
    });
    learner.onSuspend = () => new Promise(() => {});
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    await hasEvent(namespace, /^CheckpointNotWaitedFor: .*within 1 s/);
  });

  test("An evaluation is a phase of the run, with its result in the status and in events", async () => {
    const { namespace, learner } = await start();
    learner.say({ phase: Phase.FINAL_EVALUATION, iteration: 1 });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Evaluating");
    await hasEvent(namespace, /^Evaluating: the policy is evaluated before training/);
    const before = { iteration: 0, samples: 8, validFraction: 0.5, best: 900, mean: 1200.5, bestFromScratch: 900 };
    const told = { protocol: "Paper", before: { ...before, bestImproved: null, bestMedal: null, medalFraction: null } };
    learner.say({ phase: Phase.GENERATING, iteration: 1, evaluationJson: JSON.stringify(told) });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Running");
    assert.deepEqual((await world.status(namespace, "run")).evaluation, { protocol: "Paper", before });
    await hasEvent(namespace, /^Evaluated: before training: 50 % of 8 programs are valid, best score 900, mean 1201/);
    await hasActors(namespace, 1);
  });

  test("A run that succeeds is recorded, and its learner and actors are deleted", async () => {
    const { namespace, learner } = await start({ learner: { storage: { retain: "OnSuccess" } } });
    const line = {
      iteration: 12,
      lineage: 1,
      elapsedSeconds: 60,
      bestScoreSoFar: 812.3456,
      meanScore: 900.5,
      validFraction: 0.75,
      meanDurationSeconds: 2.5,
    };
    learner.say({ phase: Phase.SUCCEEDED, message: "all 12 iterations are done", iterationJson: JSON.stringify(line) });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Succeeded");
    const { score, iteration, completionTime, display } = await world.status(namespace, "run");
    assert.deepEqual(
      { score, iteration },
      { score: { best: 812.3456, mean: 900.5, validFraction: 0.75 }, iteration: 12 },
    );
    assert.deepEqual(
      { best: display?.best, valid: display?.valid, iteration: display?.iteration },
      { best: "812.3", valid: "75%", iteration: "12/100" },
    );
    assert.ok(completionTime);
    await eventually(async () => (await world.deployment(namespace, "run"))?.spec?.replicas === 0);
    await hasActors(namespace, 0);
    await hasEvent(namespace, /^Completed: all 12 iterations are done/);
    // From now on it outlives the run, which has succeeded.
    await eventually(
      async () => (await world.list(PERSISTENT_VOLUME_CLAIM, namespace))[0]?.metadata.ownerReferences === undefined,
    );
    await world.patchRun(namespace, "run", { ttlSecondsAfterFinished: 1 });
    await eventually(async () => (await world.run(namespace, "run")) === undefined);
  });

  test("A webhook is called at the end of the run until it accepts, and its address stays in its Secret", async (t) => {
    const address = "T0P-SECRET";
    const receiver = await receive(t, [503, 204]);
    const namespace = await world.namespace();
    const url = Buffer.from(`${receiver.url}/${address}`).toString("base64");
    await world.client.create(SECRET, { metadata: { namespace, name: "hook" }, data: { url } } as KubeObject);
    const webhook = { urlFrom: { secretKeyRef: { name: "hook", key: "url" } }, backoffSeconds: 0.1 };
    const run = await world.createRun(namespace, "run", { notifications: { webhook } });
    const learner = await answers(namespace);
    learner.say({ phase: Phase.SUCCEEDED, message: "all 12 iterations are done" });
    const { notification } = await eventually(async () => {
      const status = await world.status(namespace, "run");
      return status.notification?.state === "Delivered" && status;
    });
    assert.equal(notification!.attempts, 2);
    assert.deepEqual(
      receiver.received.map(({ id, data }) => [id, data.phase, data.message]),
      Array(2).fill([`${run.metadata.uid}-Succeeded`, "Succeeded", "all 12 iterations are done"]),
    );
    await hasEvent(namespace, /^WebhookDelivered: the webhook was delivered$/);
    // Any cause for a reconcile: the webhook was already called.
    await world.patchRun(namespace, "run", { ttlSecondsAfterFinished: 3600 });
    await sleep(1000);
    assert.equal(receiver.received.length, 2);
    const everything = [
      await world.run(namespace, "run"),
      await world.events(namespace),
      await world.list(CONFIG_MAP, namespace),
    ];
    assert.doesNotMatch(JSON.stringify(everything), /T0P-SECRET|hook\/|127\.0\.0\.1/);
  });

  test("A webhook that hangs delays only the run's own deletion, and only for a limited time", async (t) => {
    const receiver = await receive(t, []);
    const webhook = { url: receiver.url, timeoutSeconds: 2, maxAttempts: 2, backoffSeconds: 0.1 };
    const { namespace, learner } = await start({ notifications: { webhook }, ttlSecondsAfterFinished: 0 });
    learner.say({ phase: Phase.FAILED_RUN, message: "the disk is full" });
    await eventually(async () => (await world.deployment(namespace, "run"))?.spec?.replicas === 0);
    await eventually(() => receiver.received.length === 1);
    assert.equal(
      (await world.status(namespace, "run")).phase,
      "Failed",
      "the run stays while its webhook has to be called",
    );
    await eventually(async () => (await world.run(namespace, "run")) === undefined);
    assert.equal(receiver.received.length, 2);
    await hasEvent(namespace, /^WebhookGivenUp: the webhook was not delivered, 2 of 2 attempts: check spec/);
  });

  test("A failed run has its reason in the status", async () => {
    const { namespace, learner } = await start();
    learner.say({ phase: Phase.FAILED_RUN, message: "no result for 375 s: no actor is connected" });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Failed");
    assert.match((await conditionOf(namespace, "Succeeded"))!.message, /no actor is connected/);
    await eventually(async () => (await world.deployment(namespace, "run"))?.spec?.replicas === 0);
  });

  /** Ends a learner's container, as the kubelet reports it. */
  const endLearner = async (namespace: string, exitCode: number, message: string) => {
    const [pod] = await eventually(async () => {
      const found = await world.podsOf(namespace, "run", "learner");
      return found.length > 0 && found;
    });
    const finishedAt = new Date().toISOString();
    const container = { name: "learner", image: "longrun/longrun:dev", imageID: "", ready: false, restartCount: 1 };
    const terminated = { exitCode, reason: "Error", message, finishedAt };
    const waiting = { reason: "CrashLoopBackOff" };
    await world.client.mergePatch(
      POD,
      { namespace, name: pod!.metadata.name },
      {
        status: {
          phase: "Running",
          containerStatuses: [{ ...container, state: { waiting }, lastState: { terminated } }],
        },
      },
      { subresource: "status" },
    );
  };
  const unanswered = async (spec: Record<string, unknown> = {}) => {
    const namespace = await world.namespace();
    const mute = world.mute;
    world.mute = (pod) => mute(pod) || pod.metadata.namespace === namespace;
    const holds = world.holds;
    world.holds = (pod) => holds(pod) || pod.metadata.namespace === namespace;
    await world.createRun(namespace, "run", spec);
    return namespace;
  };

  test("A configuration that the learner refuses is a condition, not a crash loop, and an edit restarts the learner", async () => {
    const namespace = await unanswered();
    await endLearner(namespace, 2, '{"level":30}\n--task-dir /opt/longrun-tasks/diamonds: there is no such task\n');
    const refused = await eventually(async () => {
      const found = await conditionOf(namespace, "LearnerAvailable");
      return found?.reason === "InvalidConfiguration" && found;
    });
    assert.match(refused.message, /there is no such task/);
    await eventually(async () => (await world.deployment(namespace, "run"))?.spec?.replicas === 0);
    await hasEvent(namespace, /^InvalidConfiguration: .*there is no such task/);
    assert.equal((await conditionOf(namespace, "Ready"))?.reason, "InvalidConfiguration");
    await sleep(1000);
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
    await world.patchRun(namespace, "run", { stopping: { iterations: 7 } });
    await eventually(async () => (await world.deployment(namespace, "run"))?.spec?.replicas === 1);
  });

  test("The Deployment restarts a crashed learner, and the condition has the reason", async () => {
    const namespace = await unanswered();
    await endLearner(namespace, 137, "");
    const crash = await eventually(async () => {
      const found = await conditionOf(namespace, "LearnerAvailable");
      return found?.reason === "LearnerCrashing" && found;
    });
    assert.match(crash.message, /signal 9/);
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 1);
  });

  test("The condition names an image that cannot be pulled", async () => {
    const namespace = await unanswered({ learner: { image: "registry.example/missing:1" } });
    const [pod] = await eventually(async () => {
      const found = await world.podsOf(namespace, "run", "learner");
      return found.length > 0 && found;
    });
    const waiting = { reason: "ImagePullBackOff", message: 'Back-off pulling image "registry.example/missing:1"' };
    const container = {
      name: "learner",
      image: "registry.example/missing:1",
      imageID: "",
      ready: false,
      restartCount: 0,
      state: { waiting },
    };
    await world.client.mergePatch(
      POD,
      { namespace, name: pod!.metadata.name },
      { status: { containerStatuses: [container] } },
      { subresource: "status" },
    );
    await hasEvent(
      namespace,
      /^ImagePullFailed: image registry\.example\/missing:1 cannot be pulled .*check spec\.learner\.image/,
    );
    assert.equal((await conditionOf(namespace, "Ready"))?.reason, "ImagePullFailed");
  });
});
