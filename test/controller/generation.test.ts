/** Generators of a run against a real API server: creation, scaling, deletion and repair. The test has no generator processes. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { describe, test } from "node:test";
import { GENERATORS, RUN_UID } from "../../controller/operator/desired/names.ts";
import {
  DEPLOYMENT,
  type Deployment,
  NETWORK_POLICY,
  PERSISTENT_VOLUME_CLAIM,
  type PersistentVolumeClaim,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Secret,
} from "../../controller/operator/kube/resources.ts";
import { UNUSED_SECONDS } from "../../controller/operator/parts/generators/generation.ts";
import { Phase } from "./simulated-learner.ts";
import { answers, conditionOf, hasEvent, hasReason, skip, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

const NAME = `run-${GENERATORS}`;

/** The controller's clock. */
const clock = { aheadMs: 0 };
useWorld({ controller: { now: () => Date.now() + clock.aheadMs } });

const start = async (spec: object = {}) => {
  const namespace = await world.namespace();
  const run = await world.createRun(namespace, "run", {
    model: { policy: "quickstart", generationBatchSize: 4 },
    generation: { replicas: { min: 2, max: 4 }, scaleDownSeconds: 0 },
    ...spec,
  });
  return { namespace, run };
};
const deployment = (namespace: string) => world.client.get<Deployment>(DEPLOYMENT, { namespace, name: NAME });
const pods = async (namespace: string) =>
  (await world.podsOf(namespace, "run", "generator")).filter(({ metadata }) => !metadata.deletionTimestamp);
const hasPods = (namespace: string, count: number) => eventually(async () => (await pods(namespace)).length === count);
const status = async (namespace: string) => (await world.status(namespace, "run")).generation;
const isReady = (namespace: string, ready: number) =>
  eventually(async () => (await status(namespace))?.ready === ready);
const generating = (waitingPrompts: number, running: number[], notUsedBecause = "") => ({
  phase: Phase.GENERATING,
  generation: {
    waitingPrompts,
    generators: running.map((it, i) => ({
      ...{ address: `10.0.0.${i}:8443`, ready: true, running: it, policyVersion: 5, notUsedBecause },
    })),
  },
});

describe("The controller and generators", { skip, concurrency: 4 }, () => {
  test("It creates generators with all their objects, owned by the run, under the restricted level", async () => {
    const namespace = await world.namespace();
    await world.client.mergePatch(
      { group: "", version: "v1", plural: "namespaces", kind: "Namespace", namespaced: false },
      { name: namespace },
      { metadata: { labels: { "pod-security.kubernetes.io/enforce": "restricted" } } },
    );
    const model = {
      policy: "./m",
      volume: { persistentVolumeClaim: { claimName: "m" } },
      adaptation: { type: "LoRA", rank: 16 },
    };
    const run = await world.createRun(namespace, "run", {
      model,
      generation: { engine: "VLLM", image: "vllm", replicas: { min: 2, max: 2 } },
    });
    await answers(namespace);
    await isReady(namespace, 2);
    const condition = await hasReason(namespace, "GenerationAvailable", "AsDesired");
    assert.equal(condition.status, "True");
    assert.deepEqual(await status(namespace), { ready: 2, replicas: 2 });
    assert.equal((await world.status(namespace, "run")).display?.generators, "2/2");
    for (const resource of [DEPLOYMENT, SERVICE, SERVICE_ACCOUNT, NETWORK_POLICY, SECRET]) {
      const name = resource === SECRET ? `${NAME}-tls` : NAME;
      const child = await eventually(() => world.client.get(resource, { namespace, name }));
      assert.equal(child.metadata.ownerReferences?.[0]?.uid, run.metadata.uid, name);
      assert.equal(child.metadata.labels?.[RUN_UID], run.metadata.uid);
    }
    const secret = await world.client.get<Secret>(SECRET, { namespace, name: `${NAME}-tls` });
    const certificate = new X509Certificate(Buffer.from(secret!.data!["tls.crt"]!, "base64"));
    assert.deepEqual(certificate.subject.split("\n"), ["O=longrun", "OU=generator", "CN=run"]);
    assert.equal(certificate.checkHost(`${NAME}.${namespace}.svc`), `${NAME}.${namespace}.svc`);
    const [learner] = await world.podsOf(namespace, "run", "learner");
    const { args } = learner!.spec!.containers[0]!;
    assert.equal(args![args!.indexOf("--generators") + 1], `https://${NAME}.${namespace}.svc:8443`);
  });

  test("It follows the number of waiting prompts between min and max, and replaces a lost generator", async () => {
    const { namespace } = await start();
    await answers(namespace);
    await isReady(namespace, 2);
    world.learner(namespace, "run").say(generating(7, [4, 4]));
    await isReady(namespace, 4);
    await hasEvent(
      namespace,
      /ScaledUp: scaled generators 2 -> 4: 7 prompts wait, 8 solutions are written, 4 fit in a generator/,
    );
    await eventually(async () => (await status(namespace))?.policyVersion === 5);
    const [lost] = await pods(namespace);
    await world.deletePod(lost!);
    await eventually(async () => {
      const now = await pods(namespace);
      return now.length === 4 && now.every(({ metadata }) => metadata.uid !== lost!.metadata.uid);
    });
    world.learner(namespace, "run").say(generating(0, [0, 0, 0, 0]));
    await hasPods(namespace, 2);
    await hasEvent(namespace, /ScaledDown: scaled generators 4 -> 2/);
  });

  test("It deletes generators with a suspension, creates them again on resume, and deletes them with the run", async () => {
    const { namespace } = await start({ learner: { storage: { retain: "Never" } } });
    await answers(namespace);
    await isReady(namespace, 2);
    await world.patchRun(namespace, "run", { suspend: true });
    await hasPods(namespace, 0);
    await hasReason(namespace, "GenerationAvailable", "NoWork");
    assert.equal((await deployment(namespace))?.spec?.replicas, 0);
    const learns = () => world.learners.has(`${namespace}/run`);
    await eventually(() => !learns());
    await world.patchRun(namespace, "run", { suspend: false });
    await isReady(namespace, 2);
    await eventually(learns);
    const run = (await world.run(namespace, "run"))!;
    await world.client.delete(
      { group: "longrun.dev", version: "v1alpha1", plural: "trainingruns", kind: "TrainingRun", namespaced: true },
      { namespace, name: "run" },
      { uid: run.metadata.uid, propagationPolicy: "Background" },
    );
    await eventually(async () => (await deployment(namespace)) === undefined);
    await hasPods(namespace, 0);
  });

  test("When generation is removed, the learner restarts without generators and their pods are deleted", async () => {
    const { namespace } = await start();
    await answers(namespace);
    await isReady(namespace, 2);
    await world.patchRun(namespace, "run", { generation: null });
    await hasPods(namespace, 0);
    await eventually(async () => (await conditionOf(namespace, "GenerationAvailable")) === undefined);
    const learner = await eventually(() => world.deployment(namespace, "run"));
    assert.ok(!learner.spec!.template.spec!.containers[0]!.args!.includes("--generators"));
  });

  test("It undoes changes of a generator by hand", async () => {
    const { namespace } = await start();
    await isReady(namespace, 2);
    await world.client.mergePatch(DEPLOYMENT, { namespace, name: NAME }, { spec: { replicas: 9 } });
    await hasEvent(namespace, /Repaired: Deployment run-generators .*spec\.replicas is 9, should be 2/);
    await world.client.mergePatch(
      NETWORK_POLICY,
      { namespace, name: NAME },
      { spec: { egress: [{ to: [{ namespaceSelector: {} }] }] } },
    );
    await hasEvent(namespace, /Repaired: NetworkPolicy run-generators/);
  });

  test("Generators wait, with a remedy, for a claim that takes only one pod, and start with another claim", async () => {
    const namespace = await world.namespace();
    const claim = (name: string, mode: string) =>
      world.client.create<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, {
        metadata: { namespace, name },
        spec: { accessModes: [mode], resources: { requests: { storage: "1Gi" } } },
      });
    await claim("one", "ReadWriteOncePod");
    await world.createRun(namespace, "run", {
      model: { policy: "./m", volume: { persistentVolumeClaim: { claimName: "one" } } },
      generation: {},
    });
    const condition = await hasReason(namespace, "GenerationAvailable", "Refused");
    assert.match(
      condition.message,
      /claim one of spec\.model\.volume is ReadWriteOncePod.*ReadOnlyMany or ReadWriteMany/,
    );
    assert.equal(await deployment(namespace), undefined);
    await claim("many", "ReadOnlyMany");
    await world.createRun(namespace, "other", {
      model: { policy: "./m", volume: { persistentVolumeClaim: { claimName: "many" } } },
      generation: {},
    });
    await eventually(async () => (await world.status(namespace, "other")).generation?.ready === 1);
  });
});

// Alone: the clock is the same for all runs.
test("The condition names generators whose rows differ from the learner's, and the run is not ready", {
  skip,
}, async () => {
  const { namespace } = await start();
  await answers(namespace);
  await isReady(namespace, 2);
  world.learner(namespace, "run").say(generating(7, [4, 4], "its log-probs differ by 2.5"));
  await isReady(namespace, 4); // the controller has heard it
  clock.aheadMs += UNUSED_SECONDS * 1000;
  world.learner(namespace, "run").say({ iteration: 2 });
  const condition = await hasReason(namespace, "GenerationAvailable", "GeneratorsNotUsed");
  assert.equal(condition.status, "False");
  assert.match(condition.message, /10\.0\.0\.0:8443: its log-probs differ by 2\.5; 10\.0\.0\.1:8443/);
  await hasReason(namespace, "Ready", "GeneratorsNotUsed");
});
