/** Changes that a person makes by hand: they are undone, and where they are not, the status says what is so. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DEPLOYMENT, JOB, type Job, TRAINING_RUN } from "../../controller/operator/kube/resources.ts";
import { answers, hasActors, hasEvent, hasReason, skip, start, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

useWorld();

const suspend = (namespace: string, name: string) =>
  world.client.mergePatch(JOB, { namespace, name }, { spec: { suspend: true } });
const isSuspended = async (namespace: string, name: string) =>
  (await world.client.get<Job>(JOB, { namespace, name }))?.spec?.suspend === true;

describe("changes by hand", { skip, concurrency: 3 }, () => {
  test("A paused Deployment goes on, so that an edit reaches its pod", async () => {
    const { namespace } = await start();
    const key = { namespace, name: "run-learner" };
    const repaired = /^Repaired: Deployment run-learner was changed.*spec\.paused is true, should be absent/;
    await eventually(async () => {
      if ((await world.events(namespace)).some((text) => repaired.test(text))) return true;
      // Where the controller was about to write the Deployment itself, the change is undone without an event.
      if ((await world.deployment(namespace, "run"))?.spec?.paused) return false;
      await world.client.mergePatch(DEPLOYMENT, key, { spec: { paused: true } });
      return false;
    });
    await world.patchRun(namespace, "run", { learner: { resources: { requests: { cpu: "2" } } } });
    await eventually(async () => {
      const pods = await world.podsOf(namespace, "run", "learner");
      return pods.length === 1 && pods[0]!.spec!.containers[0]!.resources?.requests?.cpu === "2";
    });
    assert.equal((await world.deployment(namespace, "run"))?.spec?.paused, undefined);
    await answers(namespace);
  });

  test("An actor's Job that is suspended is resumed, but not again and again", async () => {
    const { namespace } = await start({ actors: { min: 1, max: 1 } });
    const [job] = await hasActors(namespace, 1);
    const { name } = job!.metadata;
    await eventually(async () => (await world.podsOf(namespace, "run", "actor")).length === 1);
    await suspend(namespace, name);
    await hasEvent(namespace, new RegExp(`^Repaired: Job ${name} was suspended`));
    await eventually(async () => !(await isSuspended(namespace, name)));
    await hasReason(namespace, "ActorsScaled", "AsDesired");
    await suspend(namespace, name);
    const { message } = await hasReason(namespace, "ActorsScaled", "SchedulingGated");
    assert.match(message!, /is suspended, and again within 600 s after the controller had resumed it: stop what sets/);
    assert.equal(await isSuspended(namespace, name), true);
  });

  test("A Job that fetches the model is resumed", async () => {
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { model: { source: { huggingFace: { repo: "a/b" } } } });
    await eventually(async () => world.client.get(JOB, { namespace, name: "run-model" }));
    await suspend(namespace, "run-model");
    await hasEvent(namespace, /^Repaired: Job run-model was suspended/);
    await eventually(async () => !(await isSuspended(namespace, "run-model")));
    await hasReason(namespace, "LearnerAvailable", "FetchingModel");
    await suspend(namespace, "run-model");
    await hasReason(namespace, "LearnerAvailable", "SchedulingGated");
  });

  test("Children of a run that was deleted without them are named as what they are", async () => {
    const { namespace, run } = await start();
    const { uid } = run.metadata;
    await world.client.delete(TRAINING_RUN, { namespace, name: "run" }, { uid, propagationPolicy: "Orphan" });
    await eventually(async () => (await world.run(namespace, "run")) === undefined);
    await world.createRun(namespace, "run");
    const { message } = await hasReason(namespace, "Ready", "NameTaken");
    assert.match(
      message!,
      /run-\S+ was left behind by an earlier TrainingRun .*--cascade=orphan.*kubectl delete \w+ run-/,
    );
  });
});
