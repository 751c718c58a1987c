/** Tests the decisions of reconcile before it reads any child. test/controller tests the rest with a real API server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CLAIM, Claims, CONTENDER } from "./claims/claims.ts";
import type { Context } from "./context.ts";
import { DEFAULT_SETTINGS } from "./desired/settings.fixture.ts";
import { TRAINING_RUN } from "./kube/resources.ts";
import { Memories } from "./memory.ts";
import { SILENT_ACTOR_SECONDS } from "./parts/actors/actor-state.ts";
import { FINALIZER } from "./parts/lifecycle/deletion.ts";
import { KEY, owned, takingCluster } from "./reconcile.fixture.ts";
import { reconcile } from "./reconcile.ts";
import { at, deploymentOf, NOW_MS, podOf, runOf } from "./run.fixture.ts";
import { CONFIRM_SECONDS, Expectations } from "./writes/expectations.ts";

/** Returns a cluster with one run and nothing else. It accepts deletions and refuses all other calls. */
function clusterOf(run: ReturnType<typeof runOf> | undefined) {
  const calls: string[] = [];
  const client = new Proxy({} as Context["client"], {
    get:
      (_, method) =>
      async ({ kind }: { kind: string }) => {
        calls.push(`${String(method)} ${kind}`);
        if (method !== "delete") throw new Error("this cluster takes deletions alone");
      },
  });
  const cache = { trainingRun: () => run, get: () => undefined, ownedBy: () => [], labelledJobs: () => [] };
  const expectations = new Expectations({ get: () => undefined, read: async () => undefined }, () => NOW_MS);
  const context = {
    claims: new Claims({ client, identity: undefined, now: () => NOW_MS }),
    ...{ cache, client, expectations, memories: new Memories(), settings: DEFAULT_SETTINGS, now: () => NOW_MS },
    links: { observed: () => undefined, drop: () => calls.push("drop the link"), ensure: () => {} },
    events: { record: () => {} },
    log: { debug: () => {}, info: () => {}, warn: () => {} },
  } as unknown as Context;
  return { calls, expectations, look: () => reconcile(KEY, context) };
}

test("The controller leaves a run that another controller manages alone", async () => {
  const ended = { phase: "Failed", completionTime: at(-3600), conditions: [FAILED] };
  for (const status of [{}, ended]) {
    const run = runOf({ managedBy: "kueue.x-k8s.io/multikueue", ttlSecondsAfterFinished: 5 }, status);
    const { calls, look } = clusterOf(run);
    assert.deepEqual(await look(), {});
    assert.deepEqual(calls, []);
  }
  const own = clusterOf(runOf({ managedBy: "longrun.dev/controller" }));
  await assert.rejects(own.look(), /takes deletions alone/);
});

test("A run that goes to another controller leaves neither metrics nor events of its end behind", async () => {
  const deletions = async (change: { metadata?: object; spec?: object }) => {
    const forgotten: string[] = [];
    const events: string[] = [];
    const released: unknown[] = [];
    const run = runOf(change.spec, {}, change.metadata);
    let stored: typeof run | undefined = run;
    const alive = async () => ({ spec: { renewTime: at(0) } }) as never;
    const context = {
      claims: new Claims({ client: { get: alive }, identity: "me/longrun-controller", now: () => NOW_MS }),
      cache: { trainingRun: () => stored, get: () => undefined, ownedBy: () => [], labelledJobs: () => [] },
      client: {
        mergePatch: async (_: unknown, __: unknown, { metadata }: { metadata: { finalizers?: string[] } }) => {
          if (metadata.finalizers) released.push(metadata.finalizers);
          return run;
        },
      },
      expectations: { confirm: async () => {}, unseen: () => [], add: () => {}, forget: () => {} },
      ...{ memories: new Memories(), settings: DEFAULT_SETTINGS, now: () => NOW_MS },
      links: { observed: () => undefined, drop: () => {} },
      metrics: { forget: ({ run: name }: { run: string }) => forgotten.push(name) },
      events: { record: (_: unknown, { reason }: { reason: string }) => events.push(reason) },
    } as unknown as Context;
    await reconcile(KEY, context);
    stored = undefined;
    await reconcile(KEY, context);
    return { forgotten, events, released };
  };
  const others = { annotations: { [CLAIM]: "other/longrun-controller" } };
  const left = { forgotten: ["quick"], events: [], released: [] };
  assert.deepEqual(await deletions({ metadata: others }), { ...left, events: ["OtherController"] });
  const spec = { controllerClass: "next" };
  assert.deepEqual(await deletions({ spec }), left);
  const metadata = { annotations: { [CLAIM]: "me/longrun-controller" }, finalizers: ["other", FINALIZER] };
  assert.deepEqual(await deletions({ spec, metadata }), { ...left, released: [["other"]] });
});

test("The controller decides nothing until its cache has its last write", async () => {
  const run = runOf();
  const { calls, expectations, look } = clusterOf(run);
  expectations.add(KEY, { kind: "stored", resource: TRAINING_RUN, object: run });
  assert.deepEqual(await look(), { requeueAfterSeconds: CONFIRM_SECONDS });
  assert.deepEqual(calls, []);
});

test("The controller forgets a run that is gone", async () => {
  const { calls, look } = clusterOf(undefined);
  assert.deepEqual(await look(), {});
  assert.deepEqual(calls, ["drop the link"]);
});

test("The event of a run that is gone says what became of its volume, by the retain of its runtime", async () => {
  const reasonOf = async (spec: object, status: object) => {
    const run = runOf(spec, status);
    const told: string[] = [];
    const memories = new Memories();
    memories.of(KEY, run);
    const context = {
      cache: { trainingRun: () => undefined },
      ...{ links: { drop: () => {} }, expectations: { forget: () => {} }, metrics: { forget: () => {} } },
      ...{ memories, settings: DEFAULT_SETTINGS, runtimes: { get: () => undefined }, now: () => NOW_MS },
      events: { record: (_: unknown, { reason }: { reason: string }) => told.push(reason) },
    } as unknown as Context;
    await reconcile(KEY, context);
    return told;
  };
  const spec = { learner: { storage: { retain: "Never" } } };
  assert.deepEqual(await reasonOf({}, {}), ["VolumeStays"]);
  assert.deepEqual(await reasonOf({ runtimeRef: { name: "a" } }, { runtime: { name: "a", spec } }), ["VolumeGoes"]);
});

const FAILED = { type: "Succeeded", status: "False", reason: "RunFailed", message: "m", lastTransitionTime: at(-3600) };

test("A failed run is deleted when its ttl is over, but not if it is suspended to be resumed", async () => {
  const deleted = async (ttlSecondsAfterFinished: number, suspend: boolean) => {
    const status = { phase: "Failed", startTime: at(-7200), completionTime: at(-3600), conditions: [FAILED] };
    const { calls, look } = clusterOf(runOf({ ttlSecondsAfterFinished, suspend }, status));
    await look().catch(() => {}); // a reconcile that continues fails at writing children
    return calls.includes("delete TrainingRun");
  };
  assert.equal(await deleted(3600, false), true);
  assert.equal(await deleted(3601, false), false);
  assert.equal(await deleted(5, true), false);
});

test("A run whose volume is gone waits for no copy of it", async () => {
  const checkpoint = { iteration: 3, digest: "d", path: "checkpoints/1-000003" };
  const status = { phase: "Failed", startTime: at(-7200), completionTime: at(-3600), conditions: [FAILED], checkpoint };
  const results = { s3: { bucket: "results", prefix: "team/quick" } };
  const { calls, look } = clusterOf(runOf({ ttlSecondsAfterFinished: 5, results }, status));
  await look().catch(() => {});
  assert.ok(calls.includes("delete TrainingRun"));
});

test("The controller removes a running actor that the learner does not hear after SILENT_ACTOR_SECONDS", async () => {
  const run = runOf({ learner: { storage: { retain: "Never" } } });
  const job = { metadata: owned("quick-actor-0-0", run.metadata.uid!), spec: {}, status: {} };
  const pod = { metadata: owned("pod", job.metadata.uid), status: { phase: "Running", containerStatuses: [] } };
  const { deleted, lookAt } = takingCluster(run, { Job: [job], Pod: [pod] });
  for (const [seconds, expected] of [
    [0, []],
    [SILENT_ACTOR_SECONDS - 1, []],
    [SILENT_ACTOR_SECONDS, ["Job quick-actor-0-0"]],
  ] as const) {
    await lookAt(seconds);
    assert.deepEqual(deleted, expected, `${seconds} s`);
  }
});

test("A suspended run's learner stays until its checkpoint is written or its time is over", async () => {
  const learner = { checkpoint: { waitSeconds: 90 }, storage: { retain: "Never" } };
  const run = runOf({ suspend: true, learner, actors: { drainSeconds: 30 } });
  const deployment = { metadata: owned("quick-learner", run.metadata.uid!), spec: { replicas: 1, template: {} } };
  const set = { metadata: owned("set", deployment.metadata.uid) };
  const status = { phase: "Running", containerStatuses: [{ name: "learner", state: { running: {} } }] };
  const pod = { metadata: owned("pod", set.metadata.uid), status };
  const { replicas, suspended, lookAt } = takingCluster(run, {
    Deployment: [deployment],
    ReplicaSet: [set],
    Pod: [pod],
  });
  for (const [seconds, expected] of [
    [0, 1],
    [119, 1],
    [120, 0],
  ] as const) {
    await lookAt(seconds);
    assert.equal(replicas.at(-1), expected, `${seconds} s`);
  }
  assert.deepEqual(suspended, ["spec.suspend is true"], "asked once");
});

test("A run at rest is looked at when the word of another controller is too old", async () => {
  const status = { phase: "Failed", startTime: at(-7200), completionTime: at(-3600), conditions: [FAILED] };
  const annotations = { [CONTENDER]: `other/longrun-controller ${at(-590)}` };
  const again = async (metadata: object) =>
    (await takingCluster(runOf({}, status, metadata)).lookAt(0)).requeueAfterSeconds ?? Number.POSITIVE_INFINITY;
  assert.ok((await again({})) > 10, "nothing else is due");
  assert.equal(await again({ annotations }), 10);
});

test("A run that waits for its last checkpoint asks now and then whether its namespace is deleted, not at each look", async () => {
  const metadata = { deletionTimestamp: at(0), finalizers: [FINALIZER] };
  const run = runOf({ learner: { storage: { retain: "Always" } } }, { startTime: at(-60) }, metadata);
  const learner = { ...deploymentOf(1), metadata: { ...owned("quick-learner", run.metadata.uid), labels: {} } };
  const set = { metadata: owned("set", learner.metadata.uid) };
  const running = podOf(run, "learner", { containerStatuses: [{ name: "learner", state: { running: {} } }] });
  const pod = { ...running, metadata: { ...running.metadata, ...owned("pod", set.metadata.uid) } };
  const { dryRuns, lookAt } = takingCluster(run, {
    ...{ Deployment: [learner as never], ReplicaSet: [set as never], Pod: [pod as never] },
  });
  for (const second of [0, 1, 2, 4]) assert.ok((await lookAt(second)).requeueAfterSeconds! <= 5);
  assert.deepEqual(dryRuns, ["ConfigMap"]);
  await lookAt(5);
  assert.deepEqual(dryRuns, ["ConfigMap", "ConfigMap"]);
});
