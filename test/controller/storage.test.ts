/** spec.results and learner.storage.retainSeconds against a real API server and real controllers of Jobs. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  JOB,
  type Job,
  NETWORK_POLICY,
  PERSISTENT_VOLUME_CLAIM,
  POD,
  type Pod,
  SERVICE_ACCOUNT,
  TRAINING_RUN,
} from "../../controller/operator/kube/resources.ts";
import type { KubeObject, Resource } from "../../controller/operator/kube/types.ts";
import { connect } from "../../controller/plugin/cluster.ts";
import { listVolumes } from "../../controller/plugin/volumes.ts";
import { Phase } from "./simulated-learner.ts";
import { hasEvent, skip, start, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

const S3 = {
  bucket: "results",
  prefix: "team/run",
  endpoint: "http://minio.test:9000",
  secretRef: { name: "longrun-s3" },
};
const URL = "s3://results/team/run";

useWorld({ controller: { sweepSeconds: 0.2 } });

describe("storage", { skip, concurrency: 4 }, () => {
  const checkpoint = (iteration: number) => ({
    checkpoint: { iteration, digest: "d".repeat(64), path: `checkpoints/1-00000${iteration}` },
  });
  const job = (namespace: string) => world.client.get<Job & { spec: object }>(JOB, { namespace, name: "run-results" });
  const results = async (namespace: string) => (await world.status(namespace, "run")).results;
  const pod = (namespace: string, earlier: Pod[] = []) =>
    eventually(async () =>
      (await world.podsOf(namespace, "run", "results")).find(
        ({ status, metadata }) =>
          status?.phase === "Running" && !earlier.some((other) => other.metadata.uid === metadata.uid),
      ),
    );

  test("A Job copies each new checkpoint beside the learner; the last copy is at the run's end", async () => {
    const { namespace, learner } = await start({ results: { s3: S3, intervalSeconds: 0, keepLast: 2 } });
    learner.say(checkpoint(1));
    const first = await pod(namespace);
    const { spec, containers, volumes } = { spec: first.spec!, ...first.spec! };
    const args = ["push", "/data/run", URL, "--keep-last", "2", "--json"];
    assert.deepEqual(containers[0]!.args, args);
    assert.equal(containers[0]!.volumeMounts!.find(({ name }) => name === "data")!.readOnly, true);
    assert.deepEqual(volumes!.find(({ name }) => name === "data")!.persistentVolumeClaim!.claimName, "run-data");
    assert.match(JSON.stringify(spec.affinity), /"requiredDuringScheduling.*"app.kubernetes.io\/component":"learner"/);
    assert.deepEqual([spec.serviceAccountName, spec.automountServiceAccountToken], ["run-results", false]);
    const env = JSON.stringify(containers[0]!.env);
    assert.match(env, /"AWS_ENDPOINT_URL_S3","value":"http:\/\/minio\.test:9000"/);
    assert.match(env, /"secretKeyRef":\{"name":"longrun-s3","key":"AWS_SECRET_ACCESS_KEY"/);
    const [learnerPod] = await world.podsOf(namespace, "run", "learner");
    assert.doesNotMatch(JSON.stringify(learnerPod), /longrun-s3|minio\.test/);
    for (const resource of [SERVICE_ACCOUNT, NETWORK_POLICY])
      assert.ok(await world.client.get(resource, { namespace, name: "run-results" }), resource.kind);

    await world.pods.end(first, 0);
    const once = await eventually(
      async () => (await results(namespace))?.iteration === 1 && (await results(namespace)),
    );
    assert.deepEqual([once.url, once.final, once.message], [URL, false, undefined]);
    await sleep(1000);
    assert.deepEqual((await world.podsOf(namespace, "run", "results")).length, 1, "nothing new, nothing copied");

    learner.say(checkpoint(2));
    const second = await pod(namespace, [first]);
    await world.pods.end(second, 0);
    await eventually(async () => (await results(namespace))?.iteration === 2);
    learner.say({ phase: Phase.SUCCEEDED, message: "all 12 iterations are done" });
    const last = await pod(namespace, [first, second]);
    await world.pods.end(last, 0);
    await eventually(async () => (await results(namespace))?.final === true);
    await sleep(1000);
    assert.equal((await job(namespace))!.status!.succeeded, 1, "the last one stays, for its log");
  });

  test("A failed copy is reported and repeated; a finished run waits for its last copy", async () => {
    const s3 = { bucket: "results", prefix: "team/run", serviceAccountName: "longrun-s3-team" };
    const { namespace, learner } = await start({ results: { s3, intervalSeconds: 1 } });
    await world.client.create(SERVICE_ACCOUNT, { metadata: { namespace, name: "longrun-s3-team" } });
    learner.say(checkpoint(1));
    const first = await pod(namespace);
    assert.equal(first.spec!.serviceAccountName, "longrun-s3-team");
    await world.pods.end(
      first,
      2,
      [],
      "https://s3.test refuses s3://results: 403 AccessDenied; give the credentials this right",
    );
    await hasEvent(
      namespace,
      /^ResultsNotPushed: results could not be copied to s3:\/\/results\/team\/run: .* refuses/,
    );
    await eventually(async () =>
      /403 AccessDenied; .* tried again every 1 s/.test((await results(namespace))?.message ?? ""),
    );
    const second = await pod(namespace, [first]);
    learner.say({ phase: Phase.SUCCEEDED, message: "done" });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Succeeded");
    await world.patchRun(namespace, "run", { ttlSecondsAfterFinished: 0 });
    await world.pods.end(second, 0);
    const last = await pod(namespace, [first, second]);
    assert.ok(await world.run(namespace, "run"), "the run stays while its last copy has to be made");
    await world.pods.end(last, 0);
    // a Job is made again if the learner's pod, next to which its own pod waits, goes at that moment
    await eventually(async () => {
      if ((await world.run(namespace, "run")) === undefined) return true;
      const again = (await world.podsOf(namespace, "run", "results")).find(
        ({ status, metadata }) =>
          status?.phase === "Running" && ![first, second, last].some((other) => other.metadata.uid === metadata.uid),
      );
      if (again) await world.pods.end(again, 0);
      return false;
    });
  });

  test("The status names the field of a service account that does not exist, for the model's Job and the results' Job", async () => {
    const s3 = { bucket: "models", prefix: "m", serviceAccountName: "longrun-s3-none" };
    const missing = (field: string) =>
      new RegExp(`serviceaccount "longrun-s3-none" not found; create it, or name another in ${field}$`);
    await refuseAccount(s3.serviceAccountName);
    const fetching = await world.namespace();
    await world.createRun(fetching, "run", { model: { source: { s3 } } });
    const { namespace, learner } = await start({ results: { s3 } });
    learner.say(checkpoint(1));
    await eventually(async () => missing("spec\\.results\\.s3").test((await results(namespace))?.message ?? ""), 60);
    await eventually(async () => {
      const { conditions } = await world.status(fetching, "run");
      const { reason, message } = conditions!.find(({ type }) => type === "LearnerAvailable")!;
      return reason === "PodNotCreated" && missing("spec\\.model\\.source").test(message);
    }, 60);
  });

  test("A copy without a node is given up after deadlineSeconds, and the finished run is deleted", async () => {
    const stuck = await world.namespace();
    world.holds = ({ metadata }) => metadata.namespace === stuck && metadata.name.startsWith("run-results");
    await world.createRun(stuck, "run", { results: { s3: S3, deadlineSeconds: 5, intervalSeconds: 600 } });
    const learner = await eventually(() => world.learners.get(`${stuck}/run`));
    learner.say(checkpoint(1));
    learner.say({ phase: Phase.SUCCEEDED, message: "done" });
    await eventually(async () => (await world.status(stuck, "run")).phase === "Succeeded");
    await hasEvent(stuck, /^ResultsNotPushed: .*it did not end within 5 s \(spec\.results\.deadlineSeconds\)/);
    await eventually(async () => /did not end within 5 s/.test((await results(stuck))?.message ?? ""));
    await world.patchRun(stuck, "run", { ttlSecondsAfterFinished: 0 });
    await eventually(async () => (await world.run(stuck, "run")) === undefined);
  });

  test("A retained volume is deleted when its time is over, but not while its run exists", async () => {
    const { namespace } = await start({ learner: { storage: { retainSeconds: 2 } } });
    const kept = await start({ learner: { storage: { retain: "Always" } } });
    const claim = (of = namespace) => world.client.get(PERSISTENT_VOLUME_CLAIM, { namespace: of, name: "run-data" });
    await sleep(3000);
    assert.deepEqual((await claim())?.metadata.annotations?.["longrun.dev/retained-since"], undefined);
    for (const each of [namespace, kept.namespace]) await deleteRun(each);
    const noted = await eventually(async () => {
      const found = await claim();
      return found?.metadata.annotations?.["longrun.dev/retained-since"] !== undefined && found;
    });
    assert.equal(noted.metadata.deletionTimestamp, undefined);
    await eventually(async () => {
      const found = await claim();
      return found === undefined || found.metadata.deletionTimestamp !== undefined;
    });
    assert.equal((await claim(kept.namespace))?.metadata.deletionTimestamp, undefined);
  });

  test("A retained volume stays until the run that copies from it has started", async () => {
    const { namespace } = await start({ learner: { storage: { retainSeconds: 0 } } });
    const next = { initFrom: { run: "run" }, suspend: true };
    await world.createRun(namespace, "next", next);
    await deleteRun(namespace);
    await sleep(1500);
    const claim = () => world.client.get(PERSISTENT_VOLUME_CLAIM, { namespace, name: "run-data" });
    const isDeleted = async () => (await claim())?.metadata.deletionTimestamp !== undefined || !(await claim());
    assert.equal(await isDeleted(), false);
    assert.match(await list(namespace), /^run-data +run +gone .* once next has started$/m);

    await world.patchRun(namespace, "next", { suspend: false });
    const [copy] = await eventually(async () => {
      const pods = await world.podsOf(namespace, "next", "init");
      return pods.some(({ status }) => status?.phase === "Running") && pods;
    });
    assert.equal(await isDeleted(), false);
    await world.pods.end(copy!, 0);
    await eventually(isDeleted);
  });

  test("A run that removes retainSeconds keeps its volume", async () => {
    const { namespace } = await start({ learner: { storage: { retainSeconds: 0 } } });
    const note = async () =>
      (await world.client.get(PERSISTENT_VOLUME_CLAIM, { namespace, name: "run-data" }))?.metadata.annotations?.[
        "longrun.dev/retain-seconds"
      ];
    assert.equal(await note(), "0");
    await world.patchRun(namespace, "run", { learner: { storage: { retainSeconds: null } } });
    await eventually(async () => (await note()) === "");
    await deleteRun(namespace);
    await sleep(1500);
    assert.equal(await note(), "");
  });

  test("kubectl longrun volumes lists volumes without a run or of finished runs, and when they are deleted", async () => {
    const { namespace } = await start({ learner: { storage: { retainSeconds: 7200, size: "3Gi" } } });
    assert.equal(await list(namespace), "no volume of a run that is gone or over\n");
    await deleteRun(namespace);
    const [head, row] = (await list(namespace)).split("\n");
    assert.match(head!, /^NAME +RUN +STATE +SIZE +AGE +DELETED$/);
    assert.match(row!, /^run-data +run +gone +3Gi +\d+ s +in (2 h 0 min|1 h 59 min)$/);
    const [{ leftSeconds, ...volume }] = JSON.parse(await list(namespace, true));
    assert.ok(leftSeconds > 7000, `${leftSeconds}`);
    assert.deepEqual([volume.name, volume.namespace, volume.state], ["run-data", namespace, "gone"]);
  });

  /** Makes the API server refuse pods with this account, as its ServiceAccount plugin does, which the tests' API server lacks. */
  async function refuseAccount(account: string): Promise<void> {
    const policy = (plural: string, kind: string): Resource => ({
      ...{ group: "admissionregistration.k8s.io", version: "v1", plural, kind, namespaced: false },
    });
    const rule = { apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] };
    const message = `error looking up service account: serviceaccount "${account}" not found`;
    const validations = [{ expression: `object.spec.?serviceAccountName.orValue("") != "${account}"`, message }];
    const metadata = { name: account };
    const spec = { matchConstraints: { resourceRules: [rule] }, validations };
    await world.client.create(policy("validatingadmissionpolicies", "ValidatingAdmissionPolicy"), {
      metadata,
      spec,
    } as KubeObject);
    const binding = { policyName: account, validationActions: ["Deny"] };
    await world.client.create(policy("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"), {
      metadata,
      spec: binding,
    } as KubeObject);
    const namespace = await world.namespace();
    await eventually(async () => {
      const probe = { serviceAccountName: account, containers: [{ name: "a", image: "a" }] };
      const pod = { metadata: { namespace, name: `probe-${Date.now()}` }, spec: probe } as KubeObject;
      return world.client.create(POD, pod).then(
        () => false,
        (error: Error) => error.message.includes(message),
      );
    });
  }

  async function list(namespace: string, json = false): Promise<string> {
    let text = "";
    const cluster = connect({ kubeconfig: world.controlPlane.kubeconfig, namespace }, new AbortController().signal);
    await listVolumes(cluster, { allNamespaces: false, json }, { write: (more: string) => (text += more) } as never);
    cluster.client.close();
    return text;
  }

  async function deleteRun(namespace: string): Promise<void> {
    const run = (await world.run(namespace, "run"))!;
    await world.client.delete(TRAINING_RUN, { namespace, name: "run" }, { uid: run.metadata.uid });
    await eventually(async () => (await world.run(namespace, "run")) === undefined);
  }
});
