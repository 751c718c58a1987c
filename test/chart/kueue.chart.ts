/**
 * `npm run test:chart`: how a run waits in a queue and is admitted, against a real API server with Kueue's own CRDs
 * (`kueue.fixture.ts`). Kueue itself, with its webhooks, is not here.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { clusterFiles } from "../../controller/debug/cluster.ts";
import { QUEUE_NAME } from "../../controller/operator/desired/names.ts";
import {
  DEPLOYMENT,
  POD,
  SECRET,
  TRAINING_RUN,
  WORKLOAD_PRIORITY_CLASS,
} from "../../controller/operator/kube/resources.ts";
import type { KubeObject } from "../../controller/operator/kube/types.ts";
import { STATUS_SECONDS } from "../../controller/operator/status/status-writes.ts";
import { answers, conditionOf, hasEvent, hasReason, skip, world } from "../controller/steps.ts";
import { eventually } from "../controller/world.ts";
import {
  admit,
  admitted,
  change,
  evict,
  flavor,
  hasWorkload,
  says,
  startQueued,
  statusOf,
  useKueue,
  workloadOf,
} from "./kueue.fixture.ts";

const QUIET_SECONDS = 8;

useKueue();

describe("A run in a queue of Kueue", { skip, concurrency: 4 }, () => {
  test("Before the admission the controller creates only a Workload, and the condition says what the run waits for", async () => {
    const { namespace, run } = await startQueued({ learner: { resources: { requests: { cpu: "4" } } } });
    const { metadata, spec } = await hasWorkload(namespace);
    assert.equal(metadata.ownerReferences?.[0]?.uid, run.metadata.uid);
    assert.equal(spec.queueName, "team");
    assert.deepEqual(
      spec.podSets.map(({ name, count }) => [name, count]),
      [
        ["learner", 1],
        ["actors", 1],
      ],
    );
    assert.deepEqual(spec.podSets[0]!.template.spec!.containers[0]!.resources, { requests: { cpu: "4" } });
    await hasEvent(namespace, /^WorkloadMade: waits in LocalQueue team as Workload run-workload$/);

    const message =
      "couldn't assign flavors to pod set learner: insufficient unused quota for cpu in flavor default, 2 more needed";
    await says(namespace, [change("QuotaReserved", "False", "Pending", message)]);
    await eventually(async () => (await conditionOf(namespace, "Ready"))?.message.includes("2 more needed"));
    const ready = await conditionOf(namespace, "Ready");
    assert.deepEqual(
      [ready?.status, ready?.reason, ready?.message],
      ["False", "Queued", `LocalQueue team: ${message} (Pending)`],
    );
    await hasEvent(namespace, /^Queued: LocalQueue team: couldn't assign flavors/);
    assert.equal((await world.status(namespace, "run")).phase, "Pending");
    for (const resource of [DEPLOYMENT, POD, SECRET])
      assert.deepEqual(await world.list(resource, namespace), [], resource.kind);

    await says(namespace, [change("QuotaReserved", "True", "QuotaReserved", "")], {
      admissionChecks: [
        { name: "nodes", state: "Pending", message: "provisioning", lastTransitionTime: "2026-01-01T00:00:00Z" },
      ],
    });
    await eventually(async () =>
      /admission checks: nodes is Pending \(provisioning\)/.test((await conditionOf(namespace, "Admitted"))!.message),
    );
    assert.deepEqual(await world.list(POD, namespace), []);

    const bundle = await clusterFiles(world.config, namespace, "run");
    assert.match(bundle.find(({ path }) => path === "objects/workloads.yaml")!.text, /name: run-workload/);

    await admit(namespace);
    await answers(namespace);
    assert.equal((await hasReason(namespace, "Admitted", "Admitted")).status, "True");
    await hasEvent(namespace, /^Admitted: LocalQueue team: ClusterQueue research admitted the run$/);
  });

  test("The Workload has the generators; the controller keeps to the admitted number, and an eviction deletes them", async () => {
    const { namespace } = await startQueued({
      model: { policy: "quickstart", generationBatchSize: 1 },
      generation: { replicas: { min: 1, max: 3 }, resources: { limits: { "nvidia.com/gpu": 1 } } },
    });
    const { name, count, minCount, template } = (await hasWorkload(namespace)).spec.podSets[2]!;
    assert.deepEqual([name, count, minCount], ["generators", 3, 1]);
    assert.deepEqual(template.spec!.containers[0]!.resources!.limits, { "nvidia.com/gpu": 1 });
    assert.deepEqual(await world.list(POD, namespace), []);
    await admit(namespace, undefined, { generators: 2 });
    const learner = await answers(namespace);
    learner.say({ generation: { waitingPrompts: 50, generators: [] } });
    const generators = async () =>
      (await world.podsOf(namespace, "run", "generator")).filter(({ metadata }) => !metadata.deletionTimestamp);
    await hasEvent(namespace, /^ScaledUp: scaled generators 1 -> 2: 50 prompts wait/);
    await eventually(async () => (await world.status(namespace, "run")).generation?.ready === 2);
    await eventually(async () => (await statusOf(namespace, "PodsReady"))?.status === "True");
    await evict(namespace);
    await eventually(async () => (await generators()).length === 0);
    await eventually(async () => (await statusOf(namespace, "QuotaReserved"))?.status === "False");
  });

  test("The Workload has actors.min; further actors queue one by one; PodsReady becomes True", async () => {
    const { namespace, learner } = await admitted();
    await eventually(async () => (await statusOf(namespace, "PodsReady"))?.status === "True");
    learner.work(3);
    const jobs = await eventually(async () => {
      const found = await world.actors(namespace, "run");
      return found.length === 3 && found;
    });
    const queues = jobs.map(({ metadata }) => metadata.labels?.[QUEUE_NAME] ?? "").sort();
    assert.deepEqual(queues, ["", "team", "team"]);
    const { labels } = (await world.deployment(namespace, "run"))!.metadata;
    assert.equal(labels?.[QUEUE_NAME], undefined, "the learner is in the Workload");
  });

  test("Kueue's labels on the run set its queue and its priority", async () => {
    const namespace = await world.namespace();
    await world.client.create(WORKLOAD_PRIORITY_CLASS, { metadata: { name: "urgent" }, value: 700 } as KubeObject);
    const labels = { [QUEUE_NAME]: "team", "kueue.x-k8s.io/priority-class": "urgent" };
    const spec = { tasks: [{ name: "diamonds" }], model: { policy: "quickstart" } };
    await world.client.create(TRAINING_RUN, { metadata: { namespace, name: "run", labels }, spec } as KubeObject);
    const workload = await hasWorkload(namespace);
    const { queueName, priority, priorityClassRef } = workload.spec;
    assert.deepEqual(
      { queueName, priority, priorityClassRef },
      {
        queueName: "team",
        priority: 700,
        priorityClassRef: { group: "kueue.x-k8s.io", kind: "WorkloadPriorityClass", name: "urgent" },
      },
    );
    await world.patchRun(namespace, "run", { actors: { min: 2, max: 2 } });
    await eventually(async () => (await hasWorkload(namespace)).spec.podSets[1]!.count === 2);
    assert.equal((await workloadOf(namespace))?.spec.priority, 700);
  });

  test("The pods run on the nodes of the admitted flavors", async () => {
    const tolerations = [{ key: "gpu", operator: "Exists", effect: "NoSchedule" }];
    await flavor("gpu-nodes", { nodeLabels: { "example.com/pool": "gpu" }, tolerations });
    await flavor("spot-nodes", { nodeLabels: { "example.com/pool": "spot" } });
    const learnerOwn = { podTemplate: { spec: { nodeSelector: { "kubernetes.io/arch": "amd64" } } } };
    const { namespace } = await startQueued({ learner: learnerOwn });
    const before = await hasWorkload(namespace);
    await admit(namespace, { learner: "gpu-nodes", actors: "spot-nodes" });
    await answers(namespace);
    const [learner] = await world.podsOf(namespace, "run", "learner");
    assert.deepEqual(learner!.spec!.nodeSelector, { "kubernetes.io/arch": "amd64", "example.com/pool": "gpu" });
    assert.ok(learner!.spec!.tolerations!.some(({ key }) => key === "gpu"));
    const [actor] = await eventually(async () => {
      const pods = await world.podsOf(namespace, "run", "actor");
      return pods.length > 0 && pods;
    });
    assert.deepEqual(actor!.spec!.nodeSelector, { "example.com/pool": "spot" });
    assert.equal((await workloadOf(namespace))?.metadata.uid, before.metadata.uid, "the Workload is the same");

    const gone = await startQueued();
    await admit(gone.namespace, { learner: "none", actors: "none" });
    await eventually(async () =>
      /ResourceFlavor none, which does not exist any more/.test((await conditionOf(gone.namespace, "Ready"))!.message),
    );
    assert.deepEqual(await world.list(POD, gone.namespace), []);
  });

  test("A run without a queue starts at once", async () => {
    const namespace = await world.namespace();
    await world.createRun(namespace, "run");
    await answers(namespace);
    assert.equal(await workloadOf(namespace), undefined);
    assert.equal(await conditionOf(namespace, "Admitted"), undefined);
  });

  test("The controller writes nothing while nothing changes", async () => {
    const running = await admitted();
    await eventually(async () => (await statusOf(running.namespace, "PodsReady"))?.status === "True");
    const waiting = await startQueued();
    // Counts that have changed meanwhile are written late.
    await sleep((STATUS_SECONDS + 1) * 1000);
    const from = world.auditLength();
    await sleep(QUIET_SECONDS * 1000);
    for (const { namespace } of [running, waiting]) assert.deepEqual(world.writes(namespace, from), []);
  });
});
