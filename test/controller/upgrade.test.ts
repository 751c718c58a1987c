/** A new version of the controller, with other default images and pod templates, takes over runs of an earlier one. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { DRAINING, IMAGES, INPUT_HASH } from "../../controller/operator/desired/names.ts";
import type { Settings } from "../../controller/operator/desired/settings.ts";
import { CONFIG_MAP, DEPLOYMENT, JOB, type Job } from "../../controller/operator/kube/resources.ts";
import { findCondition } from "../../controller/operator/status/conditions.ts";
import { answers, hasActors, operator, restartOperator, skip, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

/** How long to wait for an action of the controller that must not happen. */
const SETTLE_SECONDS = 3;

const imagesOf = (version: string) => ({
  learner: `registry.example.com/learner:${version}`,
  actor: `registry.example.com/actor:${version}`,
  sandbox: `registry.example.com/sandbox:${version}`,
});

const DEFAULT_RUNTIME = "default";

function settingsOf(version: string): Settings {
  const { learner: image, actor: actorImage, sandbox: sandboxImage } = imagesOf(version);
  return { image, actorImage, sandboxImage, imagePullPolicy: "IfNotPresent", defaultRuntime: DEFAULT_RUNTIME };
}

/** Gives the default runtime an annotation that represents changes of a version's pod templates: arguments, probes, security. */
async function templateOfVersion(version: string): Promise<void> {
  const podTemplate = { metadata: { annotations: { "example.com/template": version } } };
  await world.runtime(DEFAULT_RUNTIME, { learner: { podTemplate }, actors: { podTemplate } });
}

useWorld({ controller: false });

describe("An upgrade of the controller", { skip }, () => {
  const upgradeTo = async (version: string) => {
    await operator?.stop();
    await templateOfVersion(version);
    await restartOperator({ settings: settingsOf(version) });
  };
  const learnerUid = async (namespace: string) => (await world.podsOf(namespace, "run", "learner"))[0]?.metadata.uid;
  const templateOf = async (namespace: string) => {
    const { metadata, spec } = (await world.deployment(namespace, "run"))!.spec!.template;
    return { image: spec!.containers[0]!.image, version: metadata!.annotations!["example.com/template"] };
  };
  const actorImages = (jobs: Job[]) =>
    jobs.map(({ spec }) => {
      const { containers, initContainers } = spec!.template.spec!;
      return [containers[0]!.image, initContainers![0]!.image];
    });
  const has33m = ({ spec }: Job) => spec!.template.spec!.initContainers![0]!.resources?.requests?.cpu === "33m";
  /** Returns a run of version 1 with two actors, which version 2 has taken over. */
  const upgraded = async (spec: object = {}) => {
    await upgradeTo("1");
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { actors: { min: 2, max: 4 }, ...spec });
    await answers(namespace);
    await hasActors(namespace, 2);
    await eventually(async () => (await world.status(namespace, "run")).actors?.idle === 2);
    await eventually(async () => (await world.status(namespace, "run")).images);
    const uid = await learnerUid(namespace);
    await upgradeTo("2");
    await answers(namespace);
    return { namespace, uid };
  };

  test("A run keeps its images and its learner; later actors get its images; a resume pins new ones", async () => {
    const { namespace, uid } = await upgraded();
    assert.deepEqual((await world.status(namespace, "run")).images, imagesOf("1"));
    const audit = world.auditLength();
    await sleep(SETTLE_SECONDS * 1000);
    assert.deepEqual(world.writes(namespace, audit), [], "an upgrade alone writes nothing");
    assert.equal(await learnerUid(namespace), uid);
    assert.deepEqual(await templateOf(namespace), { image: imagesOf("1").learner, version: "1" });

    world.learner(namespace, "run").work(4);
    const jobs = await hasActors(namespace, 4);
    assert.deepEqual(
      actorImages(jobs),
      jobs.map(() => [imagesOf("1").actor, imagesOf("1").sandbox]),
    );
    assert.ok(
      jobs.every(({ metadata }) => metadata.annotations?.[DRAINING] === undefined),
      "none is replaced",
    );

    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    await eventually(async () => (await world.status(namespace, "run")).images === undefined);
    await world.patchRun(namespace, "run", { suspend: false });
    await eventually(async () => (await world.status(namespace, "run")).images?.learner === imagesOf("2").learner);
    assert.deepEqual((await world.status(namespace, "run")).images, imagesOf("2"));
    assert.deepEqual(await templateOf(namespace), { image: imagesOf("2").learner, version: "2" });
    await answers(namespace);
    assert.deepEqual(actorImages(await hasActors(namespace, 2))[0], [imagesOf("2").actor, imagesOf("2").sandbox]);
  });

  test("upgradePolicy Immediately takes the new version at once", async () => {
    const { namespace, uid } = await upgraded({ upgradePolicy: "Immediately" });
    await eventually(async () => (await learnerUid(namespace)) !== uid && (await learnerUid(namespace)) !== undefined);
    assert.deepEqual(await templateOf(namespace), { image: imagesOf("2").learner, version: "2" });
    await answers(namespace);
    await eventually(async () => {
      const jobs = await world.actors(namespace, "run");
      return jobs.length === 2 && actorImages(jobs).every(([actor]) => actor === imagesOf("2").actor);
    });
    assert.deepEqual((await world.status(namespace, "run")).images, imagesOf("2"));
  });

  test("An edit of the learner restarts it with the run's own images and runtime; an edit of actors.max does not", async () => {
    const { namespace, uid } = await upgraded();
    await world.patchRun(namespace, "run", { actors: { max: 3 } });
    await eventually(async () => (await world.status(namespace, "run")).observedGeneration === 2);
    await sleep(SETTLE_SECONDS * 1000);
    assert.equal(await learnerUid(namespace), uid, "actors.max is no business of the learner");
    await world.patchRun(namespace, "run", { learner: { stopGraceSeconds: 77 } });
    await eventually(async () => (await learnerUid(namespace)) !== uid && (await learnerUid(namespace)) !== undefined);
    assert.deepEqual(await templateOf(namespace), { image: imagesOf("1").learner, version: "1" });
    const jobs = await world.actors(namespace, "run");
    assert.ok(
      jobs.every(({ metadata }) => metadata.annotations?.[DRAINING] === undefined),
      "no actor is replaced",
    );
  });

  test("An edit of actors replaces them with the run's own images", async () => {
    const { namespace, uid } = await upgraded();
    await world.patchRun(namespace, "run", { actors: { sandboxResources: { requests: { cpu: "33m" } } } });
    await eventually(async () => {
      const jobs = await world.actors(namespace, "run");
      return jobs.length === 2 && jobs.every(has33m);
    });
    for (const images of actorImages(await world.actors(namespace, "run")))
      assert.deepEqual(images, [imagesOf("1").actor, imagesOf("1").sandbox]);
    assert.equal(await learnerUid(namespace), uid);
  });

  test("an image that the spec names follows the spec", async () => {
    const { namespace, uid } = await upgraded();
    await world.patchRun(namespace, "run", { learner: { image: "registry.example.com/own:5" } });
    await eventually(async () => (await learnerUid(namespace)) !== uid && (await learnerUid(namespace)) !== undefined);
    assert.equal((await templateOf(namespace)).image, "registry.example.com/own:5");
    await eventually(
      async () => (await world.status(namespace, "run")).images?.learner === "registry.example.com/own:5",
    );
    assert.equal((await world.status(namespace, "run")).images?.actor, imagesOf("1").actor);
  });

  test("A deleted Deployment is made again with the run's own images", async () => {
    const { namespace } = await upgraded();
    const { uid } = (await world.deployment(namespace, "run"))!.metadata;
    await world.client.delete(DEPLOYMENT, { namespace, name: "run-learner" }, { uid: uid! });
    await eventually(async () => {
      const { metadata, spec } = (await world.deployment(namespace, "run")) ?? {};
      return metadata && metadata.uid !== uid && spec?.replicas === 1;
    });
    assert.equal((await templateOf(namespace)).image, imagesOf("1").learner);
  });

  test("A run whose learner has never answered gets the present images", async () => {
    await upgradeTo("1");
    const namespace = await world.namespace();
    world.holds = ({ metadata, spec }) =>
      metadata.namespace === namespace && spec!.containers[0]!.image === imagesOf("1").learner;
    await world.createRun(namespace, "run");
    const uid = await eventually(() => learnerUid(namespace));
    await eventually(async () => (await world.status(namespace, "run")).phase === "Pending");
    assert.equal((await world.status(namespace, "run")).images, undefined);
    await upgradeTo("2");
    await eventually(async () => (await templateOf(namespace)).image === imagesOf("2").learner);
    await answers(namespace);
    assert.notEqual(await learnerUid(namespace), uid);
    await eventually(async () => (await world.status(namespace, "run")).images?.learner === imagesOf("2").learner);
  });

  test("Runs of 0.2 and earlier, whose children have no record of images, keep them too", async () => {
    await upgradeTo("1");
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { actors: { min: 2, max: 4 } });
    await answers(namespace);
    await hasActors(namespace, 2);
    await eventually(async () => (await world.status(namespace, "run")).actors?.idle === 2);
    const uid = await learnerUid(namespace);
    await operator!.stop();
    const unmark = (resource: typeof JOB, name: string) =>
      world.client.mergePatch(
        resource,
        { namespace, name },
        {
          metadata: {
            annotations: { [IMAGES]: null, [INPUT_HASH]: null, "longrun.dev/spec-hash": "of another version" },
          },
        },
      );
    await unmark(DEPLOYMENT, "run-learner");
    const old = await world.actors(namespace, "run");
    for (const { metadata } of old) await unmark(JOB, metadata.name);
    await world.client.mergePatch(CONFIG_MAP, { namespace, name: "run-config" }, { data: { older: "text" } });

    await upgradeTo("2");
    await eventually(async () => (await world.deployment(namespace, "run"))?.metadata.annotations?.[IMAGES]);
    await sleep(SETTLE_SECONDS * 1000);
    assert.equal(await learnerUid(namespace), uid);
    assert.equal((await world.status(namespace, "run")).images?.learner, imagesOf("1").learner);
    const jobs = await world.actors(namespace, "run");
    assert.deepEqual(
      jobs.map(({ metadata }) => metadata.uid),
      old.map(({ metadata }) => metadata.uid),
    );
    // From now on their user's changes roll them, as usual.
    await world.patchRun(namespace, "run", { actors: { sandboxResources: { requests: { cpu: "33m" } } } });
    await eventually(async () => {
      const jobs = await world.actors(namespace, "run");
      return jobs.length === 2 && jobs.every(has33m);
    });
    assert.equal(await learnerUid(namespace), uid);
  });
});

describe("A GPU from the default runtime", { skip }, () => {
  const startWith = async (resources?: object) => {
    await world.runtime("gpu", { learner: { resources: resources ?? null } });
    await restartOperator({ settings: { ...settingsOf("1"), defaultRuntime: "gpu" } });
  };
  const phase = async (namespace: string) => (await world.status(namespace, "run")).phase;

  test("Device CUDA takes the runtime's part of a GPU; without one the condition has the remedy", async () => {
    await startWith();
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { learner: { device: "CUDA" } });
    const ready = await eventually(async () => {
      const found = findCondition((await world.status(namespace, "run")).conditions, "Ready");
      return found?.reason === "InvalidConfiguration" && found;
    });
    assert.match(ready.message, /^learner\.device CUDA needs a GPU, and neither the run nor its runtime gives/);
    assert.equal(await world.deployment(namespace, "run"), undefined);

    await startWith({ limits: { "nvidia.com/mig-1g.10gb": 1 } });
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await phase(namespace)) === "Suspended");
    await world.patchRun(namespace, "run", { suspend: false });
    await eventually(async () => (await phase(namespace)) === "Running");
    const { containers } = (await world.deployment(namespace, "run"))!.spec!.template.spec!;
    assert.deepEqual(containers[0]!.resources, { limits: { "nvidia.com/mig-1g.10gb": "1" } });
  });
});
