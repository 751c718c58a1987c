/** Tests the number of a run's actors and their life, on a real API server with simulated learners. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { DRAINING } from "../../controller/operator/desired/names.ts";
import { POD, type Pod, SECRET, TRAINING_RUN } from "../../controller/operator/kube/resources.ts";
import { answers, conditionOf, hasActors, hasEvent, skip, start, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

useWorld();

describe("actors", { skip, concurrency: 6 }, () => {
  test("Actors follow the demand: up at once, down by draining, to none", async () => {
    const { namespace, learner } = await start({ actors: { min: 0, max: 6, slots: 4, scaleDownSeconds: 1 } });
    await hasActors(namespace, 0);
    learner.work(24);
    const jobs = await hasActors(namespace, 6);
    assert.deepEqual(
      jobs.map((it) => it.metadata.name).sort(),
      [0, 1, 2, 3, 4, 5].map((index) => `run-actor-${index}-0`),
    );
    await hasEvent(namespace, /^ScaledUp: scaled actors 0 -> 6: 24 executions wait, 4 slots each$/);
    await eventually(async () => (await world.status(namespace, "run")).actors?.running === 6);

    // One of them is busy: it is not removed first, and ends when its work is done.
    await eventually(() => learner.status.actors?.length === 6);
    learner.connect({ name: "run-actor-1-0", running: 3 });
    learner.work(0, 3);
    const [left] = await hasActors(namespace, 1);
    assert.equal(left!.metadata.name, "run-actor-1-0");
    assert.ok(!learner.drained.some(({ actors }) => actors?.includes("run-actor-1-0")));
    learner.connect({ name: "run-actor-1-0", running: 0 });
    learner.work(0, 0);
    await hasActors(namespace, 0);
    await hasEvent(namespace, /^ScaledDown: scaled actors 1 -> 0: no execution waits or runs$/);
    await eventually(async () => (await conditionOf(namespace, "ActorsScaled"))?.status === "True");
    // Returning work gets actors of the next generation.
    learner.work(1);
    const [again] = await hasActors(namespace, 1);
    assert.equal(again!.metadata.name, "run-actor-0-1");
  });

  test("The controller waits for pods that cannot be scheduled and reports them, instead of creating more", async () => {
    const namespace = await world.namespace();
    const holds = world.holds;
    world.holds = (pod) =>
      holds(pod) ||
      (pod.metadata.namespace === namespace && pod.metadata.labels?.["app.kubernetes.io/component"] === "actor");
    await world.createRun(namespace, "run", { actors: { min: 0, max: 3, slots: 1 } });
    const learner = await answers(namespace);
    learner.work(10);
    await hasActors(namespace, 3);
    const pods = await eventually(async () => {
      const found = await world.podsOf(namespace, "run", "actor");
      return found.length === 3 && found;
    });
    const message = "0/3 nodes are available: 3 Insufficient memory.";
    for (const pod of pods)
      await world.client.mergePatch(
        POD,
        { namespace, name: pod.metadata.name },
        {
          status: {
            conditions: [
              {
                type: "PodScheduled",
                status: "False",
                reason: "Unschedulable",
                message,
                lastTransitionTime: new Date().toISOString(),
              },
            ],
          },
        },
        { subresource: "status" },
      );
    const waits = await eventually(async () => {
      const found = await conditionOf(namespace, "ActorsScaled");
      return found?.reason === "Unschedulable" && found;
    });
    assert.match(waits.message, /Insufficient memory.*request less in spec\.actors\.resources/);
    await hasEvent(namespace, /^Unschedulable: .*Insufficient memory/);
    learner.work(30);
    await sleep(1500);
    assert.equal((await world.actors(namespace, "run")).length, 3);
    assert.equal((await world.status(namespace, "run")).actors?.waiting, 3);
    // When work ends, actors that never started are removed at once.
    learner.work(0);
  });

  test("kubectl scale sets the number of actors if autoscaling is External", async () => {
    const { namespace } = await start({ actors: { autoscaling: "External", replicas: 1, max: 1 } });
    await hasActors(namespace, 1);
    await world.client.mergePatch(
      TRAINING_RUN,
      { namespace, name: "run" },
      { spec: { replicas: 3 } },
      { subresource: "scale" },
    );
    await hasActors(namespace, 3);
    const scale = await eventually(async () => {
      const found = await world.client.request<{ status: { replicas: number; selector: string } }>({
        method: "GET",
        path: `/apis/longrun.dev/v1alpha1/namespaces/${namespace}/trainingruns/run/scale`,
      });
      return found.status.replicas === 3 && found;
    });
    assert.equal(scale.status.selector, "app.kubernetes.io/component=actor,longrun.dev/run=run");
    await world.client.mergePatch(
      TRAINING_RUN,
      { namespace, name: "run" },
      { spec: { replicas: 1 } },
      { subresource: "scale" },
    );
    await hasActors(namespace, 1);
  });

  test("The condition names a quota that forbids actors, and the controller retries only at intervals", async () => {
    const { namespace, learner } = await start({ actors: { min: 0, max: 20 } });
    const quota = { group: "", version: "v1", plural: "resourcequotas", kind: "ResourceQuota", namespaced: true };
    await world.client.create(quota, {
      metadata: { namespace, name: "few" },
      spec: { hard: { "count/jobs.batch": "2" } },
    } as never);
    // The controller that computes this does not run in this test.
    await world.client.mergePatch(
      quota,
      { namespace, name: "few" },
      { status: { hard: { "count/jobs.batch": "2" }, used: { "count/jobs.batch": "0" } } },
      { subresource: "status" },
    );
    const from = world.auditLength();
    await sleep(500); // until admission has read it
    learner.work(20);
    await hasEvent(namespace, /^QuotaExceeded: actors cannot be created: .*raise the quota/);
    const refused = world.writes(namespace, from).filter(({ code, verb }) => code === 403 && verb === "create");
    assert.ok(refused.length >= 1 && refused.length <= 8, `${refused.length} creations were refused`);
    const made = await world.actors(namespace, "run");
    assert.ok(made.length <= 2);
    // Existing actors have everything they need, although no further one can be created.
    for (const { metadata } of made)
      await eventually(() => world.client.get(SECRET, { namespace, name: `${metadata.name}-tls` }));
  });

  test("The learner receives once that a sandbox was killed for memory", async () => {
    const { namespace, learner } = await start({ actors: { min: 1, slots: 2 } });
    const [pod] = await eventually(async () => {
      const found = await world.podsOf(namespace, "run", "actor");
      return found[0]?.status?.phase === "Running" && found;
    });
    const finishedAt = new Date().toISOString().replace(/\.\d+/, "");
    const sandbox = { name: "sandbox-1", image: "", imageID: "", ready: true, restartCount: 1 };
    const state = { running: { startedAt: finishedAt } };
    const lastState = { terminated: { exitCode: 137, reason: "OOMKilled", finishedAt } };
    await world.client.mergePatch(
      POD,
      { namespace, name: pod!.metadata.name },
      { status: { initContainerStatuses: [{ ...sandbox, state, lastState }] } },
      { subresource: "status" },
    );
    await eventually(() => learner.reported.length > 0);
    const [termination] = learner.reported[0]!.terminations!;
    assert.deepEqual(
      {
        actor: termination!.actor,
        slot: termination!.slot,
        reason: termination!.reason,
        at: Number(termination!.finishedUnixMs),
      },
      { actor: "run-actor-0-0", slot: 1, reason: "OOMKilled", at: Date.parse(finishedAt) },
    );
    await sleep(1000);
    assert.equal(learner.reported.length, 1);
  });

  test("a learner that dies keeps its actors, and finds them again", async () => {
    const { namespace } = await start({ actors: { min: 2, max: 2 } });
    const before = (await hasActors(namespace, 2)).map(({ metadata }) => metadata.uid).sort();
    const [pod] = await world.podsOf(namespace, "run", "learner");
    await world.deletePod(pod!);
    await eventually(async () =>
      (await world.podsOf(namespace, "run", "learner")).some((it: Pod) => it.metadata.uid !== pod!.metadata.uid),
    );
    await eventually(() => world.learners.has(`${namespace}/run`));
    await answers(namespace);
    assert.deepEqual((await world.actors(namespace, "run")).map(({ metadata }) => metadata.uid).sort(), before);
  });

  test("A change of spec.actors replaces the actors a few at a time, and never a busy one", async () => {
    const { namespace, learner } = await start({ actors: { min: 4, max: 4, slots: 1 } });
    const before = await hasActors(namespace, 4);
    await eventually(() => learner.status.actors?.length === 4);
    for (const { metadata } of before) learner.connect({ name: metadata.name, running: 1 });
    learner.work(0, 4);
    await world.patchRun(namespace, "run", { actors: { image: "longrun/longrun:next" } });
    await eventually(() => learner.drained.length > 0);
    await sleep(1500);
    const names = new Set(learner.drained.flatMap(({ actors }) => actors ?? []));
    assert.equal(names.size, 1, "one of four at a time");
    const uids = new Set((await world.actors(namespace, "run")).map(({ metadata }) => metadata.uid));
    for (const { metadata } of before) assert.ok(uids.has(metadata.uid), `${metadata.name} runs a program and stays`);
    // They become idle one after the other, so all are replaced in the end.
    learner.onDrain = (actors) => void finish(actors);
    const finish = async (actors: string[]) => {
      for (const name of actors) {
        const pod = (await world.podsOf(namespace, "run", "actor")).find(
          (it) => it.metadata.labels?.["batch.kubernetes.io/job-name"] === name,
        );
        if (pod) await world.pods.end(pod, 0);
      }
    };
    await finish([...names]);
    await eventually(async () => {
      const now = await world.actors(namespace, "run");
      return (
        now.length === 4 &&
        now.every(
          (job) =>
            !before.some(({ metadata }) => metadata.uid === job.metadata.uid) && !job.metadata.annotations?.[DRAINING],
        )
      );
    }, 60);
  });

  test("The controller tries actors that keep failing one at a time, and an event says so", async () => {
    const restart = { backoffSeconds: 0.1, maxBackoffSeconds: 0.5, maxFailures: 2 };
    const { namespace } = await start({ actors: { min: 3, max: 3 }, restart });
    let failed = 0;
    const stopAt = performance.now() + 6000;
    while (performance.now() < stopAt) {
      for (const pod of await world.podsOf(namespace, "run", "actor"))
        if (pod.status?.phase === "Running") {
          failed++;
          await world.pods.end(pod, 1);
        }
      await sleep(100);
    }
    await hasEvent(namespace, /^ActorsFailing: .*one at a time is tried/);
    assert.ok(failed <= 25, `${failed} actors failed in 6 s`);
  });
});
