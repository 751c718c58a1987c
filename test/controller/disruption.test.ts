/** Nodes that are lost or drained under a learner, against a real API server. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type ConditionType, findCondition } from "../../controller/conditions.ts";
import type { ApiError } from "../../controller/kube/errors.ts";
import { POD, POD_DISRUPTION_BUDGET, type Pod, type PodDisruptionBudget } from "../../controller/kube/resources.ts";
import { OVERDUE_SECONDS } from "../../controller/node-loss.ts";
import { CONTROL_PLANE } from "../cluster/binaries.ts";
import { controlPlaneUnavailable } from "../cluster/control-plane.ts";
import { eventually, World } from "./world.ts";

const skip = controlPlaneUnavailable(CONTROL_PLANE) ?? false;

let world: World;
/** What the controller's clock is ahead; it never goes back, so the first test alone sees a pod in time. */
let aheadMs = 0;
before(async () => {
  if (skip) return;
  world = await World.start({ controllers: ["disruption-controller"] });
  await world.operator({ now: () => Date.now() + aheadMs });
});
after(() => world?.stop());

describe("disruption", { skip }, () => {
  const conditionOf = async (namespace: string, type: ConditionType) =>
    findCondition((await world.status(namespace, "run")).conditions, type);
  const start = async (learner: object = {}) => {
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { learner: { stopGraceSeconds: 1, ...learner } });
    await eventually(async () => (await conditionOf(namespace, "LearnerAvailable"))?.status === "True");
    return namespace;
  };
  /** The learner's pod, on a node that reports nothing from now on. */
  const loseNode = async (namespace: string): Promise<Pod> => {
    const [pod] = await world.podsOf(namespace, "run", "learner");
    const { name } = pod!.metadata;
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/binding`;
    const target = { apiVersion: "v1", kind: "Node", name: "node-7" };
    const binding = { apiVersion: "v1", kind: "Binding", metadata: { name }, target };
    await world.client.request({ method: "POST", path, body: binding });
    const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, "");
    const conditions = pod!.status!.conditions!.map((it) =>
      it.type === "Ready" ? { ...it, status: "False", lastTransitionTime } : it,
    );
    await world.client.mergePatch(POD, { namespace, name }, { status: { conditions } }, { subresource: "status" });
    world.learners.get(`${namespace}/run`)?.stop();
    return pod!;
  };
  /** As the taint manager does after the pod's toleration. */
  const evict = ({ metadata: { namespace, name, uid } }: Pod) =>
    world.client.delete(POD, { namespace: namespace!, name }, { uid: uid! });
  const isThere = async ({ metadata: { namespace, name, uid } }: Pod) =>
    (await world.client.get(POD, { namespace: namespace!, name }))?.metadata.uid === uid;
  const waitsForNode = (namespace: string, pattern: RegExp) =>
    eventually(async () => {
      const found = await conditionOf(namespace, "LearnerAvailable");
      return found?.reason === "NodeLost" && pattern.test(found.message) && found;
    });
  const holdNew = (namespace: string) => {
    const { holds } = world;
    world.holds = (pod) => holds(pod) || pod.metadata.namespace === namespace;
  };

  test("forceDetach: a pod that its lost node does not end is deleted by force, when it is overdue", async () => {
    const namespace = await start({ storage: { forceDetach: true } });
    const pod = await loseNode(namespace);
    await evict(pod);
    await sleep(3000);
    assert.ok(await isThere(pod), "not before it is overdue");
    aheadMs += OVERDUE_SECONDS * 1000;
    await world.patchRun(namespace, "run", { actors: { max: 2 } }); // so that the controller looks again
    await eventually(async () => !(await isThere(pod)));
    const events = await eventually(async () => {
      const found = (await world.events(namespace)).filter((it) => it.startsWith("PodForceDeleted"));
      return found.length > 0 && found;
    });
    assert.match(events[0]!, new RegExp(`pod ${pod.metadata.name} .*node-7 does not answer`));
    await eventually(async () => (await conditionOf(namespace, "LearnerAvailable"))?.status === "True");
  });

  test("a lost node is named, with what a person can do; nothing is deleted by force unasked", async () => {
    const namespace = await start();
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

  /** As `kubectl drain` does. @returns the HTTP status */
  const drain = async ({ metadata: { namespace, name } }: Pod): Promise<number> => {
    const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { namespace, name } };
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
    return world.client.request({ method: "POST", path, body }).then(
      () => 201,
      ({ status }: ApiError) => status,
    );
  };
  /** Once the disruption controller has counted the pods. */
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

  test("a drained node gets its learner evicted, and another one goes on", async () => {
    const namespace = await start();
    const [pod] = await world.podsOf(namespace, "run", "learner");
    await counted(namespace, 0);
    assert.equal(await drain(pod!), 201);
    await eventually(async () => {
      const [next] = await world.podsOf(namespace, "run", "learner");
      return next && next.metadata.uid !== pod!.metadata.uid;
    });
    await eventually(async () => (await conditionOf(namespace, "LearnerAvailable"))?.status === "True");
  });

  test("disruption Protect: no eviction, until the run is edited, which starts no learner anew", async () => {
    const namespace = await start({ disruption: "Protect" });
    const [pod] = await world.podsOf(namespace, "run", "learner");
    await counted(namespace, 1);
    assert.equal(await drain(pod!), 429);
    await world.patchRun(namespace, "run", { learner: { disruption: "Checkpoint" } });
    await counted(namespace, 0);
    assert.ok(await isThere(pod!));
    assert.equal(await drain(pod!), 201);
  });

  test("forceDetach: a pod whose node answers is left to its node", async () => {
    const namespace = await start({ storage: { forceDetach: true } });
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
