/**
 * `npm run test:chart`: a run that waits in a queue, against a real API server with Kueue's own CRDs (`operator-crds.ts`). The
 * test plays Kueue: it writes the status of Workloads as Kueue's scheduler does. Kueue itself, with its webhooks, is not here.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { PAST_GRACE_SECONDS } from "../../controller/actor-state.ts";
import { findCondition } from "../../controller/conditions.ts";
import { clusterFiles } from "../../controller/debug/cluster.ts";
import { INPUT_HASH, QUEUE_NAME } from "../../controller/desired/names.ts";
import { DEFAULT_SETTINGS } from "../../controller/desired/settings.fixture.ts";
import type { Workload, WorkloadCondition } from "../../controller/desired/workload.ts";
import type { ResourceFlavor } from "../../controller/flavors.ts";
import {
  DEPLOYMENT,
  POD,
  RESOURCE_FLAVOR,
  SECRET,
  TRAINING_RUN,
  WORKLOAD,
  WORKLOAD_PRIORITY_CLASS,
} from "../../controller/kube/resources.ts";
import type { KubeObject } from "../../controller/kube/types.ts";
import type { Operator } from "../../controller/operator.ts";
import { setConditions } from "../../controller/queue.ts";
import { STATUS_SECONDS } from "../../controller/status-writes.ts";
import { CONTROL_PLANE } from "../cluster/binaries.ts";
import { controlPlaneUnavailable } from "../cluster/control-plane.ts";
import { Phase } from "../controller/simulated-learner.ts";
import { eventually, World } from "../controller/world.ts";
import { ROOT } from "./helm.ts";
import { operatorCrds } from "./operator-crds.ts";

const skip = controlPlaneUnavailable(CONTROL_PLANE) ?? false;
const QUIET_SECONDS = 8;

let world: World;
let operator: Operator;
before(async () => {
  if (skip) return;
  world = await World.start({
    crds: operatorCrds("kueue.x-k8s.io"),
    roles: [`${ROOT}manifests/install/kueue/role.yaml`],
  });
  await flavor("default");
  operator = await world.operator({ settings: { ...DEFAULT_SETTINGS, kueue: true } });
});
after(() => world?.stop());

const flavor = (name: string, spec: ResourceFlavor["spec"] = {}) =>
  world.client.create<ResourceFlavor>(RESOURCE_FLAVOR, { metadata: { name }, spec } as ResourceFlavor);

type Change = Pick<WorkloadCondition, "type" | "status" | "reason" | "message">;
const change = (type: string, status: "True" | "False", reason: string, message: string): Change => ({
  type,
  status,
  reason,
  message,
});

describe("Kueue", { skip, concurrency: 4 }, () => {
  const workloadOf = (namespace: string) => world.client.get<Workload>(WORKLOAD, { namespace, name: "run-workload" });
  const hasWorkload = (namespace: string) => eventually(() => workloadOf(namespace));
  const says = async (namespace: string, changes: Change[], status: object = {}) => {
    const workload = await hasWorkload(namespace);
    const conditions = setConditions(workload, changes, new Date().toISOString().replace(/\.\d+/, ""));
    const key = { namespace, name: workload.metadata.name };
    await world.client.mergePatch(WORKLOAD, key, { status: { ...status, conditions } }, { subresource: "status" });
  };
  const admit = async (
    namespace: string,
    flavors: Record<string, string> = { learner: "default", actors: "default", generators: "default" },
    counts: Record<string, number> = {},
  ) => {
    const { spec } = await hasWorkload(namespace);
    const podSetAssignments = spec.podSets.map(({ name, count }) => ({
      name,
      count: counts[name] ?? count,
      flavors: { cpu: flavors[name]! },
    }));
    await says(
      namespace,
      [
        change("QuotaReserved", "True", "QuotaReserved", "Quota reserved in ClusterQueue research"),
        change("Admitted", "True", "Admitted", "The workload is admitted"),
        change("Evicted", "False", "QuotaReserved", "Previously: evicted"),
      ],
      { admission: { clusterQueue: "research", podSetAssignments } },
    );
  };
  const evict = (namespace: string) =>
    says(namespace, [change("Evicted", "True", "Preempted", "Preempted to accommodate a workload of higher priority")]);
  const conditionOf = async (namespace: string, type: Parameters<typeof findCondition>[1]) =>
    findCondition((await world.status(namespace, "run")).conditions, type);
  const is = (namespace: string, type: Parameters<typeof findCondition>[1], reason: string) =>
    eventually(async () => {
      const found = await conditionOf(namespace, type);
      return found?.reason === reason && found;
    });
  const statusOf = async (namespace: string, type: string) =>
    (await workloadOf(namespace))?.status?.conditions?.find((it) => it.type === type);
  const answers = (namespace: string) =>
    eventually(async () => {
      const available = (await conditionOf(namespace, "LearnerAvailable"))?.status === "True";
      return available && world.learners.get(`${namespace}/run`);
    });
  const hasEvent = (namespace: string, pattern: RegExp) =>
    eventually(async () => (await world.events(namespace)).find((text) => pattern.test(text)));
  const start = async (spec: object = {}) => {
    const namespace = await world.namespace();
    const run = await world.createRun(namespace, "run", { queueName: "team", actors: { min: 1, max: 3 }, ...spec });
    await is(namespace, "Admitted", "Queued");
    return { namespace, run };
  };
  const admitted = async (spec: object = {}) => {
    const { namespace, run } = await start(spec);
    await admit(namespace);
    return { namespace, run, learner: await answers(namespace) };
  };

  test("nothing but a Workload is made before it is admitted, and what it waits for is said", async () => {
    const { namespace, run } = await start({ learner: { resources: { requests: { cpu: "4" } } } });
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
    assert.equal((await is(namespace, "Admitted", "Admitted")).status, "True");
    await hasEvent(namespace, /^Admitted: LocalQueue team: ClusterQueue research admitted the run$/);
  });

  test("generators are part of it, there are no more than Kueue admitted, and an eviction takes them away", async () => {
    const { namespace } = await start({
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

  test("actors.min are part of it, more queue one by one; PodsReady is told", async () => {
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

  test("Kueue's labels on the run are its queue and its priority", async () => {
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

  test("its pods go to the nodes of the flavors that they were admitted to", async () => {
    const tolerations = [{ key: "gpu", operator: "Exists", effect: "NoSchedule" }];
    await flavor("gpu-nodes", { nodeLabels: { "example.com/pool": "gpu" }, tolerations });
    await flavor("spot-nodes", { nodeLabels: { "example.com/pool": "spot" } });
    const learnerOwn = { podTemplate: { spec: { nodeSelector: { "kubernetes.io/arch": "amd64" } } } };
    const { namespace } = await start({ learner: learnerOwn });
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
    assert.equal((await workloadOf(namespace))?.metadata.uid, before.metadata.uid, "it is what was asked for");

    const gone = await start();
    await admit(gone.namespace, { learner: "none", actors: "none" });
    await eventually(async () =>
      /ResourceFlavor none, which is gone/.test((await conditionOf(gone.namespace, "Ready"))!.message),
    );
    assert.deepEqual(await world.list(POD, gone.namespace), []);
  });

  test("an evicted run gives its quota back though a pod of a lost node is stuck", async () => {
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
    await is(namespace, "Suspended", "Evicted");
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

  test("a run without a queue starts at once", async () => {
    const namespace = await world.namespace();
    await world.createRun(namespace, "run");
    await answers(namespace);
    assert.equal(await workloadOf(namespace), undefined);
    assert.equal(await conditionOf(namespace, "Admitted"), undefined);
  });

  test("an eviction suspends it: checkpoint, no pod, quota given back; admitted again it goes on", async () => {
    const { namespace, learner } = await admitted();
    await eventually(async () => (await statusOf(namespace, "PodsReady"))?.status === "True");
    await evict(namespace);
    await eventually(() => learner.suspended.length === 1);
    assert.equal(learner.suspended[0]!.drainSeconds ?? 0, 0, "what runs is not waited for");
    await is(namespace, "Suspended", "Evicted");
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
    await is(namespace, "Suspended", "Resumed");
    assert.equal((await workloadOf(namespace))?.metadata.uid, workload.metadata.uid);
  });

  test("a run whose flavor is gone can be suspended all the same", async () => {
    const { namespace } = await admitted();
    await admit(namespace, { learner: "none", actors: "none" });
    await eventually(async () => /ResourceFlavor none/.test((await conditionOf(namespace, "Ready"))!.message));
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
  });

  test("a person's suspension gives its place back, the resumption queues it anew", async () => {
    const { namespace } = await admitted();
    const before = await hasWorkload(namespace);
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await workloadOf(namespace)) === undefined);
    assert.deepEqual((await world.podsOf(namespace, "run", "learner")).length, 0);
    assert.equal((await world.status(namespace, "run")).phase, "Suspended");
    await world.patchRun(namespace, "run", { suspend: false });
    const now = await hasWorkload(namespace);
    assert.notEqual(now.metadata.uid, before.metadata.uid);
    await is(namespace, "Admitted", "Queued");
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
    await admit(namespace);
    await answers(namespace);
  });

  test("other requests queue it anew; what does not concern nodes does not", async () => {
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
    assert.deepEqual(await whileItStops.promise, { cpu: "500m", memory: "1Gi" }, "it goes as it was admitted");
    const after = await eventually(async () => {
      const found = await workloadOf(namespace);
      return found && found.metadata.uid !== before.metadata.uid && found;
    });
    assert.equal(after.spec.podSets[0]!.template.spec!.containers[0]!.resources!.requests!.cpu, "8");
    assert.equal(after.spec.podSets[1]!.count, 2);
  });

  test("a Workload that is taken out of the queue, or deleted, stops the run", async () => {
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
    await is(namespace, "Admitted", "Queued");
  });

  test("the end of the run is the Workload's, once no pod is left", async () => {
    const { namespace, learner } = await admitted();
    learner.say({ phase: Phase.SUCCEEDED, message: "all iterations are done" });
    await eventually(async () => (await statusOf(namespace, "Finished"))?.status === "True");
    const finished = (await statusOf(namespace, "Finished"))!;
    assert.deepEqual([finished.reason, finished.message], ["Succeeded", "all iterations are done"]);
    assert.deepEqual(await world.podsOf(namespace, "run", "learner"), []);
  });

  test("a run that failed and is resumed queues anew", async () => {
    const { namespace, learner } = await admitted();
    learner.say({ phase: Phase.FAILED_RUN, message: "the GPU fell off the bus" });
    const finished = await eventually(() => statusOf(namespace, "Finished"));
    assert.deepEqual([finished.reason, finished.message], ["Failed", "the GPU fell off the bus"]);
    const { metadata } = await hasWorkload(namespace);
    await world.patchRun(namespace, "run", { suspend: true });
    await is(namespace, "Suspended", "Suspended");
    await eventually(async () => (await workloadOf(namespace)) === undefined);
    await world.patchRun(namespace, "run", { suspend: false });
    await is(namespace, "Admitted", "Queued");
    assert.notEqual((await hasWorkload(namespace)).metadata.uid, metadata.uid);
    await admit(namespace);
    await answers(namespace);
    assert.equal((await conditionOf(namespace, "Failed"))?.status, "False");
  });

  test("it goes with the run", async () => {
    const { namespace, run } = await start();
    await hasWorkload(namespace);
    await world.client.delete(TRAINING_RUN, { namespace, name: "run" }, { uid: run.metadata.uid });
    await eventually(async () => (await workloadOf(namespace)) === undefined);
  });

  test("nothing is written while nothing happens", async () => {
    const running = await admitted();
    await eventually(async () => (await statusOf(running.namespace, "PodsReady"))?.status === "True");
    const waiting = await start();
    // Counts that have changed meanwhile are written late.
    await sleep((STATUS_SECONDS + 1) * 1000);
    const from = world.auditLength();
    await sleep(QUIET_SECONDS * 1000);
    for (const { namespace } of [running, waiting]) assert.deepEqual(world.writes(namespace, from), []);
  });
});

test("an upgrade whose pods ask for other resources queues no admitted run anew", { skip }, async () => {
  const namespace = await world.namespace();
  await world.createRun(namespace, "run", { queueName: "team", actors: { min: 1, max: 3 } });
  const key = { namespace, name: "run-workload" };
  const workload = await eventually(() => world.client.get<Workload>(WORKLOAD, key));
  const changes = [
    change("QuotaReserved", "True", "QuotaReserved", "Quota reserved"),
    change("Admitted", "True", "Admitted", "The workload is admitted"),
  ];
  const podSetAssignments = workload.spec.podSets.map(({ name, count }) => ({ name, count, flavors: {} }));
  const conditions = setConditions(workload, changes, new Date().toISOString().replace(/\.\d+/, ""));
  const status = { conditions, admission: { clusterQueue: "research", podSetAssignments } };
  await world.client.mergePatch(WORKLOAD, key, { status }, { subresource: "status" });
  const podUid = async () => (await world.podsOf(namespace, "run", "learner"))[0]?.metadata.uid;
  const uid = await eventually(podUid);
  await eventually(async () => (await world.status(namespace, "run")).actors?.idle === 1);

  await operator.stop();
  const { [INPUT_HASH]: inputs } = workload.metadata.annotations!;
  assert.ok(inputs);
  // longrun 0.2 made Workloads without this annotation.
  await world.client.mergePatch(WORKLOAD, key, { metadata: { annotations: { [INPUT_HASH]: null } } });
  const runDefaults = { learner: { resources: { requests: { cpu: "3" } } } };
  operator = await world.operator({ settings: { ...DEFAULT_SETTINGS, kueue: true, runDefaults } });
  await eventually(async () => {
    const { metadata } = (await world.client.get<Workload>(WORKLOAD, key))!;
    return metadata.annotations?.[INPUT_HASH] === inputs;
  });
  await sleep(3000);
  assert.equal(await podUid(), uid);
  assert.equal((await world.status(namespace, "run")).phase, "Running");
  // Suspended and resumed it asks for what this version would.
  await world.patchRun(namespace, "run", { suspend: true });
  await eventually(async () => (await world.client.get(WORKLOAD, key)) === undefined);
  await world.patchRun(namespace, "run", { suspend: false });
  await eventually(async () => {
    const made = await world.client.get<Workload>(WORKLOAD, key);
    return made && made.spec.podSets[0]!.template.spec!.containers[0]!.resources?.requests?.cpu === "3";
  });
});
