/** Tests the Jobs that run before the learner: the copy of a checkpoint, and the fetch of a model. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { desiredInit } from "../parts/inputs/init.ts";
import { desiredModelJob } from "../parts/inputs/model.ts";
import { runOf } from "../run.fixture.ts";
import { desiredNetworkPolicies, desiredServiceAccounts } from "./access.ts";
import { configOf, podsOf } from "./desired.fixture.ts";
import type { Run } from "./names.ts";
import { DEFAULT_SETTINGS } from "./settings.fixture.ts";

test("The Job that copies a checkpoint has the requests that a quota of CPU and memory demands", () => {
  const { requests, limits } = podsOf(runOf({ initFrom: { run: "other" } })).init.containers[0]!.resources!;
  for (const counted of [requests!, limits!]) assert.deepEqual(Object.keys(counted), ["cpu", "memory"]);
});

describe("The init Job", () => {
  const tolerations = [{ key: "gpu", operator: "Exists" }];
  const term = { matchExpressions: [{ key: "disk", operator: "Exists" }] };
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } };
  const follows = {
    ...{ affinity, imagePullSecrets: [{ name: "registry" }], nodeSelector: { pool: "gpu" }, tolerations },
    ...{ priorityClassName: "high", runtimeClassName: "gvisor", schedulerName: "own" },
  };
  const others = {
    containers: [{ name: "learner", env: [{ name: "A", value: "1" }] }],
    volumes: [{ name: "more", emptyDir: {} }],
    resourceClaims: [{ name: "gpus", resourceClaimName: "a" }],
  };
  const initOf = (spec: object, resources: object = {}) =>
    desiredInit(
      runOf({ initFrom: { run: "other" }, learner: { podTemplate: { spec }, resources } }),
      ...(["quick-data", "other-data", DEFAULT_SETTINGS] as const),
    );

  test("It runs where the learner runs, with its pull secrets and variables, and without its GPU", () => {
    const pod = initOf({ ...follows, ...others }, { limits: { "nvidia.com/gpu": "1" } }).spec!.template.spec!;
    for (const [field, value] of Object.entries(follows)) assert.deepEqual(pod[field as "affinity"], value, field);
    assert.deepEqual([pod.containers.map(({ name }) => name), pod.initContainers], [["copy"], undefined]);
    assert.deepEqual(
      pod.volumes!.map(({ name }) => name),
      ["data", "source"],
    );
    assert.doesNotMatch(JSON.stringify(pod), /nvidia|gpus/);
  });

  test("It is another Job when the placement changes, and the same Job when anything else changes", () => {
    const hash = (spec: object) => initOf(spec).metadata.annotations!["longrun.dev/spec-hash"];
    assert.notEqual(hash(follows), hash({}));
    assert.equal(hash({ ...follows, volumes: others.volumes }), hash(follows));
  });
});

describe("The Job that fetches a model", () => {
  const proxy = { HTTPS_PROXY: "http://proxy.test:3128", NO_PROXY: ".cluster.local" };
  const sourceOf = (change: object = {}, learner: object = {}) =>
    runOf({ model: { source: { huggingFace: { repo: "a/b", ...change } } }, learner });
  const jobOf = (run: Run) => desiredModelJob(run, "quick-data", { ...DEFAULT_SETTINGS, proxy });
  const secretRef = { name: "longrun-hub", key: "token" };

  test("The learner reads its policy where the Job writes it; the source starts no learner anew", () => {
    const { policy, source } = configOf(sourceOf({ secretRef })).spec.model;
    assert.deepEqual([policy, source], ["/data/model", undefined]);
    assert.deepEqual(configOf(sourceOf()), configOf(sourceOf({ secretRef, endpoint: "https://hub.test" })));
    assert.ok(podsOf(sourceOf()).learner.volumes!.every(({ name }) => name !== "model"));
  });

  test("The Job writes the model to the run's volume, with its own account, the token and the proxy", () => {
    const run = sourceOf({ revision: "v1", secretRef, endpoint: "https://hub.test" });
    const pod = jobOf(run).spec!.template.spec!;
    const [container] = pod.containers;
    assert.deepEqual(container!.args, ["fetch", "a/b", "--revision", "v1", "--out", "/data/model", "--json"]);
    assert.deepEqual(Object.fromEntries(container!.env!.map(({ name, value }) => [name, value])), {
      ...proxy,
      ...{ HF_ENDPOINT: "https://hub.test", HF_TOKEN_PATH: "/token/token" },
    });
    assert.deepEqual([pod.serviceAccountName, pod.automountServiceAccountToken], ["quick-model", false]);
    assert.deepEqual(
      pod.volumes!.map(({ persistentVolumeClaim, secret }) => persistentVolumeClaim?.claimName ?? secret?.secretName),
      ["quick-data", "longrun-hub"],
    );
    for (const other of Object.values(podsOf(run)))
      assert.doesNotMatch(JSON.stringify(other), /"longrun-hub"|hub\.test/);
    const [rule] = jobOf(run).spec!.podFailurePolicy!.rules;
    assert.deepEqual([rule!.action, rule!.onExitCodes!.values], ["FailJob", [2]]);
    const open = jobOf(sourceOf()).spec!.template.spec!;
    assert.deepEqual(
      open.volumes!.map(({ name }) => name),
      ["data"],
    );
  });

  test("The Job runs where the learner runs, and is another Job with another token or mirror", () => {
    const nodeSelector = { pool: "gpu" };
    const job = jobOf(sourceOf({}, { podTemplate: { spec: { nodeSelector } } }));
    assert.deepEqual(job.spec!.template.spec!.nodeSelector, nodeSelector);
    const hash = (run: Run) => jobOf(run).metadata.annotations!["longrun.dev/spec-hash"];
    assert.equal(hash(sourceOf()), hash(sourceOf({}, { startSeconds: 9 })));
    for (const change of [{ secretRef }, { endpoint: "https://hub.test" }])
      assert.notEqual(hash(sourceOf()), hash(sourceOf(change)));
  });

  test("The Job alone has its account and its way out of the cluster", () => {
    const names = (run: Run) => desiredServiceAccounts(run).map(({ metadata: { name } }) => name);
    assert.deepEqual(names(sourceOf()), ["quick-learner", "quick-actor", "quick-model"]);
    assert.deepEqual(names(runOf()), ["quick-learner", "quick-actor"]);
    const policies = (run: Run, settings: object) => desiredNetworkPolicies(run, { ...DEFAULT_SETTINGS, ...settings });
    assert.equal(policies(runOf(), {}).length, 2);
    const [learner, , model] = policies(sourceOf({ endpoint: "http://hub.test:8080/mirror" }), { proxy });
    assert.equal(learner!.spec!.egress, undefined);
    assert.deepEqual(model!.spec!.podSelector!.matchLabels!["app.kubernetes.io/component"], "model");
    assert.deepEqual([model!.spec!.ingress, model!.spec!.policyTypes], [undefined, ["Ingress", "Egress"]]);
    const [out, dns] = model!.spec!.egress!;
    assert.deepEqual([out!.to, out!.ports!.map(({ port }) => port)], [undefined, [443, 3128, 8080]]);
    assert.deepEqual(
      dns!.ports!.map(({ port }) => port),
      [53, 53, 5353, 5353],
    );
  });
});

describe("A model of S3", () => {
  const sourceOf = (change: object) =>
    runOf({ model: { source: { s3: { bucket: "models", prefix: "team/qwen", ...change } } } });
  const podOf = (run: Run) => desiredModelJob(run, "quick-data", DEFAULT_SETTINGS).spec!.template.spec!;

  test("The same Job fetches it, with the keys of its Secret and no other identity", () => {
    const pod = podOf(sourceOf({ endpoint: "https://s3.test", region: "eu-1", secretRef: { name: "longrun-s3" } }));
    const [container] = pod.containers;
    assert.deepEqual(container!.args, ["fetch", "s3://models/team/qwen", "--out", "/data/model", "--json"]);
    const env = container!.env!.map(({ name, value, valueFrom }) => [name, value ?? valueFrom!.secretKeyRef]);
    const key = (name: string) => ({ name: "longrun-s3", key: name });
    assert.deepEqual(Object.fromEntries(env), {
      ...{ AWS_ENDPOINT_URL_S3: "https://s3.test", AWS_REGION: "eu-1", AWS_EC2_METADATA_DISABLED: "true" },
      ...{ AWS_ACCESS_KEY_ID: key("AWS_ACCESS_KEY_ID"), AWS_SECRET_ACCESS_KEY: key("AWS_SECRET_ACCESS_KEY") },
      AWS_SESSION_TOKEN: { ...key("AWS_SESSION_TOKEN"), optional: true },
    });
    assert.equal(pod.serviceAccountName, "quick-model");
  });

  test("Only an account with a workload identity reaches the agent that hands out its credentials", () => {
    const run = sourceOf({ serviceAccountName: "longrun-s3-a" });
    assert.deepEqual([podOf(run).serviceAccountName, podOf(run).containers[0]!.env], ["longrun-s3-a", []]);
    const egressOf = (of: Run) => desiredNetworkPolicies(of, DEFAULT_SETTINGS).at(-1)!.spec!.egress!;
    assert.match(JSON.stringify(egressOf(run)), /"cidr":"169\.254\.170\.23\/32"/);
    assert.doesNotMatch(JSON.stringify(egressOf(sourceOf({}))), /169\.254\.170/);
  });

  test("spec.results starts no learner anew", () => {
    const results = { s3: { bucket: "results", prefix: "a" } };
    assert.deepEqual(configOf(runOf({ results })), configOf(runOf()));
  });
});
