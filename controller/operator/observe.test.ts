import assert from "node:assert/strict";
import { test } from "node:test";
import { messages } from "../../proto/service.ts";
import { DEFAULT_SETTINGS } from "./desired/settings.fixture.ts";
import type { Job, Pod } from "./kube/resources.ts";
import { controllerUid } from "./kube/runtime/owner-index.ts";
import type { KubeObject } from "./kube/types.ts";
import { observe } from "./observe.ts";
import { PAST_GRACE_SECONDS } from "./parts/actors/actor-state.ts";
import { Stabiliser } from "./parts/actors/autoscale.ts";
import { desiredActor } from "./parts/actors/desired.ts";
import { planActors } from "./parts/actors/scale.ts";
import { at, linkOf, NOW_MS, podOf, runOf } from "./run.fixture.ts";
import type { Cache } from "./writes/ownership.ts";

const RUN = runOf({ actors: { min: 1, max: 1 } });

/** Returns a pod of the actor's Job that is being deleted and whose grace period ends in `graceOverInSeconds`. */
function terminating(job: string, graceOverInSeconds: number): Pod {
  const pod = podOf(RUN, "actor", { phase: "Running" });
  pod.metadata.ownerReferences = [
    { apiVersion: "batch/v1", kind: "Job", name: job, uid: uidOf(job), controller: true },
  ];
  pod.metadata.deletionTimestamp = at(graceOverInSeconds);
  return pod;
}

const actorJob = (index: number, generation: number): Job => {
  const job = desiredActor(RUN, index, generation, DEFAULT_SETTINGS);
  job.metadata.uid = uidOf(job.metadata.name);
  return job;
};

const uidOf = (job: string) => `uid of ${job}`;

function look(pods: Pod[], jobs: Job[] = [actorJob(0, 0)], others: Record<string, KubeObject[]> = {}) {
  const of: Record<string, KubeObject[]> = { Pod: pods, Job: jobs, ...others };
  const cache = {
    trainingRun: () => RUN,
    get: ({ kind }, key) => (of[kind] ?? []).find(({ metadata }) => `team/${metadata.name}` === key) as never,
    ownedBy: ({ kind }, _, uid) => (of[kind] ?? []).filter((it) => controllerUid(it) === uid) as never,
    labelledJobs: () => [],
  } satisfies Cache;
  const executions = { queued: 1, running: 0 };
  const link = linkOf({ phase: messages.Phase.EXECUTING, executions });
  return observe(RUN, cache, link, { kueue: true, nowMs: NOW_MS });
}

test("A run with only the stuck pod of a lost node has no pods, and gives its quota back", () => {
  const waited = look([terminating("quick-actor-0-0", 1 - PAST_GRACE_SECONDS)]);
  assert.deepEqual([waited.hasPods, waited.nextLossMs], [true, NOW_MS + 1000], "looked at again when its time is over");
  const over = look([terminating("quick-actor-0-0", -PAST_GRACE_SECONDS)]);
  assert.deepEqual([over.hasPods, over.nextLossMs], [false, undefined]);
});

test("The quota does not wait for the copy of results, which it does not cover", () => {
  const owner = { apiVersion: RUN.apiVersion, kind: RUN.kind, name: "quick", uid: RUN.metadata.uid, controller: true };
  const metadata = { name: "quick-results", namespace: "team", uid: uidOf("quick-results"), ownerReferences: [owner] };
  const job: Job = { apiVersion: "batch/v1", kind: "Job", metadata };
  const pod = terminating("quick-results", 1);
  assert.equal(look([pod], [job]).hasPods, false);
});

test("An actor that leaves, or whose pod is abandoned, is replaced under another name", () => {
  const create = (...args: Parameters<typeof look>) => {
    const stabiliser = new Stabiliser(0);
    const plan = planActors(look(...args), { stage: "Running", stabiliser, hash: "", nowMs: NOW_MS });
    return { create: plan.create, remove: plan.remove.map(({ actor }) => actor.name) };
  };
  const next = [{ index: 0, generation: 1 }];
  assert.deepEqual(create([], []), { create: [{ index: 0, generation: 0 }], remove: [] });
  assert.deepEqual(create([terminating("quick-actor-0-0", 600)]), { create: next, remove: [] });
  const job = actorJob(0, 0);
  assert.deepEqual(
    create([terminating("quick-actor-0-0", -PAST_GRACE_SECONDS)], [job]),
    { create: next, remove: ["quick-actor-0-0"] },
    "its Job would wait for its node",
  );
});

test("A learner's pod that the kubelet refused does not hide the running one", () => {
  const owned = (name: string, ownerUid: string, status = {}): KubeObject => {
    const ownerReferences = [{ apiVersion: "v1", kind: "Owner", name: "owner", uid: ownerUid, controller: true }];
    const pod = podOf(RUN, "learner", status);
    return { ...pod, metadata: { ...pod.metadata, name, uid: uidOf(name), ownerReferences } };
  };
  const spec = { template: { spec: {} } };
  const deployment = { ...owned("quick-learner", RUN.metadata.uid), spec };
  const set = owned("set", uidOf("quick-learner"));
  const refused = owned("refused", uidOf("set"), { phase: "Failed" });
  const runs = owned("runs", uidOf("set"), { phase: "Running" });
  assert.equal(refused.metadata.creationTimestamp, runs.metadata.creationTimestamp, "created in the same second");
  const found = (...pods: KubeObject[]) =>
    look(pods as Pod[], undefined, { Deployment: [deployment], ReplicaSet: [set] });
  assert.equal(found(refused, runs).learnerPod?.metadata.name, "runs");
  assert.equal(found(runs, refused).learnerPod?.metadata.name, "runs");
  assert.equal(found(refused).learnerPod?.metadata.name, "refused", "the refused pod has the reason");
});
