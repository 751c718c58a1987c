/** Tests the controller with a real API server, real controllers of Deployments and Jobs, and simulated learners. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { RUN, RUN_UID } from "../../controller/operator/desired/names.ts";
import {
  CONFIG_MAP,
  DEPLOYMENT,
  type Deployment,
  JOB,
  NETWORK_POLICY,
  PERSISTENT_VOLUME_CLAIM,
  POD_DISRUPTION_BUDGET,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Secret,
  TRAINING_RUN,
} from "../../controller/operator/kube/resources.ts";
import { FINALIZER } from "../../controller/operator/parts/lifecycle/deletion.ts";
import {
  answers,
  conditionOf,
  hasActors,
  hasEvent,
  operator,
  restartOperator,
  skip,
  start,
  useWorld,
  world,
} from "./steps.ts";
import { eventually } from "./world.ts";

/** How long converged runs are watched for unnecessary writes, also after a restart of the controller. */
const QUIET_SECONDS = 60;
const RESTARTED_SECONDS = 4;

/** Namespace of runs that converge before the other tests begin and are checked after them. */
let quiet: string;
let quietFrom: { audit: number; atMs: number };

useWorld({
  ready: async () => {
    quiet = await world.namespace();
    await world.createRun(quiet, "quiet", { actors: { min: 2, max: 2 } });
    await world.createRun(quiet, "suspended", { suspend: true });
    await eventually(async () => (await world.status(quiet, "quiet")).actors?.idle === 2);
    await eventually(async () => (await world.status(quiet, "suspended")).phase === "Suspended");
    await sleep(1000);
    quietFrom = { audit: world.auditLength(), atMs: performance.now() };
  },
});

describe("reconcile", { skip, concurrency: 6 }, () => {
  test("The controller creates every child, owned by the run", async () => {
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

  test("The pods pass the admission of the restricted level", async () => {
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

  test("the controller repairs children that somebody changed or deleted, and records an event", async () => {
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

  test("An actor's certificate names the actor, is made again if it is lost, and is deleted with the actor's Job", async () => {
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

  test("The controller leaves an addition that no field forbids", async () => {
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

  test("deletion waits for a checkpoint if the volume stays, and deletes the other children", async () => {
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
    await hasEvent(namespace, /^VolumeNameTaken: volume run-data belongs to an earlier run/);
  });

  test("deletion with retain Never does not wait for the learner", async () => {
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

  test("the controller does not take over objects of somebody else", async () => {
    const namespace = await world.namespace();
    const data = { "trainingrun.yaml": "mine" };
    await world.client.create(CONFIG_MAP, { metadata: { namespace, name: "run-config" }, data } as never);
    await world.createRun(namespace, "run");
    await hasEvent(namespace, /^NameTaken: ConfigMap run-config exists already and is not longrun's/);
    const config = await world.client.get<{ metadata: { name: string }; data?: object }>(CONFIG_MAP, {
      namespace,
      name: "run-config",
    });
    assert.deepEqual(config?.data, data);
  });

  test("The model of model.source is fetched before the learner starts; a failure is reported and repeated", async () => {
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
    const available = () => conditionOf(namespace, "LearnerAvailable");
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
    await hasEvent(
      namespace,
      /^ModelFetchFailed: model acme\/model at main .* is gated: accept its licence\. Remove the cause/,
    );
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
    await eventually(async () => (await conditionOf(namespace, "LearnerAvailable"))?.reason === "CopyingCheckpoint");
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
    const pod = await eventually(async () =>
      (await world.podsOf(namespace, "run", "init")).find(({ status }) => status?.phase === "Running"),
    );
    await world.pods.end(pod, 0);
    await answers(namespace);
  });

  test("initFrom finds a restored claim by its label if the run that it belonged to does not exist", async () => {
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

  test("The controller does not touch a run that another controller manages", async () => {
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { managedBy: "example.com/other" });
    await sleep(1500);
    assert.deepEqual(await world.status(namespace, "run"), { observedGeneration: -1 });
    assert.deepEqual(await world.list(SECRET, namespace), []);
  });
});

test("the controller writes nothing while nothing changes, and nothing after a restart", {
  skip,
}, async () => {
  await sleep(Math.max(0, quietFrom.atMs + QUIET_SECONDS * 1000 - performance.now()));
  assert.deepEqual(world.writes(quiet, quietFrom.audit), []);

  await operator!.stop();
  const restart = world.auditLength();
  await restartOperator();
  await sleep(RESTARTED_SECONDS * 1000);
  assert.deepEqual(world.writes(quiet, restart), []);
  assert.equal((await world.actors(quiet, "quiet")).length, 2);
});

test("longrun controller becomes ready, reconciles only its namespaces, and stops on SIGTERM", {
  skip,
}, async () => {
  await operator!.stop();
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
    assert.deepEqual(await world.status(other, "run"), { observedGeneration: -1 });
    const metrics = await (await fetch(`http://${address}/metrics`)).text();
    assert.match(metrics, /leader_election_master_status\{name="longrun-controller"\} 1/);
    assert.match(metrics, /controller_runtime_reconcile_total\{controller="trainingrun",result="[a-z_]+"\} [1-9]/);
  } finally {
    child.kill("SIGTERM");
  }
  assert.deepEqual(await exited, [0, null], log);
});
