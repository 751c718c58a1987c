/** `initFrom.volume`: a run takes over the volume of a run that is gone. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RETAINED_SINCE, RUN, RUN_UID } from "../../controller/operator/desired/names.ts";
import { PERSISTENT_VOLUME_CLAIM, TRAINING_RUN } from "../../controller/operator/kube/resources.ts";
import { answers, hasEvent, hasReason, skip, start, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

useWorld();

const claimOf = (namespace: string, name: string) => world.client.get(PERSISTENT_VOLUME_CLAIM, { namespace, name });

describe("initFrom.volume", { skip, concurrency: 2 }, () => {
  test("A run goes on with the volume of a deleted run, under its own name", async () => {
    const { namespace, run } = await start({ learner: { storage: { retainSeconds: 3600 } } }, "old");
    await world.client.delete(TRAINING_RUN, { namespace, name: "old" }, { uid: run.metadata.uid });
    await eventually(async () => (await world.run(namespace, "old")) === undefined);
    const left = (await claimOf(namespace, "old-data"))!;
    assert.equal(left.metadata.labels?.[RUN_UID], run.metadata.uid);
    await world.client.mergePatch(PERSISTENT_VOLUME_CLAIM, left.metadata, {
      metadata: { annotations: { [RETAINED_SINCE]: new Date().toISOString() } },
    });

    const next = await world.createRun(namespace, "next", { initFrom: { volume: "old-data" } });
    await answers(namespace, "next");
    await hasEvent(namespace, /^VolumeAdopted: volume old-data with its samples and checkpoints is this run's now/);
    const claim = (await claimOf(namespace, "old-data"))!;
    assert.equal(claim.metadata.uid, left.metadata.uid);
    assert.deepEqual([claim.metadata.labels?.[RUN], claim.metadata.labels?.[RUN_UID]], ["next", next.metadata.uid]);
    assert.equal(claim.metadata.annotations?.[RETAINED_SINCE], undefined, "nobody deletes it any more");
    const volumes = (await world.deployment(namespace, "next"))?.spec?.template.spec?.volumes;
    assert.equal(volumes?.find(({ name }) => name === "data")?.persistentVolumeClaim?.claimName, "old-data");
    assert.equal(await claimOf(namespace, "next-data"), undefined, "no second volume");
    const config = await world.client.get<{ data?: Record<string, string> } & typeof claim>(
      { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true },
      { namespace, name: "next-config" },
    );
    assert.doesNotMatch(config!.data!["trainingrun.yaml"]!, /initFrom/, "the learner finds its own run folder");

    await world.createRun(namespace, "third", { initFrom: { volume: "old-data" } });
    const taken = await eventually(async () => {
      const { conditions } = await world.status(namespace, "third");
      return conditions?.find(({ type, reason }) => type === "Ready" && reason === "InitFromFailed");
    });
    assert.match(taken.message!, /claim old-data is the volume of TrainingRun next: delete that run first/);
  });

  test("A volume that is not there is named", async () => {
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { initFrom: { volume: "lost" } });
    const missing = await hasReason(namespace, "Ready", "InitFromMissing");
    assert.match(missing.message!, /spec\.initFrom\.volume: there is no claim lost in namespace/);
    assert.deepEqual(await world.list(PERSISTENT_VOLUME_CLAIM, namespace), []);
  });
});
