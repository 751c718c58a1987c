/** Tests the controller with a real API server, real controllers of Deployments and Jobs, and simulated learners. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { findCondition } from "../../controller/conditions.ts";
import { FINALIZER } from "../../controller/deletion.ts";
import { DRAINING, RUN, RUN_UID } from "../../controller/desired/names.ts";
import {
  CONFIG_MAP,
  DEPLOYMENT,
  type Deployment,
  JOB,
  NETWORK_POLICY,
  PERSISTENT_VOLUME_CLAIM,
  POD,
  POD_DISRUPTION_BUDGET,
  type Pod,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Secret,
  TRAINING_RUN,
} from "../../controller/kube/resources.ts";
import type { KubeObject } from "../../controller/kube/types.ts";
import type { Operator } from "../../controller/operator.ts";
import { CONTROL_PLANE } from "../cluster/binaries.ts";
import { controlPlaneUnavailable } from "../cluster/control-plane.ts";
import { Phase } from "./simulated-learner.ts";
import { eventually, World } from "./world.ts";

const skip = controlPlaneUnavailable(CONTROL_PLANE) ?? false;

/** How long converged runs are watched for unnecessary writes, also after a restart of the controller. */
const QUIET_SECONDS = 60;
const RESTARTED_SECONDS = 4;

let world: World;
let operator: Operator;
/** Namespace of runs that converge before the other tests begin and are checked after them. */
let quiet: string;
let quietFrom: { audit: number; atMs: number };

before(async () => {
  if (skip) return;
  world = await World.start();
  operator = await world.operator();
  quiet = await world.namespace();
  await world.createRun(quiet, "quiet", { actors: { min: 2, max: 2 } });
  await world.createRun(quiet, "suspended", { suspend: true });
  await eventually(async () => (await world.status(quiet, "quiet")).actors?.idle === 2);
  await eventually(async () => (await world.status(quiet, "suspended")).phase === "Suspended");
  await sleep(1000);
  quietFrom = { audit: world.auditLength(), atMs: performance.now() };
});
after(() => world?.stop());

/** Starts an HTTP server that answers with these statuses in order, and then not at all. */
async function receive(answers: number[]) {
  const bodies: { id: string; data: { phase: string; message: string } }[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    bodies.push(JSON.parse(body));
    const status = answers.shift();
    if (status !== undefined) response.writeHead(status).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies, close };
}

describe("reconcile", { skip, concurrency: 6 }, () => {
  const conditionOf = async (namespace: string, name: string, type: Parameters<typeof findCondition>[1]) =>
    findCondition((await world.status(namespace, name)).conditions, type);

  /** Starts a run whose learner answers. */
  const start = async (spec: Record<string, unknown> = {}, name = "run") => {
    const namespace = await world.namespace();
    const run = await world.createRun(namespace, name, spec);
    const learner = await answers(namespace, name);
    return { namespace, name, run, learner };
  };
  const answers = (namespace: string, name = "run") =>
    eventually(async () => {
      const available = (await conditionOf(namespace, name, "LearnerAvailable"))?.status === "True";
      return available && world.learners.get(`${namespace}/${name}`);
    });
  const hasActors = (namespace: string, count: number, name = "run") =>
    eventually(async () => {
      const jobs = await world.actors(namespace, name);
      return jobs.length === count && jobs;
    });
  const hasEvent = (namespace: string, pattern: RegExp) =>
    eventually(async () => (await world.events(namespace)).find((text) => pattern.test(text)));

  test("makes every child, owned by the run, under the restricted level", async () => {
    const { namespace, run } = await start({ actors: { min: 1, slots: 2 } });
    const names = async (resource: typeof SECRET) =>
      (await world.list(resource, namespace)).map((it) => it.metadata.name);
    const [job] = await hasActors(namespace, 1);
    assert.equal(job!.metadata.name, "run-actor-0-0");
    await eventually(async () => (await names(SECRET)).length === 3);
    assert.deepEqual(await names(SECRET), ["run-actor-0-0-tls", "run-ca", "run-learner-tls"]);
    assert.deepEqual(await names(CONFIG_MAP), ["run-config"]);
    assert.deepEqual(await names(PERSISTENT_VOLUME_CLAIM), ["run-data"]);
    assert.deepEqual(await names(DEPLOYMENT), ["run-learner"]);
    assert.deepEqual(await names(SERVICE), ["run-learner"]);
    assert.deepEqual(await names(POD_DISRUPTION_BUDGET), ["run-learner"]);
    assert.deepEqual(await names(NETWORK_POLICY), ["run-actor", "run-learner"]);
    assert.deepEqual(await names(SERVICE_ACCOUNT), ["run-actor", "run-learner"]);
    const claims = await world.list(PERSISTENT_VOLUME_CLAIM, namespace);
    assert.equal(claims[0]!.metadata.ownerReferences, undefined, "storage.retain is Always");
    for (const resource of [SECRET, CONFIG_MAP, DEPLOYMENT, SERVICE, NETWORK_POLICY, SERVICE_ACCOUNT, JOB])
      for (const child of await world.list(resource, namespace)) {
        const owner = child.metadata.name === "run-actor-0-0-tls" ? job : run;
        assert.equal(child.metadata.ownerReferences?.[0]?.uid, owner!.metadata.uid);
        assert.equal(child.metadata.labels?.[RUN_UID], run.metadata.uid);
      }
    const status = await world.status(namespace, "run");
    assert.equal(status.phase, "Running");
    assert.equal(status.observedGeneration, 1);
  });

  test("the pods pass the admission of the restricted level", async () => {
    const namespace = await world.namespace();
    await world.client.mergePatch(
      { group: "", version: "v1", plural: "namespaces", kind: "Namespace", namespaced: false },
      { name: namespace },
      { metadata: { labels: { "pod-security.kubernetes.io/enforce": "restricted" } } },
    );
    await world.createRun(namespace, "run", { actors: { min: 1 } });
    await answers(namespace);
    await eventually(async () => (await world.podsOf(namespace, "run", "actor")).length === 1);
  });

  test("what somebody changed or deleted is repaired, and told", async () => {
    const { namespace } = await start();
    const key = { namespace, name: "run-learner" };
    // Waits for the controller's own next write to the Deployment, which would revert the change without an event.
    await eventually(async () => (await world.status(namespace, "run")).images);
    await world.client.mergePatch(DEPLOYMENT, key, { spec: { replicas: 3 } });
    await hasEvent(namespace, /Repaired: Deployment run-learner .*spec\.replicas is 3, should be 1/);
    await eventually(async () => (await world.deployment(namespace, "run"))?.spec?.replicas === 1);
    for (const resource of [SERVICE, NETWORK_POLICY]) {
      const before = (await world.client.get(resource, key))!;
      await world.client.delete(resource, key, { uid: before.metadata.uid! });
      await eventually(async () => {
        const now = await world.client.get(resource, key);
        return now && now.metadata.uid !== before.metadata.uid;
      });
    }
    await world.client.mergePatch(CONFIG_MAP, { namespace, name: "run-config" }, { data: { "trainingrun.yaml": "" } });
    await eventually(async () => {
      const config = await world.client.get<{ data?: Record<string, string> } & { metadata: { name: string } }>(
        CONFIG_MAP,
        { namespace, name: "run-config" },
      );
      return config?.data?.["trainingrun.yaml"]?.includes("kind: TrainingRun");
    });
    const [job] = await hasActors(namespace, 1);
    await world.client.delete(JOB, { namespace, name: job!.metadata.name }, { uid: job!.metadata.uid! });
    await eventually(async () => {
      const [now] = await world.actors(namespace, "run");
      return now && now.metadata.uid !== job!.metadata.uid;
    });
  });

  test("an actor's certificate is made again where it was lost, is in its name, and goes with its Job", async () => {
    const { namespace } = await start({ actors: { min: 1 } });
    const secret = async (name: string) =>
      (await world.list(SECRET, namespace)).find(({ metadata }) => metadata.name === name) as Secret | undefined;
    const first = await eventually(() => secret("run-actor-0-0-tls"));
    const certificate = new X509Certificate(Buffer.from(first!.data!["tls.crt"]!, "base64"));
    assert.deepEqual(certificate.subject.split("\n"), ["O=longrun", "OU=actor", "CN=run-actor-0-0"]);
    // The state after a controller that ended between creating the Job and its Secret.
    await world.client.delete(SECRET, { name: "run-actor-0-0-tls", namespace }, { uid: first!.metadata.uid! });
    await eventually(async () => {
      const found = await secret("run-actor-0-0-tls");
      return found !== undefined && found.metadata.uid !== first!.metadata.uid;
    });
    const [job] = await world.actors(namespace, "run");
    await world.client.delete(JOB, { name: job!.metadata.name, namespace }, { uid: job!.metadata.uid! });
    // No actor's Secret is left whose Job is gone.
    await eventually(async () => {
      const jobs = await world.actors(namespace, "run");
      const secrets = (await world.list(SECRET, namespace)).filter(({ metadata }) => /-actor-/.test(metadata.name));
      const owners = secrets.map(({ metadata }) => metadata.ownerReferences?.map(({ uid }) => uid));
      return (
        jobs.length === 1 &&
        jobs[0]!.metadata.uid !== job!.metadata.uid &&
        isDeepStrictEqual(owners, [[jobs[0]!.metadata.uid]])
      );
    });
  });

  test("an addition that nobody forbids is left alone", async () => {
    const { namespace } = await start();
    const key = { namespace, name: "run-learner" };
    const sidecar = { name: "sidecar", image: "sidecar" };
    const deployment = (await world.client.get<Deployment>(DEPLOYMENT, key))!;
    const containers = [...deployment.spec!.template.spec!.containers, sidecar];
    await world.client.mergePatch(DEPLOYMENT, key, { spec: { template: { spec: { containers } } } });
    await sleep(1000);
    const from = world.auditLength();
    await sleep(2000);
    const writes = world
      .writes(namespace, from)
      .filter(({ name, resource }) => name === "run-learner" && resource === "apps/deployments");
    assert.ok(writes.length <= 1, JSON.stringify(writes));
  });

  test("actors follow demand: up at once, down by draining, to none", async () => {
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

    // One of them is busy: it is not among those that are removed first, and leaves when it is done.
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
    await eventually(async () => (await conditionOf(namespace, "run", "ActorsScaled"))?.status === "True");
    // Returning work gets actors of the next generation.
    learner.work(1);
    const [again] = await hasActors(namespace, 1);
    assert.equal(again!.metadata.name, "run-actor-0-1");
  });

  test("pods that cannot be scheduled are waited for and reported, not multiplied", async () => {
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
      const found = await conditionOf(namespace, "run", "ActorsScaled");
      return found?.reason === "Unschedulable" && found;
    });
    assert.match(waits.message, /Insufficient memory.*ask for less in spec\.actors\.resources/);
    await hasEvent(namespace, /^Unschedulable: .*Insufficient memory/);
    learner.work(30);
    await sleep(1500);
    assert.equal((await world.actors(namespace, "run")).length, 3);
    assert.equal((await world.status(namespace, "run")).actors?.waiting, 3);
    // When work ends, actors that never started are removed at once.
    learner.work(0);
  });

  test("External: kubectl scale sets the number", async () => {
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

  test("suspend takes a checkpoint, then everything but the volume; resume goes on", async () => {
    const { namespace, learner } = await start({ actors: { min: 2, max: 2 } });
    await hasActors(namespace, 2);
    let release = () => {};
    learner.onSuspend = () => new Promise((resolve) => (release = resolve));
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(() => learner.suspended.length === 1);
    await eventually(async () => (await conditionOf(namespace, "run", "Suspended"))?.reason === "Suspending");
    assert.equal(
      (await world.deployment(namespace, "run"))?.spec?.replicas,
      1,
      "the learner stays until its checkpoint is on disk",
    );
    assert.equal((await world.actors(namespace, "run")).length, 2, "executions run on meanwhile");
    release();
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
    await hasActors(namespace, 0);
    assert.equal((await world.list(PERSISTENT_VOLUME_CLAIM, namespace)).length, 1);
    assert.match((await conditionOf(namespace, "run", "Suspended"))!.message, /checkpoint of iteration 3/);
    await hasEvent(namespace, /^CheckpointWritten: the checkpoint of iteration 3 is on the volume/);
    await eventually(async () => !(await world.run(namespace, "run"))?.metadata.finalizers?.includes(FINALIZER));
    assert.equal(learner.suspended.length, 1);
    await eventually(() => !world.learners.has(`${namespace}/run`));

    await world.patchRun(namespace, "run", { suspend: false });
    await answers(namespace);
    await hasActors(namespace, 2);
    assert.equal((await world.status(namespace, "run")).phase, "Running");
    await hasEvent(namespace, /^Resumed: /);
  });

  test("a resume that comes before the suspension is over gets a learner that trains", async () => {
    const { namespace, learner } = await start();
    let release = () => {};
    learner.onSuspend = () => new Promise((resolve) => (release = resolve));
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(() => learner.suspended.length === 1);
    await world.patchRun(namespace, "run", { suspend: false });
    await sleep(300);
    release();
    await eventually(() => world.learners.has(`${namespace}/run`) && world.learner(namespace, "run") !== learner);
    await answers(namespace);
    assert.equal((await world.status(namespace, "run")).phase, "Running");
  });

  test("a learner that never writes its checkpoint is not waited for without end", async () => {
    const { namespace, learner } = await start({
      actors: { drainSeconds: 0 },
      learner: { checkpoint: { waitSeconds: 1 } },
    });
    learner.onSuspend = () => new Promise(() => {});
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    await hasEvent(namespace, /^CheckpointNotWaitedFor: .*within 1 s/);
  });

  test("an evaluation is a phase of the run, and what it came to is in status and events", async () => {
    const { namespace, learner } = await start();
    learner.say({ phase: Phase.FINAL_EVALUATION, iteration: 1 });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Evaluating");
    await hasEvent(namespace, /^Evaluating: the policy is evaluated before training/);
    const before = { iteration: 0, samples: 8, validFraction: 0.5, best: 900, mean: 1200.5, bestFromScratch: 900 };
    const told = { protocol: "Paper", before: { ...before, bestImproved: null, bestMedal: null, medalFraction: null } };
    learner.say({ phase: Phase.GENERATING, iteration: 1, evaluationJson: JSON.stringify(told) });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Running");
    assert.deepEqual((await world.status(namespace, "run")).evaluation, { protocol: "Paper", before });
    await hasEvent(namespace, /^Evaluated: before training: 50 % of 8 programs are valid, best score 900, mean 1201/);
    await hasActors(namespace, 1);
  });

  test("a run that succeeds is recorded, and its learner and actors go", async () => {
    const { namespace, learner } = await start({ learner: { storage: { retain: "OnSuccess" } } });
    const line = {
      iteration: 12,
      lineage: 1,
      elapsedSeconds: 60,
      bestScoreSoFar: 812.3456,
      meanScore: 900.5,
      validFraction: 0.75,
      meanDurationSeconds: 2.5,
    };
    learner.say({ phase: Phase.SUCCEEDED, message: "all 12 iterations are done", iterationJson: JSON.stringify(line) });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Succeeded");
    const { score, iteration, completionTime, display } = await world.status(namespace, "run");
    assert.deepEqual(
      { score, iteration },
      { score: { best: 812.3456, mean: 900.5, validFraction: 0.75 }, iteration: 12 },
    );
    assert.deepEqual(
      { best: display?.best, valid: display?.valid, iteration: display?.iteration },
      { best: "812.3", valid: "75%", iteration: "12/100" },
    );
    assert.ok(completionTime);
    await eventually(async () => (await world.deployment(namespace, "run"))?.spec?.replicas === 0);
    await hasActors(namespace, 0);
    await hasEvent(namespace, /^Completed: all 12 iterations are done/);
    // From now on it outlives the run, which has succeeded.
    await eventually(
      async () => (await world.list(PERSISTENT_VOLUME_CLAIM, namespace))[0]?.metadata.ownerReferences === undefined,
    );
    await world.patchRun(namespace, "run", { ttlSecondsAfterFinished: 1 });
    await eventually(async () => (await world.run(namespace, "run")) === undefined);
  });

  test("a webhook is told of the end, again until it is taken; its address stays in its Secret", async () => {
    const address = "T0P-SECRET";
    const receiver = await receive([503, 204]);
    const namespace = await world.namespace();
    const url = Buffer.from(`${receiver.url}/${address}`).toString("base64");
    await world.client.create(SECRET, { metadata: { namespace, name: "hook" }, data: { url } } as KubeObject);
    const webhook = { urlFrom: { secretKeyRef: { name: "hook", key: "url" } }, backoffSeconds: 0.1 };
    const run = await world.createRun(namespace, "run", { notifications: { webhook } });
    const learner = await answers(namespace);
    learner.say({ phase: Phase.SUCCEEDED, message: "all 12 iterations are done" });
    const { notification } = await eventually(async () => {
      const status = await world.status(namespace, "run");
      return status.notification?.state === "Delivered" && status;
    });
    assert.equal(notification!.attempts, 2);
    assert.deepEqual(
      receiver.bodies.map(({ id, data }) => [id, data.phase, data.message]),
      Array(2).fill([`${run.metadata.uid}-Succeeded`, "Succeeded", "all 12 iterations are done"]),
    );
    await hasEvent(namespace, /^WebhookDelivered: the webhook was delivered$/);
    // Any cause for a reconcile: the webhook was already called.
    await world.patchRun(namespace, "run", { ttlSecondsAfterFinished: 3600 });
    await sleep(1000);
    assert.equal(receiver.bodies.length, 2);
    const everything = [
      await world.run(namespace, "run"),
      await world.events(namespace),
      await world.list(CONFIG_MAP, namespace),
    ];
    assert.doesNotMatch(JSON.stringify(everything), /T0P-SECRET|hook\/|127\.0\.0\.1/);
    receiver.close();
  });

  test("a webhook that hangs holds up nothing but the run's own deletion, and that not for ever", async () => {
    const receiver = await receive([]);
    const webhook = { url: receiver.url, timeoutSeconds: 2, maxAttempts: 2, backoffSeconds: 0.1 };
    const { namespace, learner } = await start({ notifications: { webhook }, ttlSecondsAfterFinished: 0 });
    learner.say({ phase: Phase.FAILED_RUN, message: "the disk is full" });
    await eventually(async () => (await world.deployment(namespace, "run"))?.spec?.replicas === 0);
    await eventually(() => receiver.bodies.length === 1);
    assert.equal((await world.status(namespace, "run")).phase, "Failed", "it is there while its webhook is to be told");
    await eventually(async () => (await world.run(namespace, "run")) === undefined);
    assert.equal(receiver.bodies.length, 2);
    await hasEvent(namespace, /^WebhookGivenUp: the webhook was not delivered, 2 of 2 attempts: check spec/);
    receiver.close();
  });

  test("a run that fails says why", async () => {
    const { namespace, learner } = await start();
    learner.say({ phase: Phase.FAILED_RUN, message: "no result for 375 s: no actor is connected" });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Failed");
    assert.match((await conditionOf(namespace, "run", "Succeeded"))!.message, /no actor is connected/);
    await eventually(async () => (await world.deployment(namespace, "run"))?.spec?.replicas === 0);
  });

  /** Ends a learner's container, as the kubelet reports it. */
  const endLearner = async (namespace: string, exitCode: number, message: string) => {
    const [pod] = await eventually(async () => {
      const found = await world.podsOf(namespace, "run", "learner");
      return found.length > 0 && found;
    });
    const finishedAt = new Date().toISOString();
    const container = { name: "learner", image: "longrun/longrun:dev", imageID: "", ready: false, restartCount: 1 };
    const terminated = { exitCode, reason: "Error", message, finishedAt };
    const waiting = { reason: "CrashLoopBackOff" };
    await world.client.mergePatch(
      POD,
      { namespace, name: pod!.metadata.name },
      {
        status: {
          phase: "Running",
          containerStatuses: [{ ...container, state: { waiting }, lastState: { terminated } }],
        },
      },
      { subresource: "status" },
    );
  };
  const unanswered = async (spec: Record<string, unknown> = {}) => {
    const namespace = await world.namespace();
    const mute = world.mute;
    world.mute = (pod) => mute(pod) || pod.metadata.namespace === namespace;
    const holds = world.holds;
    world.holds = (pod) => holds(pod) || pod.metadata.namespace === namespace;
    await world.createRun(namespace, "run", spec);
    return namespace;
  };

  test("what the learner cannot use is a condition, not a crash loop; an edit tries again", async () => {
    const namespace = await unanswered();
    await endLearner(namespace, 2, '{"level":30}\n--task-dir /opt/longrun-tasks/diamonds: there is no such task\n');
    const refused = await eventually(async () => {
      const found = await conditionOf(namespace, "run", "LearnerAvailable");
      return found?.reason === "InvalidConfiguration" && found;
    });
    assert.match(refused.message, /there is no such task/);
    await eventually(async () => (await world.deployment(namespace, "run"))?.spec?.replicas === 0);
    await hasEvent(namespace, /^InvalidConfiguration: .*there is no such task/);
    assert.equal((await conditionOf(namespace, "run", "Ready"))?.reason, "InvalidConfiguration");
    await sleep(1000);
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
    await world.patchRun(namespace, "run", { stopping: { iterations: 7 } });
    await eventually(async () => (await world.deployment(namespace, "run"))?.spec?.replicas === 1);
  });

  test("a learner that crashes is started again by its Deployment, and the condition says why", async () => {
    const namespace = await unanswered();
    await endLearner(namespace, 137, "");
    const crash = await eventually(async () => {
      const found = await conditionOf(namespace, "run", "LearnerAvailable");
      return found?.reason === "LearnerCrashing" && found;
    });
    assert.match(crash.message, /signal 9/);
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 1);
  });

  test("an image that cannot be pulled is named", async () => {
    const namespace = await unanswered({ learner: { image: "registry.example/missing:1" } });
    const [pod] = await eventually(async () => {
      const found = await world.podsOf(namespace, "run", "learner");
      return found.length > 0 && found;
    });
    const waiting = { reason: "ImagePullBackOff", message: 'Back-off pulling image "registry.example/missing:1"' };
    const container = {
      name: "learner",
      image: "registry.example/missing:1",
      imageID: "",
      ready: false,
      restartCount: 0,
      state: { waiting },
    };
    await world.client.mergePatch(
      POD,
      { namespace, name: pod!.metadata.name },
      { status: { containerStatuses: [container] } },
      { subresource: "status" },
    );
    await hasEvent(
      namespace,
      /^ImagePullFailed: image registry\.example\/missing:1 cannot be pulled .*check spec\.learner\.image/,
    );
    assert.equal((await conditionOf(namespace, "run", "Ready"))?.reason, "ImagePullFailed");
  });

  test("a quota that forbids actors is named, and asked no more than once in a while", async () => {
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
    await hasEvent(namespace, /^QuotaExceeded: actors cannot be made: .*raise the quota/);
    const refused = world.writes(namespace, from).filter(({ code, verb }) => code === 403 && verb === "create");
    assert.ok(refused.length >= 1 && refused.length <= 8, `${refused.length} creations were refused`);
    const made = await world.actors(namespace, "run");
    assert.ok(made.length <= 2);
    // Existing actors have everything they need, although no further one can be created.
    for (const { metadata } of made)
      await eventually(() => world.client.get(SECRET, { namespace, name: `${metadata.name}-tls` }));
  });

  test("a sandbox that was killed for memory is told to the learner, once", async () => {
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

  test("a changed spec of actors replaces them a few at a time, and never those that are busy", async () => {
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

  test("an actor that fails again and again is tried one at a time, and told", async () => {
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

  test("deletion takes a checkpoint where the volume stays; the rest goes", async () => {
    const { namespace, run, learner } = await start({ actors: { min: 1 } });
    await eventually(async () => (await world.run(namespace, "run"))?.metadata.finalizers?.includes(FINALIZER));
    await world.client.delete(TRAINING_RUN, { namespace, name: "run" }, { uid: run.metadata.uid! });
    await eventually(async () => (await world.run(namespace, "run")) === undefined);
    assert.equal(learner.suspended.length, 1);
    assert.equal(learner.suspended[0]!.drainSeconds, 0);
    await hasEvent(namespace, /^VolumeStays: volume run-data stays/);
    await eventually(async () => {
      const left = await Promise.all(
        [DEPLOYMENT, JOB, SECRET, SERVICE].map((resource) => world.list(resource, namespace)),
      );
      return left.flat().length === 0;
    }, 60);
    assert.equal((await world.list(PERSISTENT_VOLUME_CLAIM, namespace)).length, 1);

    // A run with the same name is another run with its own volume.
    const again = await world.createRun(namespace, "run");
    await answers(namespace);
    const claims = await world.list(PERSISTENT_VOLUME_CLAIM, namespace);
    const own = claims.find(({ metadata }) => metadata.labels?.[RUN_UID] === again.metadata.uid);
    assert.equal(claims.length, 2);
    assert.equal(own?.metadata.name, `run-data-${again.metadata.uid!.slice(0, 8)}`);
    const deployment = await world.deployment(namespace, "run");
    assert.equal(deployment?.metadata.ownerReferences?.[0]?.uid, again.metadata.uid);
    assert.equal(deployment?.spec?.template.spec?.volumes?.[0]?.persistentVolumeClaim?.claimName, own?.metadata.name);
    await hasEvent(namespace, /^VolumeNameTaken: volume run-data is of an earlier run/);
  });

  test("deletion with retain Never needs nobody's leave", async () => {
    const { namespace, run, learner } = await start({ learner: { storage: { retain: "Never" } } });
    assert.equal((await world.run(namespace, "run"))?.metadata.finalizers, undefined);
    await world.client.delete(TRAINING_RUN, { namespace, name: "run" }, { uid: run.metadata.uid! });
    await hasEvent(namespace, /^VolumeGoes: volume run-data goes with the run/);
    assert.equal(learner.suspended.length, 0);
    await eventually(async () => {
      const [claim] = await world.list(PERSISTENT_VOLUME_CLAIM, namespace);
      return claim === undefined || claim.metadata.deletionTimestamp !== undefined;
    }, 60);
  });

  test("objects that are somebody else's are not taken over", async () => {
    const namespace = await world.namespace();
    const data = { "trainingrun.yaml": "mine" };
    await world.client.create(CONFIG_MAP, { metadata: { namespace, name: "run-config" }, data } as never);
    await world.createRun(namespace, "run");
    await hasEvent(namespace, /^NameTaken: ConfigMap run-config is there already and not longrun's/);
    const config = await world.client.get<{ metadata: { name: string }; data?: object }>(CONFIG_MAP, {
      namespace,
      name: "run-config",
    });
    assert.deepEqual(config?.data, data);
  });

  test("model.source: the model is fetched before the learner starts; what failed is said, and goes on", async () => {
    const namespace = await world.namespace();
    const secretRef = { name: "longrun-hub", key: "HF_TOKEN" };
    const source = { huggingFace: { repo: "acme/model", revision: "main", secretRef } };
    await world.createRun(namespace, "run", { model: { source } });
    const jobOf = () =>
      world.client.get<{ metadata: { name: string; uid: string }; spec?: never }>(JOB, {
        namespace,
        name: "run-model",
      });
    const job = await eventually(jobOf);
    assert.match(JSON.stringify(job.spec), /"secretName":"longrun-hub"/);
    for (const resource of [SERVICE_ACCOUNT, NETWORK_POLICY])
      assert.ok(await world.client.get(resource, { namespace, name: "run-model" }), resource.kind);
    const available = () => conditionOf(namespace, "run", "LearnerAvailable");
    await eventually(async () => (await available())?.reason === "FetchingModel");
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
    const running = (uid?: string) =>
      eventually(async () =>
        (await world.podsOf(namespace, "run", "model")).find(
          ({ status, metadata }) => status?.phase === "Running" && metadata.uid !== uid,
        ),
      );
    const first = await running();
    await world.pods.end(first, 2, [], "acme/model is gated: accept its licence");
    await hasEvent(namespace, /^ModelFetchFailed: model acme\/model at main .* is gated: accept its licence\. Mend/);
    await world.client.delete(JOB, { namespace, name: "run-model" }, { uid: job.metadata.uid });
    await world.pods.end(await running(first.metadata.uid), 0);
    await answers(namespace);
  });

  test("initFrom copies the other run's checkpoint before the learner starts", async () => {
    const { namespace } = await start({}, "source");
    await world.createRun(namespace, "run", { initFrom: { run: "source", iteration: 3 } });
    const job = await eventually(() =>
      world.client.get<{ metadata: { name: string }; spec?: never }>(JOB, { namespace, name: "run-init" }),
    );
    assert.match(JSON.stringify(job.spec), /"claimName":"source-data","readOnly":true/);
    await eventually(
      async () => (await conditionOf(namespace, "run", "LearnerAvailable"))?.reason === "CopyingCheckpoint",
    );
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
    const pod = await eventually(async () =>
      (await world.podsOf(namespace, "run", "init")).find(({ status }) => status?.phase === "Running"),
    );
    await world.pods.end(pod, 0);
    await answers(namespace);
  });

  test("initFrom takes a restored claim by its label, where the run that it is of is not there", async () => {
    const namespace = await world.namespace();
    const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
    const metadata = { namespace, name: "from-snapshot", labels: { [RUN]: "saved" } };
    await world.client.create(PERSISTENT_VOLUME_CLAIM, { metadata, spec } as never);
    await world.createRun(namespace, "run", { initFrom: { run: "saved" } });
    const job = await eventually(() =>
      world.client.get<{ metadata: { name: string }; spec?: never }>(JOB, { namespace, name: "run-init" }),
    );
    assert.match(JSON.stringify(job.spec), /"claimName":"from-snapshot","readOnly":true/);
    const pod = await eventually(async () =>
      (await world.podsOf(namespace, "run", "init")).find(({ status }) => status?.phase === "Running"),
    );
    await world.pods.end(pod, 0);
    await answers(namespace);
    // It stays its owner's: neither a label nor an owner is added.
    const claim = await world.client.get(PERSISTENT_VOLUME_CLAIM, metadata);
    assert.deepEqual([claim?.metadata.labels, claim?.metadata.ownerReferences], [metadata.labels, undefined]);
  });

  test("a run that another controller manages is not touched", async () => {
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { managedBy: "example.com/other" });
    await sleep(1500);
    assert.deepEqual(await world.status(namespace, "run"), {});
    assert.deepEqual(await world.list(SECRET, namespace), []);
  });
});

test("when nothing changes nothing is written, and a controller that starts anew writes nothing", {
  skip,
}, async () => {
  await sleep(Math.max(0, quietFrom.atMs + QUIET_SECONDS * 1000 - performance.now()));
  assert.deepEqual(world.writes(quiet, quietFrom.audit), []);

  await operator.stop();
  const restart = world.auditLength();
  operator = await world.operator();
  await sleep(RESTARTED_SECONDS * 1000);
  assert.deepEqual(world.writes(quiet, restart), []);
  assert.equal((await world.actors(quiet, "quiet")).length, 2);
});

test("longrun controller: a process that is ready, reconciles its namespaces alone, and stops when it is told", {
  skip,
}, async () => {
  await operator.stop();
  const [mine, second, other] = [await world.namespace(), await world.namespace(), await world.namespace()];
  for (const namespace of [mine, second]) await world.createRun(namespace, "run");
  await world.createRun(other, "run");
  const cli = fileURLToPath(new URL("../../controller/cli.ts", import.meta.url));
  const args = ["--kubeconfig", world.controlPlane.kubeconfig, "--metrics-address", "127.0.0.1:0"];
  for (const namespace of [mine, second]) args.push("--namespace", namespace);
  for (const option of ["--image", "--actor-image", "--sandbox-image"]) args.push(option, "registry.example.com/any:1");
  const child = spawn(process.execPath, [cli, "controller", ...args, "--leader-elect"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (log += text));
  try {
    const address = await eventually(() => /"metrics":"([^"]+)"/.exec(log)?.[1]);
    await eventually(async () => (await fetch(`http://${address}/readyz`)).status === 200);
    assert.equal((await fetch(`http://${address}/healthz`)).status, 200);
    for (const namespace of [mine, second])
      await eventually(async () => (await world.status(namespace, "run")).observedGeneration === 1);
    assert.deepEqual(await world.status(other, "run"), {});
    const metrics = await (await fetch(`http://${address}/metrics`)).text();
    assert.match(metrics, /leader_election_master_status\{name="longrun-controller"\} 1/);
    assert.match(metrics, /controller_runtime_reconcile_total\{controller="trainingrun",result="[a-z_]+"\} [1-9]/);
  } finally {
    child.kill("SIGTERM");
  }
  assert.deepEqual(await exited, [0, null], log);
});
