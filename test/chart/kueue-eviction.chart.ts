/**
 * `npm run test:chart`: how an admitted run is evicted, suspended, queued anew and ended, against a real API server with Kueue's own CRDs
 * (`kueue.fixture.ts`). Kueue itself, with its webhooks, is not here.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { INPUT_HASH } from "../../controller/operator/desired/names.ts";
import { DEFAULT_SETTINGS } from "../../controller/operator/desired/settings.fixture.ts";
import { POD, TRAINING_RUN, WORKLOAD } from "../../controller/operator/kube/resources.ts";
import { PAST_GRACE_SECONDS } from "../../controller/operator/parts/actors/actor-state.ts";
import { Phase } from "../controller/simulated-learner.ts";
import {
  answers,
  conditionOf,
  hasEvent,
  hasReason,
  operator,
  restartOperator,
  skip,
  world,
} from "../controller/steps.ts";
import { eventually } from "../controller/world.ts";
import { admit, admitted, evict, hasWorkload, startQueued, statusOf, useKueue, workloadOf } from "./kueue.fixture.ts";

useKueue();

describe("A run that Kueue has admitted", { skip, concurrency: 4 }, () => {
  test("An evicted run gives its quota back though the pod of a lost node cannot end", async () => {
    const { namespace } = await admitted({ actors: { min: 1, evictionGraceSeconds: 0, stopGraceSeconds: 1 } });
    await eventually(async () => (await statusOf(namespace, "PodsReady"))?.status === "True");
    const [pod] = await world.podsOf(namespace, "run", "actor");
    const { name } = pod!.metadata;
    await world.client.request({
      method: "POST",
      path: `/api/v1/namespaces/${namespace}/pods/${name}/binding`,
      body: { metadata: { name }, target: { kind: "Node", name: "dead" } },
    });
    await evict(namespace);
    await hasReason(namespace, "Suspended", "Evicted");
    const deletedAtMs = await eventually(async () => {
      const { deletionTimestamp } = (await world.client.get(POD, { namespace, name }))!.metadata;
      return deletionTimestamp !== undefined && Date.parse(deletionTimestamp);
    });
    await sleep(2000);
    assert.equal((await statusOf(namespace, "QuotaReserved"))?.status, "True", "its node may only be slow");
    await eventually(
      async () => (await statusOf(namespace, "QuotaReserved"))?.status === "False",
      PAST_GRACE_SECONDS + 20,
    );
    assert.ok(Date.now() >= deletedAtMs + PAST_GRACE_SECONDS * 1000);
    assert.ok(await world.client.get(POD, { namespace, name }), "the pod is still there");
  });

  test("An eviction writes a checkpoint, deletes the pods and gives the quota back; the next admission resumes the run", async () => {
    const { namespace, learner } = await admitted();
    await eventually(async () => (await statusOf(namespace, "PodsReady"))?.status === "True");
    await evict(namespace);
    await eventually(() => learner.suspended.length === 1);
    assert.equal(learner.suspended[0]!.drainSeconds ?? 0, 0, "the learner does not wait for running executions");
    await hasReason(namespace, "Suspended", "Evicted");
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
    await eventually(async () => (await statusOf(namespace, "QuotaReserved"))?.status === "False");
    const workload = (await workloadOf(namespace))!;
    assert.equal(workload.status?.admission, undefined);
    assert.deepEqual(
      ["Admitted", "Requeued", "PodsReady"].map(
        (type) => workload.status!.conditions!.find((it) => it.type === type)?.status,
      ),
      ["False", "True", "False"],
    );
    assert.deepEqual((await world.list(POD, namespace)).length, 0, "before the quota was given back");
    await hasEvent(
      namespace,
      /^Evicted: LocalQueue team: Kueue has evicted the run \(Preempted: Preempted to accommodate/,
    );
    assert.equal((await world.status(namespace, "run")).phase, "Suspended");

    await admit(namespace);
    await eventually(async () => world.learners.has(`${namespace}/run`) && (await answers(namespace)) !== learner);
    await hasReason(namespace, "Suspended", "Resumed");
    assert.equal((await workloadOf(namespace))?.metadata.uid, workload.metadata.uid);
  });

  test("A run whose flavor is gone can be suspended", async () => {
    const { namespace } = await admitted();
    await admit(namespace, { learner: "none", actors: "none" });
    await eventually(async () => /ResourceFlavor none/.test((await conditionOf(namespace, "Ready"))!.message));
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
  });

  test("A suspended run leaves the queue; a resumed run queues anew", async () => {
    const { namespace } = await admitted();
    const before = await hasWorkload(namespace);
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await workloadOf(namespace)) === undefined);
    assert.deepEqual((await world.podsOf(namespace, "run", "learner")).length, 0);
    assert.equal((await world.status(namespace, "run")).phase, "Suspended");
    await world.patchRun(namespace, "run", { suspend: false });
    const now = await hasWorkload(namespace);
    assert.notEqual(now.metadata.uid, before.metadata.uid);
    await hasReason(namespace, "Admitted", "Queued");
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
    await admit(namespace);
    await answers(namespace);
  });

  test("Other resource requests queue the run anew; changes that do not concern nodes leave it admitted", async () => {
    const { namespace, learner } = await admitted();
    const before = await hasWorkload(namespace);
    await world.patchRun(namespace, "run", { stopping: { iterations: 7 }, actors: { min: 2 } });
    await eventually(async () => (await world.actors(namespace, "run")).length === 2);
    await sleep(1000);
    assert.equal((await workloadOf(namespace))?.metadata.uid, before.metadata.uid);
    const again = await eventually(async () => (await answers(namespace)) !== learner && answers(namespace));
    const whileItStops = Promise.withResolvers<object | undefined>();
    again.onSuspend = async () => {
      await sleep(1500);
      const { spec } = (await world.deployment(namespace, "run"))!;
      whileItStops.resolve(spec!.template.spec!.containers[0]!.resources!.requests);
    };
    await world.patchRun(namespace, "run", { learner: { resources: { requests: { cpu: "8" } } } });
    assert.deepEqual(
      await whileItStops.promise,
      { cpu: "500m", memory: "1Gi" },
      "the learner stops with the admitted resources",
    );
    const after = await eventually(async () => {
      const found = await workloadOf(namespace);
      return found && found.metadata.uid !== before.metadata.uid && found;
    });
    assert.equal(after.spec.podSets[0]!.template.spec!.containers[0]!.resources!.requests!.cpu, "8");
    assert.equal(after.spec.podSets[1]!.count, 2);
  });

  test("A Workload that somebody deactivates or deletes stops the run", async () => {
    const { namespace, learner } = await admitted();
    const key = { namespace, name: "run-workload" };
    await world.client.mergePatch(WORKLOAD, key, { spec: { active: false } });
    await eventually(() => learner.suspended.length === 1);
    await eventually(async () =>
      /is deactivated; kubectl patch workload/.test((await conditionOf(namespace, "Ready"))!.message),
    );
    const { uid } = (await hasWorkload(namespace)).metadata;
    await world.client.delete(WORKLOAD, key, { uid: uid! });
    await eventually(async () => (await hasWorkload(namespace)).metadata.uid !== uid);
    await hasReason(namespace, "Admitted", "Queued");
  });

  test("The Workload finishes with the run, once no pod is left", async () => {
    const { namespace, learner } = await admitted();
    learner.say({ phase: Phase.SUCCEEDED, message: "all iterations are done" });
    await eventually(async () => (await statusOf(namespace, "Finished"))?.status === "True");
    const finished = (await statusOf(namespace, "Finished"))!;
    assert.deepEqual([finished.reason, finished.message], ["Succeeded", "all iterations are done"]);
    assert.deepEqual(await world.podsOf(namespace, "run", "learner"), []);
  });

  test("A failed run that is resumed queues anew", async () => {
    const { namespace, learner } = await admitted();
    learner.say({ phase: Phase.FAILED_RUN, message: "the GPU fell off the bus" });
    const finished = await eventually(() => statusOf(namespace, "Finished"));
    assert.deepEqual([finished.reason, finished.message], ["Failed", "the GPU fell off the bus"]);
    const { metadata } = await hasWorkload(namespace);
    await world.patchRun(namespace, "run", { suspend: true });
    await hasReason(namespace, "Suspended", "Suspended");
    await eventually(async () => (await workloadOf(namespace)) === undefined);
    await world.patchRun(namespace, "run", { suspend: false });
    await hasReason(namespace, "Admitted", "Queued");
    assert.notEqual((await hasWorkload(namespace)).metadata.uid, metadata.uid);
    await admit(namespace);
    await answers(namespace);
    assert.equal((await conditionOf(namespace, "Failed"))?.status, "False");
  });

  test("The Workload is deleted with its run", async () => {
    const { namespace, run } = await startQueued();
    await hasWorkload(namespace);
    await world.client.delete(TRAINING_RUN, { namespace, name: "run" }, { uid: run.metadata.uid });
    await eventually(async () => (await workloadOf(namespace)) === undefined);
  });
});

test("An upgrade whose pods ask for other resources leaves admitted runs admitted", { skip }, async () => {
  const namespace = await world.namespace();
  await world.createRun(namespace, "run", { queueName: "team", actors: { min: 1, max: 3 } });
  const key = { namespace, name: "run-workload" };
  const workload = await hasWorkload(namespace);
  await admit(namespace);
  const podUid = async () => (await world.podsOf(namespace, "run", "learner"))[0]?.metadata.uid;
  const uid = await eventually(podUid);
  await eventually(async () => (await world.status(namespace, "run")).actors?.idle === 1);

  await operator!.stop();
  const { [INPUT_HASH]: inputs } = workload.metadata.annotations!;
  assert.ok(inputs);
  // longrun 0.2 made Workloads without this annotation.
  await world.client.mergePatch(WORKLOAD, key, { metadata: { annotations: { [INPUT_HASH]: null } } });
  await world.runtime("larger", { learner: { resources: { requests: { cpu: "3" } } } });
  await restartOperator({ settings: { ...DEFAULT_SETTINGS, kueue: true, defaultRuntime: "larger" } });
  await eventually(async () => {
    const { metadata } = (await workloadOf(namespace))!;
    return metadata.annotations?.[INPUT_HASH] === inputs;
  });
  await sleep(3000);
  assert.equal(await podUid(), uid);
  assert.equal((await world.status(namespace, "run")).phase, "Running");
  // Suspended and resumed it asks for what this version would.
  await world.patchRun(namespace, "run", { suspend: true });
  await eventually(async () => (await workloadOf(namespace)) === undefined);
  await world.patchRun(namespace, "run", { suspend: false });
  await eventually(async () => {
    const made = await workloadOf(namespace);
    return made && made.spec.podSets[0]!.template.spec!.containers[0]!.resources?.requests?.cpu === "3";
  });
});
