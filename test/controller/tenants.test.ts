/**
 * Other users' objects must not affect a run: none in another namespace, and in its own namespace none that the run does not own, whatever
 * labels they carry.
 */
import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { labelsOf, MANAGED_BY, type Run, SPEC_HASH } from "../../controller/operator/desired/names.ts";
import {
  DEPLOYMENT,
  type Deployment,
  JOB,
  type Job,
  PERSISTENT_VOLUME_CLAIM,
  POD,
  type Pod,
  SECRET,
  type Secret,
} from "../../controller/operator/kube/resources.ts";
import type { KubeObject, OwnerReference } from "../../controller/operator/kube/types.ts";
import { answers, conditionOf, hasEvent, restartOperator, skip, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

/** How long a run is watched for an effect that must not appear. */
const WATCH_SECONDS = 2;
const FORGED = "--task-dir /text/of/another/tenant: there is no such task";

useWorld();

async function startIn(namespace: string, spec: Record<string, unknown> = {}): Promise<Run> {
  const run = await world.createRun(namespace, "run", spec);
  await answers(namespace);
  return run;
}

/** Makes a pod that claims to be the run's learner, or init Job; its container ended with status 2. */
async function forgePod(
  run: Run,
  component: "learner" | "init" | "actor",
  { namespace, owner, job }: { namespace: string; owner?: OwnerReference; job?: string },
): Promise<Pod> {
  await sleep(1100); // the newest pod counts, and creation times have whole seconds
  const pods = await world.podsOf(run.metadata.namespace, "run", "learner");
  const pod = await world.client.create<Pod>(POD, {
    metadata: {
      name: `forged-${component}`,
      namespace,
      labels: { ...labelsOf(run, component), ...(job && { "batch.kubernetes.io/job-name": job }) },
      annotations: { [SPEC_HASH]: pods[0]?.metadata.annotations?.[SPEC_HASH] ?? "" },
      ...(owner && { ownerReferences: [owner] }),
    },
    spec: { serviceAccountName: "default", containers: [{ name: "learner", image: "any" }] },
  } as Pod);
  const terminated = { exitCode: 2, reason: "Error", message: FORGED, finishedAt: new Date().toISOString() };
  const container = { image: "any", imageID: "", ready: false, restartCount: 1 };
  const state = { waiting: { reason: "ImagePullBackOff", message: FORGED } };
  const status = {
    phase: "Running",
    initContainerStatuses: [{ ...container, name: "sandbox-0", state: { terminated } }],
    containerStatuses: [{ ...container, name: "learner", state, lastState: { terminated } }],
  };
  await world.client.mergePatch(POD, { namespace, name: pod.metadata.name }, { status }, { subresource: "status" });
  return pod;
}

/** Returns two namespaces: the first belongs to another user, and the API server lists it first. */
async function twoTenants(): Promise<[elsewhere: string, namespace: string]> {
  const [elsewhere, namespace] = [await world.namespace(), await world.namespace()].sort();
  ignore(({ metadata }) => metadata.namespace === elsewhere);
  await serviceAccount(elsewhere!);
  return [elsewhere!, namespace!];
}

function ignore(which: (pod: Pod) => boolean): void {
  const { holds, mute } = world;
  world.holds = (pod) => holds(pod) || which(pod);
  world.mute = (pod) => mute(pod) || which(pod);
}

const serviceAccount = (namespace: string) =>
  world.client
    .create({ group: "", version: "v1", plural: "serviceaccounts", kind: "ServiceAccount", namespaced: true }, {
      metadata: { namespace, name: "default" },
    } as KubeObject)
    .catch(() => {});

const claimOf = async (namespace: string) =>
  (await world.client.get<Deployment>(DEPLOYMENT, { namespace, name: "run-learner" }))?.spec?.template.spec
    ?.volumes?.[0]?.persistentVolumeClaim?.claimName;

const forgeClaim = (run: Run, namespace: string, name: string) =>
  world.client.create(PERSISTENT_VOLUME_CLAIM, {
    metadata: { namespace, name, labels: labelsOf(run, "learner") },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  } as KubeObject);

/** Checks that the run trains undisturbed. */
async function goesOn(run: Run): Promise<void> {
  const { namespace } = run.metadata;
  await world.patchRun(namespace, "run", { ttlSecondsAfterFinished: 86_400 + Math.floor(Math.random() * 1000) }); // to start a reconcile
  await sleep(WATCH_SECONDS * 1000);
  assert.equal((await conditionOf(namespace, "Ready"))?.status, "True");
  assert.equal((await world.status(namespace, "run")).phase, "Running");
  assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 1);
  assert.doesNotMatch(
    JSON.stringify([await world.run(namespace, "run"), await world.events(namespace)]),
    /another|SandboxTerminated/,
  );
}

describe("Objects in another namespace", { skip, concurrency: false }, () => {
  afterEach(() => restartOperator());

  for (const component of ["learner", "actor"] as const)
    test(`a pod with the labels of a run's ${component} has no effect on the run`, async () => {
      const [elsewhere, namespace] = await twoTenants();
      const run = await startIn(namespace, { actors: { min: 1 } });
      await forgePod(run, component, { namespace: elsewhere, job: "run-actor-0-0" });
      await goesOn(run);
      await restartOperator();
      await answers(namespace);
      await goesOn(run);
    });

  test("A pod with the labels of an init Job's pod has no effect on the copy", async () => {
    const [elsewhere, namespace] = await twoTenants();
    await startIn(namespace);
    const next = await world.createRun(namespace, "next", { initFrom: { run: "run" } });
    const copies = async () =>
      (await conditionOf(namespace, "LearnerAvailable", "next"))?.reason === "CopyingCheckpoint";
    await eventually(copies);
    await forgePod(next, "init", { namespace: elsewhere });
    await world.patchRun(namespace, "next", { ttlSecondsAfterFinished: 3600 }); // to start a reconcile
    await sleep(WATCH_SECONDS * 1000);
    assert.ok(await copies());
  });

  test("A suspension asks the run's own learner for its checkpoint, whatever pod carries its labels", async () => {
    const [elsewhere, namespace] = await twoTenants();
    await forgePod(await startIn(namespace), "learner", { namespace: elsewhere });
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    await hasEvent(namespace, /^CheckpointWritten: /);
    assert.match((await conditionOf(namespace, "Suspended"))!.message, /checkpoint of iteration 3/);
  });

  test("A claim with the run's labels moves no learner, nor does a Secret with its CA's name", async () => {
    const [elsewhere, namespace] = await twoTenants();
    const run = await startIn(namespace);
    const pod = (await world.podsOf(namespace, "run", "learner"))[0]!;
    for (const name of ["a-claim", "run-data", `run-data-${run.metadata.uid.slice(0, 8)}`])
      await forgeClaim(run, elsewhere, name);
    const metadata = { namespace: elsewhere, name: "run-ca", labels: labelsOf(run, "run") };
    const data = { "ca.crt": "", "ca.key": "" };
    await world.client.create(SECRET, { metadata, data } as unknown as Secret);
    await restartOperator();
    await answers(namespace);
    await goesOn(run);
    assert.equal(await claimOf(namespace), "run-data");
    const now = await world.podsOf(namespace, "run", "learner");
    assert.deepEqual(
      now.map((it) => it.metadata.uid),
      [pod.metadata.uid],
    );
    assert.equal((await world.list(PERSISTENT_VOLUME_CLAIM, namespace)).length, 1);
  });

  test("A Job that names the run as its owner is not one of its actors", async () => {
    const [elsewhere, namespace] = await twoTenants();
    const run = await startIn(namespace, { actors: { min: 1, max: 1 } });
    const [job] = await eventually(async () => {
      const jobs = await world.actors(namespace, "run");
      return jobs.length === 1 && jobs;
    });
    const owned = await world.client.get<Job>(JOB, { namespace, name: job!.metadata.name });
    const { labels, ownerReferences } = owned!.metadata;
    const template = { spec: { restartPolicy: "Never", containers: [{ name: "any", image: "any" }] } };
    const metadata = { namespace: elsewhere, name: "run-actor-7-0", labels, ownerReferences };
    await world.client.create(JOB, { metadata, spec: { template } } as Job);
    await goesOn(run);
    assert.equal((await world.status(namespace, "run")).actors?.replicas, 1);
  });
});

describe("Objects in the run's own namespace", { skip, concurrency: false }, () => {
  for (const [what, ownerOf] of [
    ["without an owner", () => undefined],
    ["that names the TrainingRun as its owner", (run: Run) => reference("longrun.dev/v1alpha1", "TrainingRun", run)],
  ] as const)
    test(`A pod with the learner's labels ${what} is not the learner`, async () => {
      const namespace = await world.namespace();
      await serviceAccount(namespace);
      ignore(({ metadata }) => metadata.namespace === namespace && metadata.name === "forged-learner");
      const run = await startIn(namespace);
      const owner = ownerOf(run);
      await forgePod(run, "learner", { namespace, ...(owner && { owner }) });
      await goesOn(run);
    });

  test("A claim with the run's label does not replace the run's volume, whatever its name", async () => {
    const namespace = await world.namespace();
    const run = await startIn(namespace);
    for (const name of ["a-claim", `run-data-${run.metadata.uid.slice(0, 8)}`]) await forgeClaim(run, namespace, name);
    await restartOperator();
    await answers(namespace);
    await goesOn(run);
    assert.equal(await claimOf(namespace), "run-data");
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    await world.patchRun(namespace, "run", { suspend: false });
    await answers(namespace);
    assert.equal(await claimOf(namespace), "run-data");
  });

  test("initFrom takes the volume of the named run, not a younger one with that run's label", async () => {
    const namespace = await world.namespace();
    const source = await startIn(namespace);
    await sleep(1100); // creation times have whole seconds
    await forgeClaim(source, namespace, "a-claim");
    await world.createRun(namespace, "next", { initFrom: { run: "run" } });
    const job = await eventually(() => world.client.get<Job>(JOB, { namespace, name: "next-init" }));
    assert.match(JSON.stringify(job.spec), /"claimName":"run-data","readOnly":true/);
  });
});

function reference(apiVersion: string, kind: string, { metadata: { name, uid } }: KubeObject): OwnerReference {
  return { apiVersion, kind, name, uid: uid!, controller: true };
}

describe("a name that is taken", { skip, concurrency: false }, () => {
  const foreignJob = (namespace: string, name: string) =>
    world.client.create(JOB, {
      metadata: { namespace, name },
      spec: {
        suspend: true,
        template: { spec: { restartPolicy: "Never", containers: [{ name: "any", image: "any" }] } },
      },
    } as Job);
  const hasActor = (namespace: string, which: (job: Job) => boolean) =>
    eventually(async () => {
      const jobs = await world.actors(namespace, "run");
      return jobs.length === 1 && which(jobs[0]!) && jobs[0]!;
    });
  const isReady = (namespace: string) =>
    eventually(async () => (await conditionOf(namespace, "Ready"))?.status === "True");

  test("The condition names a foreign Job with an actor's name, and the actor gets the next name", async () => {
    const namespace = await world.namespace();
    const foreign = await foreignJob(namespace, "run-actor-0-0");
    await startIn(namespace, { actors: { min: 1 } });
    await hasActor(namespace, ({ metadata }) => metadata.name === "run-actor-0-1");
    await hasEvent(namespace, /^NameTaken: Job run-actor-0-0 exists already and is not longrun's: .*run-actor-0-1/);
    await isReady(namespace);
    const now = await world.client.get(JOB, { namespace, name: "run-actor-0-0" });
    assert.deepEqual(now?.metadata.uid, foreign.metadata.uid);
  });

  test("If all the next names are taken too, the run is not ready until one is free", async () => {
    const namespace = await world.namespace();
    const foreign = [];
    for (let generation = 0; generation < 20; generation++)
      foreign.push(await foreignJob(namespace, `run-actor-0-${generation}`));
    await startIn(namespace, { actors: { min: 1 } });
    await eventually(async () => (await conditionOf(namespace, "Ready"))?.reason === "NameTaken");
    assert.match((await conditionOf(namespace, "ActorsScaled"))!.message, /Job run-actor-0-\d+ exists already/);
    for (const { metadata } of foreign)
      await world.client.delete(JOB, { namespace, name: metadata.name }, { uid: metadata.uid! });
    await hasActor(namespace, () => true);
    await isReady(namespace);
  });

  test("The condition names a foreign Job with the init Job's name, and the run waits for it", async () => {
    const namespace = await world.namespace();
    await startIn(namespace);
    const { metadata } = await foreignJob(namespace, "next-init");
    await world.createRun(namespace, "next", { initFrom: { run: "run" } });
    const available = () => conditionOf(namespace, "LearnerAvailable", "next");
    await eventually(async () => (await available())?.reason === "NameTaken");
    assert.match((await available())!.message, /^Job next-init exists already and is not longrun's/);
    await world.client.delete(JOB, { namespace, name: "next-init" }, { uid: metadata.uid! });
    await eventually(async () => (await available())?.reason === "CopyingCheckpoint");
  });

  test("An actor's Job stays until its pod is gone, so that the pod can be recognised", async () => {
    const namespace = await world.namespace();
    await startIn(namespace, { actors: { min: 1 } });
    const { metadata } = await hasActor(namespace, () => true);
    const [pod] = await eventually(async () => {
      const pods = await world.podsOf(namespace, "run", "actor");
      return pods.length === 1 && pods;
    });
    const key = { namespace, name: pod!.metadata.name };
    const finalizers = [...(pod!.metadata.finalizers ?? []), "example.com/node-is-slow"];
    await world.client.mergePatch(POD, key, { metadata: { finalizers } });
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await world.client.get(POD, key))?.metadata.deletionTimestamp);
    await sleep(WATCH_SECONDS * 1000);
    const job = await world.client.get(JOB, { namespace, name: metadata.name });
    assert.ok(job?.metadata.deletionTimestamp);
    await world.client.mergePatch(POD, key, { metadata: { finalizers: null } });
    await eventually(async () => (await world.list(JOB, namespace)).length === 0);
  });

  test("The controller deletes an actor's Job without its owner reference, and creates another", async () => {
    const namespace = await world.namespace();
    const run = await startIn(namespace, { actors: { min: 1 } });
    const { metadata } = await hasActor(namespace, () => true);
    await world.client.mergePatch(JOB, { namespace, name: metadata.name }, { metadata: { ownerReferences: null } });
    await hasEvent(namespace, /^Repaired: Job run-actor-0-0 /);
    const next = await hasActor(namespace, (job) => job.metadata.uid !== metadata.uid);
    assert.equal(next.metadata.ownerReferences?.[0]?.uid, run.metadata.uid);
    await eventually(async () => (await world.list(JOB, namespace)).length === 1);
    await isReady(namespace);
  });

  test("The controller restores the label of an actor's Job by which it is watched", async () => {
    const namespace = await world.namespace();
    await startIn(namespace, { actors: { min: 1 } });
    const { metadata } = await hasActor(namespace, () => true);
    const key = { namespace, name: metadata.name };
    await world.client.mergePatch(JOB, key, { metadata: { labels: { [MANAGED_BY]: null } } });
    await eventually(async () => (await world.client.get(JOB, key))?.metadata.labels?.[MANAGED_BY]);
    const { metadata: now } = await hasActor(namespace, () => true);
    assert.equal(now.uid, metadata.uid);
    await isReady(namespace);
  });
});
