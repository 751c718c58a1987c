/** Tests evicted actors and lost nodes, with a real API server and real controllers. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { JOB, type Job, POD, type Pod } from "../../controller/operator/kube/resources.ts";
import { conditionOf, skip, start, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

useWorld();

describe("The controller and actors that are taken away", { skip, concurrency: 4 }, () => {
  /** Starts a run with one actor, whose pod has a node: deleting it then asks the node and takes effect later. */
  const startOnNode = async () => {
    const { namespace, learner } = await start({
      tasks: [{ name: "diamonds", executionTimeoutSeconds: 100 }],
      actors: { min: 1, max: 1, stopGraceSeconds: 7 },
    });
    const pod = await podOf(namespace, "run-actor-0-0");
    await world.client.request({
      method: "POST",
      path: `/api/v1/namespaces/${namespace}/pods/${pod.metadata.name}/binding`,
      body: { metadata: { name: pod.metadata.name }, target: { kind: "Node", name: "node-1" } },
    });
    await eventually(async () => (await world.status(namespace, "run")).actors?.idle === 1);
    return { namespace, learner, pod };
  };
  const podOf = (namespace: string, job: string): Promise<Pod> =>
    eventually(async () => {
      const pods = await world.podsOf(namespace, "run", "actor");
      return pods.find((it) => jobNameOf(it) === job && it.status?.phase === "Running");
    });
  const jobNameOf = ({ metadata }: Pod) => metadata.labels?.["batch.kubernetes.io/job-name"];
  const now = async (pod: Pod) =>
    world.client.get<Pod>(POD, { namespace: pod.metadata.namespace!, name: pod.metadata.name });
  const actorsScaled = (namespace: string) => conditionOf(namespace, "ActorsScaled");
  const evict = ({ metadata: { namespace, name } }: Pod) =>
    world.client.request({
      method: "POST",
      path: `/api/v1/namespaces/${namespace}/pods/${name}/eviction`,
      body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { namespace, name } },
    });

  test("The controller replaces an evicted actor while it finishes, tells its learner, and counts no failure", async () => {
    const { namespace, learner, pod } = await startOnNode();
    await evict(pod);
    await podOf(namespace, "run-actor-0-1");
    const leaving = (await now(pod))!;
    assert.ok(leaving.metadata.deletionTimestamp, "the evicted pod is still there");
    assert.equal(
      (leaving.metadata as { deletionGracePeriodSeconds?: number }).deletionGracePeriodSeconds,
      107,
      "time for its program, and to hand in",
    );
    await eventually(() => learner.reported.some(({ disrupted }) => disrupted?.includes("run-actor-0-0")));
    await eventually(async () =>
      (await world.events(namespace)).some((it) => /^ActorsDisrupted: run-actor-0-0/.test(it)),
    );

    // Killed at the end of its grace period: the Job makes no other pod, and no failure is counted.
    const conditions = leaving.status!.conditions!.filter(({ type }) => type === "DisruptionTarget");
    assert.equal(conditions.length, 1, "the eviction says so");
    await world.pods.end(leaving, 137, conditions);
    await eventually(async () => {
      const job = await world.client.get<Job>(JOB, { namespace, name: "run-actor-0-0" });
      return job?.status?.conditions?.some(
        ({ type, message }) => type === "Failed" && /has condition DisruptionTarget/.test(message ?? ""),
      );
    });
    await world.deletePod(leaving);
    await sleep(1500);
    const pods = await world.podsOf(namespace, "run", "actor");
    assert.deepEqual(pods.map(jobNameOf), ["run-actor-0-1"]);
    assert.equal((await actorsScaled(namespace))?.status, "True");
    assert.equal(learner.reported.filter(({ disrupted }) => disrupted?.length).length, 1, "told once");
    assert.ok(!(await world.events(namespace)).some((it) => /^ActorsFailing/.test(it)));
  });

  test("The controller replaces an actor on a silent node at once, and its Job waits for nothing", async () => {
    const { namespace, learner, pod } = await startOnNode();
    const jobKey = { namespace, name: "run-actor-0-0" };
    // Like the node controller: Ready becomes False, everything else stays as the kubelet wrote it.
    const conditions = pod.status!.conditions!.map((it) => (it.type === "Ready" ? { ...it, status: "False" } : it));
    await world.client.mergePatch(
      POD,
      { namespace, name: pod.metadata.name },
      { status: { conditions } },
      { subresource: "status" },
    );
    await podOf(namespace, "run-actor-0-1");
    await eventually(async () => (await world.client.get(JOB, jobKey))?.metadata.deletionTimestamp !== undefined);
    await eventually(() => learner.reported.some(({ disrupted }) => disrupted?.includes("run-actor-0-0")));
    const lost = await eventually(async () => {
      const found = await now(pod);
      return found?.metadata.deletionTimestamp !== undefined && found;
    });
    assert.equal(lost.status?.phase, "Running", "the pod stays until its node is back");
    await eventually(async () => (await actorsScaled(namespace))?.status === "True");

    // Its name is not reused while its pod exists.
    const successor = (await world.client.get(JOB, { namespace, name: "run-actor-0-1" }))!;
    await world.client.delete(JOB, { namespace, name: "run-actor-0-1" }, { uid: successor.metadata.uid! });
    await eventually(async () => {
      const found = await world.client.get(JOB, { namespace, name: "run-actor-0-1" });
      return found !== undefined && found.metadata.uid !== successor.metadata.uid;
    });
    const job = await world.client.get(JOB, jobKey);
    assert.ok(job?.metadata.deletionTimestamp, "the first Job waits for its pod");
  });
});
