/** Tests two controllers, and a run that is deleted and created again. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import {
  CONFIG_MAP,
  type ConfigMap,
  DEPLOYMENT,
  LEASE,
  type Lease,
  TRAINING_RUN,
} from "../../controller/operator/kube/resources.ts";
import type { KubeObject } from "../../controller/operator/kube/types.ts";
import { findCondition } from "../../controller/operator/status/conditions.ts";
import { CONTROL_PLANE } from "../cluster/binaries.ts";
import { controlPlaneUnavailable } from "../cluster/control-plane.ts";
import { eventually, World } from "../controller/world.ts";
import { ApiProxy } from "./api-proxy.ts";
import type { ApiRequest } from "./api-request.ts";
import { Controller, isReconcileWrite, RUN } from "./controller-life.ts";

const LEADER_ELECTION = new URL("../../manifests/install/controller/leader-election.yaml", import.meta.url);
/** The lease duration of `controller-process.ts`. */
const LEASE_SECONDS = 8;
const SLOW = 90;

const skip = controlPlaneUnavailable(CONTROL_PLANE) ?? false;

describe("controllers", { skip, concurrency: true }, () => {
  let world: World;
  const controllers: Controller[] = [];
  const processes: ChildProcess[] = [];
  const proxies: ApiProxy[] = [];

  before(async () => {
    world = await World.start();
  });
  after(async () => {
    for (const process of processes) process.kill("SIGKILL");
    for (const controller of controllers) await controller.stop();
    for (const proxy of proxies) await proxy.stop();
    await world?.stop();
  });

  async function controller(): Promise<Controller> {
    const started = await Controller.start(world);
    controllers.push(started);
    return started;
  }

  /** Makes the namespace the controller's own, so that it may take the Lease there. */
  async function ownNamespace(): Promise<string> {
    const namespace = await world.namespace();
    const rbac = { group: "rbac.authorization.k8s.io", version: "v1", namespaced: true };
    const role = parseAllDocuments(await readFile(LEADER_ELECTION, "utf8"))[0]!.toJS() as KubeObject;
    const metadata = { name: role.metadata.name, namespace };
    await world.client.create({ ...rbac, plural: "roles", kind: "Role" }, { ...role, metadata });
    await world.client.create({ ...rbac, plural: "rolebindings", kind: "RoleBinding" }, {
      metadata,
      roleRef: { apiGroup: rbac.group, kind: "Role", name: metadata.name },
      subjects: [{ apiGroup: rbac.group, kind: "User", name: "controller" }],
    } as KubeObject);
    return namespace;
  }

  async function contender(identity: string, namespace: string) {
    const proxy = await ApiProxy.start(world.controlPlane);
    proxies.push(proxy);
    const script = fileURLToPath(new URL("./controller-process.ts", import.meta.url));
    const kubeconfig = await proxy.kubeconfigOf("controller");
    const child = spawn(process.execPath, [script, kubeconfig, identity, namespace, namespace], { stdio: "inherit" });
    processes.push(child);
    return { proxy, child, exited: once(child, "exit") };
  }

  const leader = async (namespace: string) =>
    (await world.client.get<Lease>(LEASE, { namespace, name: "longrun-controller" }))?.spec?.holderIdentity;
  const leads = (namespace: string, identity: string) =>
    eventually(async () => (await leader(namespace)) === identity, SLOW);
  const writesTo = (proxy: ApiProxy): ApiRequest[] => proxy.writes.filter(isReconcileWrite);
  const config = (namespace: string) => world.client.get<ConfigMap>(CONFIG_MAP, { namespace, name: `${RUN}-config` });

  test("A leader that is paused past its lease changes nothing afterwards", async () => {
    const namespace = await ownNamespace();
    const first = await contender("first", namespace);
    await leads(namespace, "first");
    const second = await contender("second", namespace);
    await world.createRun(namespace, RUN);
    await eventually(() => world.deployment(namespace, RUN), SLOW);
    await eventually(() => Date.now() - (writesTo(first.proxy).at(-1)?.atMs ?? 0) > 1000, SLOW);
    assert.deepEqual(writesTo(second.proxy), [], "who does not lead writes nothing");

    // The leader is stopped while its write of a changed configuration is on the wire.
    let held: ApiRequest | undefined;
    const released = Promise.withResolvers<void>();
    first.proxy.beforeWrite = async (request) => {
      if (request.resource !== "configmaps") return;
      first.child.kill("SIGSTOP");
      held = request;
      await released.promise;
    };
    await world.patchRun(namespace, RUN, { stopping: { iterations: 11 } });
    const write = await eventually(() => held, SLOW);
    const stoppedAtMs = Date.now();
    await leads(namespace, "second");
    assert.ok(Date.now() - stoppedAtMs > LEASE_SECONDS * 500, "the lease was not waited for");
    await world.patchRun(namespace, RUN, { stopping: { iterations: 12 } });
    const iterations = async () =>
      /iterations: (\d+)/.exec((await config(namespace))?.data?.["trainingrun.yaml"] ?? "")?.[1];
    await eventually(async () => (await iterations()) === "12", SLOW);
    const before = (await config(namespace))!.metadata.resourceVersion;
    const sent = writesTo(first.proxy).length;

    released.resolve();
    first.child.kill("SIGCONT");
    await first.exited;
    assert.equal(write.code, 409, "the late write has the old resource version");
    assert.equal(writesTo(first.proxy).length, sent, "the first leader wrote again");
    assert.equal((await config(namespace))!.metadata.resourceVersion, before);
  });

  test("Another controller leads within the lease time of a killed leader", async () => {
    const namespace = await ownNamespace();
    const first = await contender("first", namespace);
    await leads(namespace, "first");
    const second = await contender("second", namespace);
    await eventually(() => second.proxy.requests.some(({ resource }) => resource.endsWith("/leases")), SLOW);
    first.child.kill("SIGKILL");
    const killedAtMs = performance.now();
    await world.createRun(namespace, RUN);
    await leads(namespace, "second");
    const seconds = (performance.now() - killedAtMs) / 1000;
    assert.ok(seconds < 2 * LEASE_SECONDS, `${seconds} s`);
    await eventually(() => world.deployment(namespace, RUN), SLOW);
  });

  test("A new run with an old run's name takes over none of its objects", async () => {
    const { namespace } = await controller();
    await world.createRun(namespace, RUN, { learner: { storage: { retain: "Never" } } });
    const key = { namespace, name: RUN };
    await eventually(() => world.deployment(namespace, RUN), SLOW);
    const config = (await world.client.get<ConfigMap>(CONFIG_MAP, { namespace, name: `${RUN}-config` }))!;
    // A child that stays for a while, as with another controller's finalizer.
    await world.client.mergePatch(CONFIG_MAP, config.metadata, { metadata: { finalizers: ["example.com/hold"] } });
    const old = (await world.run(namespace, RUN))!;
    await world.client.delete(TRAINING_RUN, key, { uid: old.metadata.uid });
    await eventually(async () => (await world.run(namespace, RUN)) === undefined, SLOW);
    const { metadata } = await world.createRun(namespace, RUN, { learner: { storage: { retain: "Never" } } });
    assert.notEqual(metadata.uid, old.metadata.uid);
    const blocked = await eventually(async () => {
      const condition = findCondition((await world.status(namespace, RUN)).conditions, "Ready");
      // Other children are deleted first, and named while they exist.
      return condition?.reason === "NameTaken" && condition.message?.includes("ConfigMap life-config");
    }, SLOW);
    assert.ok(blocked);
    const held = (await world.client.get<ConfigMap>(CONFIG_MAP, config.metadata))!;
    assert.deepEqual(
      [held.metadata.uid, held.metadata.ownerReferences?.[0]?.uid],
      [config.metadata.uid, old.metadata.uid],
    );
    await world.client.mergePatch(CONFIG_MAP, config.metadata, { metadata: { finalizers: null } });
    await eventually(async () => {
      const deployment = await world.client.get(DEPLOYMENT, { namespace, name: `${RUN}-learner` });
      return deployment?.metadata.ownerReferences?.[0]?.uid === metadata.uid;
    }, SLOW);
    await eventually(async () => (await world.status(namespace, RUN)).phase === "Running", SLOW);
  });
});
