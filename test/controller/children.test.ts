/** Tests children that the API server refuses, one at a time, with a real API server. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { RUN } from "../../controller/operator/desired/names.ts";
import {
  CONFIG_MAP,
  EVENT,
  JOB,
  PERSISTENT_VOLUME_CLAIM,
  type PersistentVolumeClaim,
  POD,
  SERVICE,
} from "../../controller/operator/kube/resources.ts";
import type { KubeObject, Resource } from "../../controller/operator/kube/types.ts";
import { conditionOf, hasEvent, skip, start, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

const clusterWide = (group: string, plural: string, kind: string): Resource => ({
  ...{ group, version: "v1", plural, kind, namespaced: false },
});
const STORAGE_CLASS = clusterWide("storage.k8s.io", "storageclasses", "StorageClass");
const POLICY = clusterWide("admissionregistration.k8s.io", "validatingadmissionpolicies", "ValidatingAdmissionPolicy");
const BINDING = clusterWide(
  "admissionregistration.k8s.io",
  "validatingadmissionpolicybindings",
  "ValidatingAdmissionPolicyBinding",
);

useWorld();

describe("children", { skip, concurrency: 6 }, () => {
  const isAvailable = async (namespace: string) =>
    (await conditionOf(namespace, "LearnerAvailable"))?.status === "True";
  const phaseOf = async (namespace: string) => (await world.status(namespace, "run")).phase;
  const replicasOf = async (namespace: string) => (await world.deployment(namespace, "run"))?.spec?.replicas;
  const claimOf = (namespace: string) =>
    world.client.get<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, { namespace, name: "run-data" });
  const requestOf = async (namespace: string) => (await claimOf(namespace))?.spec?.resources?.requests?.storage;
  const storageClass = (name: string, allowVolumeExpansion: boolean) =>
    world.client.create(STORAGE_CLASS, {
      ...{ metadata: { name }, provisioner: "example.com/none", allowVolumeExpansion },
    } as KubeObject);
  /** Binds the claim, as the volume controller does when it has made a volume. */
  const bind = async (namespace: string, size: string) => {
    const key = { namespace, name: "run-data" };
    await world.client.mergePatch(PERSISTENT_VOLUME_CLAIM, key, { spec: { volumeName: `pv-${namespace}` } });
    const status = { phase: "Bound", capacity: { storage: size } };
    await world.client.mergePatch(PERSISTENT_VOLUME_CLAIM, key, { status }, { subresource: "status" });
  };
  /** Makes the API server refuse writes of this kind in the namespace. */
  const refuse = async (namespace: string, { group, plural }: Resource) => {
    const name = `no-${plural}-${namespace}`;
    const rule = { apiGroups: [group], apiVersions: ["v1"], resources: [plural], operations: ["CREATE", "UPDATE"] };
    const matchConstraints = {
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
      resourceRules: [rule],
    };
    const validations = [{ expression: "false", message: `no ${plural} today` }];
    await world.client.create(POLICY, { metadata: { name }, spec: { matchConstraints, validations } } as KubeObject);
    const binding = await world.client.create(BINDING, {
      metadata: { name },
      spec: { policyName: name, validationActions: ["Deny"] },
    } as KubeObject);
    // A policy takes effect some time after it was written.
    const path = `/${group ? `apis/${group}` : "api"}/v1/namespaces/${namespace}/${plural}?dryRun=All`;
    await eventually(async () => {
      const spec = { ports: [{ port: 1 }] };
      const body = { metadata: { name: `probe-${Math.random().toString(36).slice(2)}` }, spec };
      return world.client.request({ method: "POST", path, body }).then(
        () => false,
        (error: Error) => /today/.test(error.message),
      );
    });
    return () => world.client.delete(BINDING, { name }, { uid: binding.metadata.uid! });
  };

  test("A volume that its class cannot grow is named; training continues, and a suspension still stops the learner", async () => {
    await storageClass("stiff", false);
    const { namespace } = await start({ learner: { storage: { size: "1Gi", className: "stiff" } } });
    await bind(namespace, "1Gi");
    await world.patchRun(namespace, "run", { learner: { storage: { size: "2Gi" } } });
    await hasEvent(namespace, /^VolumeNotResized: spec\.learner\.storage\.size is 2Gi.*1Gi.*StorageClass stiff/);
    const applied = await conditionOf(namespace, "ObjectsApplied");
    assert.deepEqual([applied?.status, applied?.reason], ["False", "VolumeNotResized"]);
    assert.equal((await conditionOf(namespace, "Ready"))?.status, "True");
    assert.equal((await conditionOf(namespace, "LearnerAvailable"))?.status, "True");
    // Other changes of the claim are still applied: from now on it is deleted with the run.
    await world.patchRun(namespace, "run", { learner: { storage: { retain: "Never" } } });
    await eventually(async () => (await claimOf(namespace))?.metadata.ownerReferences?.length === 1);

    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await phaseOf(namespace)) === "Suspended");
    assert.equal(await replicasOf(namespace), 0);
    assert.equal((await world.podsOf(namespace, "run", "learner")).length, 0);
    await world.patchRun(namespace, "run", { suspend: false });
    await eventually(() => isAvailable(namespace));

    await world.client.mergePatch(STORAGE_CLASS, { name: "stiff" }, { allowVolumeExpansion: true });
    await eventually(async () => (await requestOf(namespace)) === "2Gi");
    await eventually(async () => (await conditionOf(namespace, "ObjectsApplied")) === undefined);
  });

  test("A volume that an autoresizer has enlarged keeps its size until the spec asks for more", async () => {
    await storageClass("elastic", true);
    const { namespace } = await start({ learner: { storage: { size: "1Gi", className: "elastic" } } });
    await bind(namespace, "1Gi");
    const key = { namespace, name: "run-data" };
    const from = world.auditLength();
    const request = { spec: { resources: { requests: { storage: "3Gi" } } } };
    await world.client.mergePatch(PERSISTENT_VOLUME_CLAIM, key, request);
    await world.patchRun(namespace, "run", { actors: { max: 2 } });
    await sleep(2000);
    assert.equal(await requestOf(namespace), "3Gi");
    const writes = () =>
      world.writes(namespace, from).filter(({ resource }) => resource.endsWith("persistentvolumeclaims"));
    assert.deepEqual(writes(), []);
    await world.patchRun(namespace, "run", { learner: { storage: { size: "4Gi" } } });
    await eventually(async () => (await requestOf(namespace)) === "4Gi");
    assert.ok(writes().every(({ code }) => code < 400));
  });

  test("The controller does not start a learner before its objects exist", async () => {
    const namespace = await world.namespace();
    const allow = await refuse(namespace, CONFIG_MAP);
    await world.createRun(namespace, "run");
    const blocked = await eventually(async () => {
      const found = await conditionOf(namespace, "LearnerAvailable");
      return found?.reason === "Refused" && found;
    });
    assert.match(blocked.message, /no configmaps today/);
    // Children that do not need it exist already.
    assert.ok(await world.client.get(SERVICE, { namespace, name: "run-learner" }));
    assert.equal(await world.deployment(namespace, "run"), undefined);
    await allow();
    await eventually(() => isAvailable(namespace));
  });

  test("A refused Service neither stops a learner that trains nor keeps a suspended one", async () => {
    const { namespace } = await start();
    await refuse(namespace, SERVICE);
    const service = (await world.client.get(SERVICE, { namespace, name: "run-learner" }))!;
    await world.client.delete(SERVICE, { namespace, name: "run-learner" }, { uid: service.metadata.uid! });
    await eventually(async () => (await conditionOf(namespace, "ObjectsApplied"))?.reason === "Refused");
    assert.equal((await conditionOf(namespace, "LearnerAvailable"))?.status, "True", "the learner answers");
    assert.equal((await conditionOf(namespace, "Ready"))?.reason, "Refused");
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await phaseOf(namespace)) === "Suspended");
    assert.equal(await replicasOf(namespace), 0);
  });

  test("The Job that copies a checkpoint follows learner.podTemplate and its correction, and names its blocker", async () => {
    const namespace = await world.namespace();
    const { holds } = world;
    world.holds = (pod) => holds(pod) || pod.metadata.namespace === namespace;
    await world.client.create(PERSISTENT_VOLUME_CLAIM, {
      metadata: { namespace, name: "saved", labels: { [RUN]: "other" } },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    } as KubeObject);
    await world.createRun(namespace, "run", { initFrom: { run: "other" } });
    const podOf = (nodeSelector: object | undefined) =>
      eventually(async () => {
        const pods = await world.podsOf(namespace, "run", "init");
        return pods.find(({ spec }) => JSON.stringify(spec?.nodeSelector) === JSON.stringify(nodeSelector));
      });
    const first = await podOf(undefined);
    const spec = { nodeSelector: { zone: "b" }, imagePullSecrets: [{ name: "registry" }] };
    await world.patchRun(namespace, "run", { learner: { podTemplate: { spec } } });
    const pod = await podOf({ zone: "b" });
    assert.notEqual(pod.metadata.uid, first.metadata.uid);
    assert.deepEqual(pod.spec!.imagePullSecrets, spec.imagePullSecrets);
    const jobs = await world.list(JOB, namespace);
    assert.deepEqual(
      jobs.map(({ metadata }) => metadata.name),
      ["run-init"],
    );

    const { name, uid } = pod.metadata;
    const note = 'Multi-Attach error for volume "pv-1" Volume is already exclusively attached to one node';
    await world.client.create(EVENT, {
      metadata: { namespace, name: "attach" },
      ...{ type: "Warning", reason: "FailedAttachVolume", note, action: "Attach", regarding: { namespace, name, uid } },
      reportingController: "attachdetach",
      reportingInstance: "a",
      eventTime: new Date().toISOString().replace("Z", "000Z"),
    } as KubeObject);
    const found = await eventually(async () => {
      const condition = await conditionOf(namespace, "LearnerAvailable");
      return condition?.reason === "VolumeAttachedElsewhere" && condition;
    });
    assert.match(found.message, /the volume of run other \(spec\.initFrom\.run\).*suspend that run/);
  });

  test("a run is Suspended when the learner's pod is gone, not before", async () => {
    const { namespace } = await start();
    const [pod] = await world.podsOf(namespace, "run", "learner");
    const key = { namespace, name: pod!.metadata.name };
    await world.client.mergePatch(POD, key, { metadata: { finalizers: ["example.com/hold"] } });
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await replicasOf(namespace)) === 0);
    await eventually(async () => (await world.client.get(POD, key))?.metadata.deletionTimestamp);
    await sleep(2000);
    assert.notEqual(await phaseOf(namespace), "Suspended");
    const suspended = await conditionOf(namespace, "Suspended");
    assert.deepEqual([suspended?.status, suspended?.reason], ["False", "Suspending"]);
    assert.match(suspended!.message, new RegExp(`pod ${pod!.metadata.name} ends`));
    await world.client.mergePatch(POD, key, { metadata: { finalizers: null } });
    await eventually(async () => (await phaseOf(namespace)) === "Suspended");
  });
});
