/** Tests lost and drained nodes of a learner, with a real API server. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ApiError } from "../../controller/operator/kube/errors.ts";
import {
  POD,
  POD_DISRUPTION_BUDGET,
  type Pod,
  type PodDisruptionBudget,
} from "../../controller/operator/kube/resources.ts";
import { OVERDUE_SECONDS } from "../../controller/operator/parts/volume/node-loss.ts";
import { conditionOf, skip, start, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

const NODE = { group: "", version: "v1", plural: "nodes", kind: "Node", namespaced: false };

/** Offset of the controller's clock. It only grows, so only the first test sees a pod in time. */
let aheadMs = 0;
useWorld({
  controller: { now: () => Date.now() + aheadMs },
  parts: { controllers: ["disruption-controller", "node-lifecycle-controller", "taint-eviction-controller"] },
});

describe("The controller and a learner's node", { skip }, () => {
  const startWith = async (learner: object = {}) =>
    (await start({ learner: { stopGraceSeconds: 1, ...learner } })).namespace;
  /** Puts the learner's pod on a node that stops reporting. */
  const loseNode = async (namespace: string): Promise<Pod> => {
    const [pod] = await world.podsOf(namespace, "run", "learner");
    const { name } = pod!.metadata;
    await bind(pod!, "node-7");
    const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, "");
    const conditions = pod!.status!.conditions!.map((it) =>
      it.type === "Ready" ? { ...it, status: "False", lastTransitionTime } : it,
    );
    await world.client.mergePatch(POD, { namespace, name }, { status: { conditions } }, { subresource: "status" });
    world.learners.get(`${namespace}/run`)?.stop();
    return pod!;
  };
  /** Deletes the pod like the taint manager after the pod's toleration. */
  const evict = ({ metadata: { namespace, name, uid } }: Pod) =>
    world.client.delete(POD, { namespace: namespace!, name }, { uid: uid! });
  const isThere = async ({ metadata: { namespace, name, uid } }: Pod) =>
    (await world.client.get(POD, { namespace: namespace!, name }))?.metadata.uid === uid;
  const waitsForNode = (namespace: string, pattern: RegExp, seconds?: number) =>
    eventually(async () => {
      const found = await conditionOf(namespace, "LearnerAvailable");
      return found?.reason === "NodeLost" && pattern.test(found.message) && found;
    }, seconds);
  const holdNew = (namespace: string) => {
    const { holds } = world;
    world.holds = (pod) => holds(pod) || pod.metadata.namespace === namespace;
  };

  /** Reports like a kubelet. */
  const reportNode = (name: string) => {
    const at = new Date().toISOString().replace(/\.\d+/, "");
    const ready = { type: "Ready", status: "True", reason: "KubeletReady", message: "" };
    const conditions = [{ ...ready, lastHeartbeatTime: at, lastTransitionTime: at }];
    return world.client.mergePatch(NODE, { name }, { status: { conditions } }, { subresource: "status" });
  };

  test("forceDetach recognises the lost node's pod as Kubernetes' controllers leave it, and deletes it when overdue", async (t) => {
    for (const name of ["alive", "lost"]) {
      await world.client.create(NODE, { metadata: { name } });
      await reportNode(name);
    }
    // If no node at all answers, the node controller assumes that its own connection is broken.
    const reports = setInterval(() => void reportNode("alive").catch(() => {}), 5000);
    t.after(() => clearInterval(reports));
    const tolerations = ["unreachable", "not-ready"].map((it) => ({
      ...{ key: `node.kubernetes.io/${it}`, operator: "Exists", effect: "NoExecute", tolerationSeconds: 10 },
    }));
    const namespace = await startWith({ storage: { forceDetach: true }, podTemplate: { spec: { tolerations } } });
    const [pod] = await world.podsOf(namespace, "run", "learner");
    await bind(pod!, "lost");
    world.mute = (it) => it.metadata.uid === pod!.metadata.uid;
    await waitsForNode(namespace, /^node lost has not answered since .*its toleration/, 120);
    const key = { namespace, name: pod!.metadata.name };
    const conditions = await eventually(async () => {
      const found = await world.client.get<Pod>(POD, key);
      return found?.metadata.deletionTimestamp ? found.status?.conditions : undefined;
    });
    assert.ok(conditions.some(({ reason }) => reason === "DeletionByTaintManager"));
    await sleep(3000);
    assert.ok(await isThere(pod!), "not before it is overdue");
    aheadMs += OVERDUE_SECONDS * 1000;
    await world.patchRun(namespace, "run", { actors: { max: 2 } }); // so that the controller reconciles
    await eventually(async () => !(await isThere(pod!)));
    const told = await eventually(async () => {
      const found = (await world.events(namespace)).filter((it) => it.startsWith("PodForceDeleted"));
      return found.length > 0 && found;
    });
    assert.match(told.join(), new RegExp(`^PodForceDeleted: pod ${key.name} .*node lost does not answer`));
    await eventually(async () => (await conditionOf(namespace, "LearnerAvailable"))?.status === "True");
  });

  test("The condition names a lost node and the remedy; the controller deletes nothing by force unasked", async () => {
    const namespace = await startWith();
    const pod = await loseNode(namespace);
    await waitsForNode(namespace, /^node node-7 has not answered since .*its toleration/);
    holdNew(namespace);
    await evict(pod);
    await eventually(async () => (await world.podsOf(namespace, "run", "learner")).length === 2);
    aheadMs += (OVERDUE_SECONDS + 5) * 1000;
    await waitsForNode(namespace, /kubectl taint nodes node-7 node\.kubernetes\.io\/out-of-service/);
    assert.equal((await conditionOf(namespace, "Ready"))?.reason, "NodeLost");
    await sleep(1000);
    assert.ok(await isThere(pod));
    await world.deletePod(pod);
    await eventually(async () => (await conditionOf(namespace, "LearnerAvailable"))?.reason !== "NodeLost");
  });

  const bind = async ({ metadata: { namespace, name } }: Pod, node: string) => {
    const target = { apiVersion: "v1", kind: "Node", name: node };
    const body = { apiVersion: "v1", kind: "Binding", metadata: { name }, target };
    await world.client.request({ method: "POST", path: `/api/v1/namespaces/${namespace}/pods/${name}/binding`, body });
  };

  /** Evicts like `kubectl drain`. @returns the HTTP status */
  const drain = async ({ metadata: { namespace, name } }: Pod): Promise<number> => {
    const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { namespace, name } };
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
    return world.client.request({ method: "POST", path, body }).then(
      () => 201,
      ({ status }: ApiError) => status,
    );
  };
  /** Waits until the disruption controller has counted the pods. */
  const counted = (namespace: string, minAvailable: number) =>
    eventually(async () => {
      const budget = await world.client.get<PodDisruptionBudget>(POD_DISRUPTION_BUDGET, {
        ...{ namespace, name: "run-learner" },
      });
      const { observedGeneration, currentHealthy } = budget?.status ?? {};
      return (
        budget?.spec?.minAvailable === minAvailable &&
        observedGeneration === budget.metadata.generation &&
        currentHealthy === 1
      );
    });

  test("A drained node evicts its learner, and another learner continues", async () => {
    const namespace = await startWith();
    const [pod] = await world.podsOf(namespace, "run", "learner");
    await counted(namespace, 0);
    assert.equal(await drain(pod!), 201);
    await eventually(async () => {
      const [next] = await world.podsOf(namespace, "run", "learner");
      return next && next.metadata.uid !== pod!.metadata.uid;
    });
    await eventually(async () => (await conditionOf(namespace, "LearnerAvailable"))?.status === "True");
  });

  test("disruption Protect refuses evictions until the run is edited, which restarts no learner", async () => {
    const namespace = await startWith({ disruption: "Protect" });
    const [pod] = await world.podsOf(namespace, "run", "learner");
    await counted(namespace, 1);
    assert.equal(await drain(pod!), 429);
    await world.patchRun(namespace, "run", { learner: { disruption: "Checkpoint" } });
    await counted(namespace, 0);
    assert.ok(await isThere(pod!));
    assert.equal(await drain(pod!), 201);
  });

  test("forceDetach leaves the pod of an answering node to that node", async () => {
    const namespace = await startWith({ storage: { forceDetach: true } });
    const pod = await loseNode(namespace);
    const conditions = [{ type: "Ready", status: "False", reason: "ContainersNotReady", lastTransitionTime: null }];
    const key = { namespace, name: pod.metadata.name };
    await world.client.mergePatch(POD, key, { status: { conditions } }, { subresource: "status" });
    await evict(pod);
    await eventually(async () => (await world.client.get(POD, key))?.metadata.deletionTimestamp);
    aheadMs += (OVERDUE_SECONDS + 5) * 1000;
    await world.patchRun(namespace, "run", { actors: { max: 2 } });
    await sleep(3000);
    assert.ok(await isThere(pod));
  });
});
