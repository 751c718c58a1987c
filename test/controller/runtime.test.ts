/** TrainingRuntimes on a real API server: defaults, changes, limits, and one that is missing. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { DEFAULT_SETTINGS } from "../../controller/operator/desired/settings.fixture.ts";
import {
  CONFIG_MAP,
  type ConfigMap,
  DEPLOYMENT,
  PERSISTENT_VOLUME_CLAIM,
  type PersistentVolumeClaim,
  TRAINING_RUN,
} from "../../controller/operator/kube/resources.ts";
import type { KubeObject } from "../../controller/operator/kube/types.ts";
import {
  answers,
  conditionOf,
  hasActors,
  hasEvent,
  hasReason,
  restartOperator,
  skip,
  useWorld,
  world,
} from "./steps.ts";
import { eventually } from "./world.ts";

/** How long to wait for an action of the controller that must not happen. */
const SETTLE_SECONDS = 3;

const STRICT = {
  ...{ gpus: 1, actors: 4, storageClassNames: ["fast"], priorityClassNames: ["low"], runtimeClassNames: ["gvisor"] },
  images: ["registry.example.com/ml/*"],
};
useWorld({
  controller: { settings: { ...DEFAULT_SETTINGS, defaultRuntime: "default" } },
  ready: async () => {
    await world.runtime("default", {});
    await world.runtime("strict", { actors: { isolation: "Pod" }, limits: STRICT });
  },
});

const BINDING = {
  ...{ group: "rbac.authorization.k8s.io", version: "v1", namespaced: false },
  ...{ plural: "clusterrolebindings", kind: "ClusterRoleBinding" },
};
const noted = (version: string) => ({ metadata: { annotations: { "example.com/version": version } } });
const versionOf = async (namespace: string) =>
  (await world.deployment(namespace, "run"))?.spec?.template.metadata?.annotations?.["example.com/version"];
const learnerUid = async (namespace: string) => (await world.podsOf(namespace, "run", "learner"))[0]?.metadata.uid;

describe("A TrainingRuntime", { skip, concurrency: 4 }, () => {
  test("Its defaults reach learner, actors and volume; a run's own values have precedence; the status names it", async () => {
    await world.runtime("complete", {
      env: [
        { name: "A", value: "runtime" },
        { name: "B", value: "runtime" },
      ],
      inheritedMetadata: { labels: { team: "platform" } },
      learner: {
        image: "registry.example.com/learner:7",
        device: "CUDA",
        resources: { limits: { "nvidia.com/gpu": 1 } },
        storage: { size: "7Gi", className: "fast", retain: "Never" },
        podTemplate: {
          spec: { nodeSelector: { pool: "gpu" }, dnsPolicy: "None", dnsConfig: { nameservers: ["10.9.9.9"] } },
        },
      },
      actors: { min: 2, max: 3, slots: 2, sandboxImage: "registry.example.com/sandbox:7" },
      limits: { gpus: 1, actors: 3 },
    });
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", {
      runtimeRef: { name: "complete" },
      env: [{ name: "B", value: "run" }],
      learner: { podTemplate: { spec: { nodeSelector: { zone: "a" } } } },
    });
    await answers(namespace);
    const jobs = await hasActors(namespace, 2);
    const { metadata, spec } = (await world.deployment(namespace, "run"))!.spec!.template;
    assert.equal(metadata!.labels!.team, "platform");
    assert.deepEqual(spec!.nodeSelector, { pool: "gpu", zone: "a" });
    assert.deepEqual([spec!.dnsPolicy, spec!.dnsConfig], ["None", { nameservers: ["10.9.9.9"] }]);
    const [learner] = spec!.containers;
    assert.equal(learner!.image, "registry.example.com/learner:7");
    assert.deepEqual(learner!.resources, { limits: { "nvidia.com/gpu": "1" } });
    const value = (name: string) => learner!.env!.find((it) => it.name === name)?.value;
    assert.deepEqual([value("A"), value("B")], ["runtime", "run"]);
    const sandboxes = jobs[0]!.spec!.template.spec!.initContainers!;
    assert.deepEqual(
      sandboxes.map(({ image }) => image),
      ["registry.example.com/sandbox:7", "registry.example.com/sandbox:7"],
    );
    const [config] = await world.list<ConfigMap>(CONFIG_MAP, namespace);
    assert.match(config!.data!["trainingrun.yaml"]!, /device: CUDA/);
    const [claim] = await world.list<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, namespace);
    assert.deepEqual(
      [
        claim!.spec!.storageClassName,
        claim!.spec!.resources!.requests!.storage,
        claim!.metadata.ownerReferences?.length,
      ],
      ["fast", "7Gi", 1],
    );
    const status = await world.status(namespace, "run");
    assert.deepEqual([status.runtime?.name, status.runtime?.generation], ["complete", 1]);
    const stored = (await world.run(namespace, "run"))!;
    assert.equal(stored.spec.actors.min, 1, "the controller does not write the spec");
  });

  test("A change reaches a run when it is suspended and resumed, and is not lost by a restart of the controller", async () => {
    await world.runtime("changing", { learner: { podTemplate: noted("1") }, actors: { min: 1, max: 2 } });
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { runtimeRef: { name: "changing" } });
    await answers(namespace);
    await eventually(async () => (await world.status(namespace, "run")).images);
    const uid = await learnerUid(namespace);
    await world.runtime("changing", { learner: { podTemplate: noted("2") }, actors: { min: 2, max: 2 } });
    await sleep(SETTLE_SECONDS * 1000);
    assert.deepEqual([await learnerUid(namespace), await versionOf(namespace)], [uid, "1"]);
    assert.equal((await world.actors(namespace, "run")).length, 1);
    // An edit of the run takes its present runtime too.
    await world.patchRun(namespace, "run", { learner: { stopGraceSeconds: 77 } });
    await eventually(async () => (await learnerUid(namespace)) !== uid && (await learnerUid(namespace)) !== undefined);
    assert.equal(await versionOf(namespace), "1");

    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    await eventually(async () => (await world.status(namespace, "run")).runtime === undefined);
    await world.patchRun(namespace, "run", { suspend: false });
    await answers(namespace);
    assert.equal(await versionOf(namespace), "2");
    await hasActors(namespace, 2);
    await eventually(async () => (await world.status(namespace, "run")).runtime?.generation === 2);
  });

  test("With upgradePolicy Immediately a change applies at once", async () => {
    await world.runtime("at-once", { learner: { podTemplate: noted("1") } });
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { runtimeRef: { name: "at-once" }, upgradePolicy: "Immediately" });
    await answers(namespace);
    const uid = await learnerUid(namespace);
    await world.runtime("at-once", { learner: { podTemplate: noted("2") } });
    await eventually(async () => (await learnerUid(namespace)) !== uid && (await learnerUid(namespace)) !== undefined);
    assert.equal(await versionOf(namespace), "2");
  });

  test("A run waits for a runtime that is missing, with a condition, and starts when it appears", async () => {
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { runtimeRef: { name: "later" } });
    const { message } = await hasReason(namespace, "Ready", "RuntimeMissing");
    assert.match(
      message!,
      /^spec\.runtimeRef\.name is later: there is no TrainingRuntime of this name; create it, or name/,
    );
    await hasEvent(namespace, /^RuntimeMissing: spec\.runtimeRef\.name is later/);
    assert.equal((await world.status(namespace, "run")).phase, "Pending");
    assert.deepEqual(await world.list(DEPLOYMENT, namespace), []);
    await world.runtime("later", { learner: { podTemplate: noted("1") } });
    // The controller watches runtimes: without that it would look again after 15 s.
    await eventually(() => world.deployment(namespace, "run"), 10);
    await answers(namespace);
    assert.equal(await versionOf(namespace), "1");
  });

  test("A run goes on when its runtime is deleted, and waits for one after a suspension", async () => {
    await world.runtime("leaving", { learner: { podTemplate: noted("1") } });
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { runtimeRef: { name: "leaving" }, upgradePolicy: "Immediately" });
    await answers(namespace);
    const uid = await learnerUid(namespace);
    await world.deleteRuntime("leaving");
    await sleep(SETTLE_SECONDS * 1000);
    assert.deepEqual([await learnerUid(namespace), await versionOf(namespace)], [uid, "1"]);
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    await eventually(async () => (await world.status(namespace, "run")).runtime === undefined);
    await world.patchRun(namespace, "run", { suspend: false });
    await hasReason(namespace, "Ready", "RuntimeMissing");
    assert.equal((await world.deployment(namespace, "run"))!.spec!.replicas, 0);
  });
});

describe("Limits of a TrainingRuntime", { skip, concurrency: 4 }, () => {
  const REFUSED: [what: string, spec: object, message: RegExp][] = [
    [
      "GPUs",
      { learner: { resources: { limits: { "nvidia.com/gpu": 2 } } } },
      /spec\.learner\.resources\.limits: the run takes 2 GPUs; limits\.gpus is 1/,
    ],
    ["actors", { actors: { max: 5 } }, /spec\.actors\.max is 5; limits\.actors is 4/],
    [
      "a storage class",
      { learner: { storage: { className: "slow" } } },
      /spec\.learner\.storage\.className is slow; limits\.storageClassNames allows fast/,
    ],
    [
      "a priority class",
      { actors: { podTemplate: { spec: { priorityClassName: "high" } } } },
      /spec\.actors\.podTemplate\.spec\.priorityClassName is high; limits\.priorityClassNames allows low/,
    ],
    [
      "a runtime class",
      { actors: { runtimeClassName: "kata" } },
      /spec\.actors\.runtimeClassName is kata; limits\.runtimeClassNames allows gvisor/,
    ],
    [
      "an image",
      { learner: { image: "docker.io/a:1" } },
      /spec\.learner\.image is docker\.io\/a:1; limits\.images allows registry\.example\.com\/ml\/\*/,
    ],
    [
      "slots that its isolation does not allow",
      { actors: { slots: 2 } },
      /spec\.actors.* actors\.isolation Pod runs one execution per pod/,
    ],
  ];
  for (const [what, spec, message] of REFUSED)
    test(`A run that takes ${what} is refused with field, value and runtime`, async () => {
      const namespace = await world.namespace();
      await world.createRun(namespace, "run", { runtimeRef: { name: "strict" }, ...spec });
      const ready = await hasReason(namespace, "Ready", "RuntimeRefuses");
      assert.match(ready.message!, /^TrainingRuntime strict does not allow it: /);
      assert.match(ready.message!, message);
      assert.equal((await conditionOf(namespace, "Stalled"))?.reason, "RuntimeRefuses");
      assert.deepEqual(await world.list(DEPLOYMENT, namespace), []);
      await world.client.delete(
        TRAINING_RUN,
        { namespace, name: "run" },
        { uid: (await world.run(namespace, "run"))!.metadata.uid },
      );
    });

  test("A limit that is raised lets the run start; an edit beyond it changes nothing until it is corrected", async () => {
    await world.runtime("raised", { limits: { actors: 1 } });
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { runtimeRef: { name: "raised" }, actors: { max: 3 } });
    await hasReason(namespace, "Ready", "RuntimeRefuses");
    await world.runtime("raised", { limits: { actors: 3 } });
    await answers(namespace);
    await eventually(async () => (await world.status(namespace, "run")).images);
    await hasActors(namespace, 1);
    const uid = await learnerUid(namespace);
    await world.patchRun(namespace, "run", { actors: { min: 9, max: 9 }, learner: { image: "other:1" } });
    const { message } = await hasReason(namespace, "Ready", "RuntimeRefuses");
    assert.match(message!, /spec\.actors\.max is 9; limits\.actors is 3/);
    await sleep(SETTLE_SECONDS * 1000);
    assert.equal((await world.actors(namespace, "run")).length, 1);
    assert.equal(await learnerUid(namespace), uid);
    await world.patchRun(namespace, "run", { actors: { min: 2, max: 3 }, learner: { image: null } });
    await hasActors(namespace, 2);
    await hasReason(namespace, "Ready", "Training");
    assert.equal(await learnerUid(namespace), uid);
  });
});

describe("An upgraded controller", { skip }, () => {
  test("A learner goes on while the default runtime is missing, which Helm makes after the controller", async () => {
    await restartOperator({ settings: DEFAULT_SETTINGS });
    const namespace = await world.namespace();
    await world.createRun(namespace, "run");
    await answers(namespace);
    await eventually(async () => (await world.status(namespace, "run")).images);
    await eventually(async () => (await world.status(namespace, "run")).actors?.idle === 1);
    const uid = await learnerUid(namespace);
    await restartOperator({ settings: { ...DEFAULT_SETTINGS, defaultRuntime: "of-the-chart" } });
    const { message } = await hasReason(namespace, "Ready", "RuntimeMissing");
    assert.match(message!, /^the controller's default runtime is of-the-chart: there is no TrainingRuntime/);
    const from = world.auditLength();
    await sleep(SETTLE_SECONDS * 1000);
    const written = world.writes(namespace, from).filter(({ subresource }) => subresource !== "status");
    assert.deepEqual(written, []);
    await world.runtime("of-the-chart", { learner: { podTemplate: noted("1") } });
    await hasReason(namespace, "Ready", "Training");
    await sleep(SETTLE_SECONDS * 1000);
    assert.deepEqual([await learnerUid(namespace), await versionOf(namespace)], [uid, undefined]);
    assert.equal((await world.status(namespace, "run")).runtime?.name, "of-the-chart");
  });
});

describe("Without rights", { skip }, () => {
  test("A run without a runtime works while the controller cannot read TrainingRuntimes, and one with it says why it waits", async () => {
    const name = "longrun-controller-runtimes";
    const binding = (await world.client.get<KubeObject & { roleRef: object; subjects: object[] }>(BINDING, { name }))!;
    await world.client.delete(BINDING, { name }, { uid: binding.metadata.uid! });
    try {
      await restartOperator({ settings: DEFAULT_SETTINGS });
      const namespace = await world.namespace();
      await world.createRun(namespace, "run");
      await answers(namespace);
      const other = await world.namespace();
      await world.createRun(other, "run", { runtimeRef: { name: "default" } });
      const { message } = await hasReason(other, "Ready", "RuntimeMissing");
      assert.match(
        message!,
        /the controller cannot read TrainingRuntimes \(.*forbidden.*\); install their CRD and let/s,
      );
    } finally {
      const { roleRef, subjects } = binding;
      await world.client.create(BINDING, { metadata: { name }, roleRef, subjects } as KubeObject);
    }
  });
});
