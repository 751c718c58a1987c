/** What a run gives its pods: spec.env and spec.caBundle to all, and learner.podTemplate to the learner and to each Job of the run. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { V1PodTemplateSpec } from "@kubernetes/client-node";
import { withRuntime } from "../../../crds/runtime.ts";
import { desiredGenerators } from "../parts/generators/desired.ts";
import { desiredInit } from "../parts/inputs/init.ts";
import { desiredModelJob } from "../parts/inputs/model.ts";
import { desiredResultsJob } from "../parts/results/desired.ts";
import { runOf } from "../run.fixture.ts";
import { actorOf, configOf, learnerOf } from "./desired.fixture.ts";
import { inputsOf } from "./inputs.ts";
import type { Run } from "./names.ts";
import { DEFAULT_SETTINGS } from "./settings.fixture.ts";

const S3 = { s3: { bucket: "bucket", prefix: "p", endpoint: "https://minio.corp:9000" } };
const FROM_S3 = { model: { source: S3 }, results: { ...S3, keepLast: 3, deadlineSeconds: 60 } };
const VLLM = {
  generation: { engine: "VLLM", image: "vllm" },
  model: { policy: "m", volume: { image: { reference: "r" } } },
};
const settings = { ...DEFAULT_SETTINGS, proxy: { HTTPS_PROXY: "http://controllers:3128" } };

/** Returns the pod template of each pod that a run of this spec may have. */
function templatesOf(spec: object, besideLearner = false): Record<string, V1PodTemplateSpec> {
  const run = runOf({ ...FROM_S3, ...spec, initFrom: { run: "other" } });
  const mark = { url: "", iteration: 0, final: false };
  const generators = runOf({ ...VLLM, ...spec });
  const objects = {
    learner: learnerOf(run),
    actor: actorOf(run),
    model: desiredModelJob(run, "data", settings),
    init: desiredInit(run, "data", "other", settings),
    results: desiredResultsJob(run, "data", mark, besideLearner, settings),
    generators: desiredGenerators(generators, { replicas: 1, settings }),
  };
  return Object.fromEntries(Object.entries(objects).map(([name, { spec }]) => [name, spec!.template])) as never;
}

const JOBS = ["model", "init", "results"];

describe("spec.env and spec.caBundle", () => {
  const caBundle = { configMap: { name: "corp-ca", key: "bundle.pem" } };
  const env = [
    { name: "A", value: "1" },
    { name: "HTTPS_PROXY", value: "http://runs:3128" },
    { name: "AWS_ENDPOINT_URL_S3", value: "https://elsewhere" },
  ];
  const templates = templatesOf({ env, caBundle });
  for (const [pod, { spec }] of Object.entries(templates))
    test(`All containers of the pod ${pod} get them, but sandboxes get nothing`, () => {
      const named = [...(spec!.initContainers ?? []), ...spec!.containers];
      assert.deepEqual(
        spec!.volumes!.filter(({ name }) => name === "ca-bundle"),
        [{ name: "ca-bundle", configMap: { name: "corp-ca", items: [{ key: "bundle.pem", path: "ca.crt" }] } }],
      );
      for (const { name, env: has = [], volumeMounts = [] } of named) {
        const value = (of: string) => has.filter((it) => it.name === of).map((it) => it.value);
        const isSandbox = name.startsWith("sandbox-");
        assert.deepEqual(value("A"), isSandbox ? [] : ["1"], name);
        assert.deepEqual(value("HTTPS_PROXY"), isSandbox ? [] : ["http://runs:3128"], name);
        assert.deepEqual(value("NODE_EXTRA_CA_CERTS"), isSandbox ? [] : ["/etc/longrun-ca/ca.crt"], name);
        const mounts = volumeMounts.filter((it) => it.name === "ca-bundle").map(({ mountPath }) => mountPath);
        assert.deepEqual(mounts, isSandbox ? [] : ["/etc/longrun-ca"], name);
      }
    });

  test("Variables that longrun sets stay", () => {
    const [push] = templates.results!.spec!.containers;
    const endpoints = push!.env!.filter(({ name }) => name === "AWS_ENDPOINT_URL_S3").map(({ value }) => value);
    assert.deepEqual(endpoints, ["https://minio.corp:9000"]);
  });

  test("Without them nothing changes, and with them the learner's configuration stays", () => {
    assert.doesNotMatch(JSON.stringify(templatesOf({})), /ca-bundle|NODE_EXTRA/);
    assert.deepEqual(configOf(runOf({ env, caBundle })), configOf(runOf({})));
    const [plain, given] = [inputsOf(runOf({})), inputsOf(runOf({ env }))];
    assert.notEqual(plain.learner, given.learner);
    assert.notEqual(plain.actor, given.actor);
  });

  test("The administrator's are defaults, joined by name", () => {
    const defaults = {
      env: [
        { name: "A", value: "0" },
        { name: "B", value: "2" },
      ],
      caBundle,
    };
    const { spec } = withRuntime(runOf({ env: [{ name: "A", value: "1" }] }) as Run, defaults);
    assert.deepEqual(spec.env, [
      { name: "A", value: "1" },
      { name: "B", value: "2" },
    ]);
    assert.deepEqual(spec.caBundle, caBundle);
    const own = { configMap: { name: "own", key: "ca.crt" } };
    assert.deepEqual(withRuntime(runOf({ caBundle: own }) as Run, defaults).spec.caBundle, own);
  });
});

describe("learner.podTemplate", () => {
  const podTemplate = {
    metadata: {
      labels: { team: "vision", "sidecar.istio.io/inject": "false" },
      annotations: { "karpenter.sh/do-not-disrupt": "true" },
    },
    spec: {
      dnsPolicy: "None",
      dnsConfig: { nameservers: ["10.1.1.1"] },
      hostAliases: [{ ip: "10.1.1.2", hostnames: ["minio.corp"] }],
      hostUsers: false,
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" }],
      schedulingGates: [{ name: "example.com/gate" }],
      containers: [
        {
          name: "learner",
          env: [{ name: "NODE_EXTRA_CA_CERTS", value: "/mnt/ca/ca.crt" }],
          volumeMounts: [
            { name: "ca", mountPath: "/mnt/ca" },
            { name: "cache", mountPath: "/mnt/cache" },
          ],
        },
      ],
      volumes: [
        { name: "ca", configMap: { name: "corp-ca" } },
        { name: "cache", persistentVolumeClaim: { claimName: "cache" } },
      ],
    },
  };
  const templates = templatesOf({ learner: { podTemplate } });
  for (const job of JOBS)
    test(`The pod of the Job ${job} has its labels, DNS, placement, environment and volumes, but no claim and no gate`, () => {
      const { metadata, spec } = templates[job]!;
      assert.equal(metadata!.labels!.team, "vision");
      assert.equal(metadata!.labels!["longrun.dev/run"], "quick");
      assert.deepEqual(metadata!.annotations, podTemplate.metadata.annotations);
      for (const field of ["dnsPolicy", "dnsConfig", "hostAliases", "hostUsers", "topologySpreadConstraints"] as const)
        assert.deepEqual(spec![field], podTemplate.spec[field], field);
      assert.equal(spec!.schedulingGates, undefined);
      const [container] = spec!.containers;
      const mounts = container!.volumeMounts!.map(({ mountPath }) => mountPath).filter((it) => it.startsWith("/mnt"));
      assert.deepEqual(mounts, ["/mnt/ca"]);
      assert.ok(spec!.volumes!.some(({ name, configMap }) => name === "ca" && configMap?.name === "corp-ca"));
      assert.ok(spec!.volumes!.every(({ name }) => name !== "cache"));
      assert.equal(container!.env!.find(({ name }) => name === "NODE_EXTRA_CA_CERTS")!.value, "/mnt/ca/ca.crt");
    });

  test("Its variables come before those of spec.env, spec.caBundle and the controller, in the learner and in each Job", () => {
    const env = ["A", "HTTPS_PROXY", "NODE_EXTRA_CA_CERTS"].map((name) => ({ name, value: "template's" }));
    const given = templatesOf({
      ...{ env: env.map(({ name }) => ({ name, value: "run's" })), caBundle: { configMap: { name: "corp-ca" } } },
      learner: { podTemplate: { spec: { containers: [{ name: "learner", env }] } } },
    });
    for (const pod of ["learner", ...JOBS]) {
      const has = given[pod]!.spec!.containers[0]!.env!;
      for (const { name } of env)
        assert.deepEqual(
          has.filter((it) => it.name === name),
          [{ name, value: "template's" }],
          pod,
        );
    }
  });

  test("Constraints that spread pods do not keep the copy of results from the learner's node", () => {
    const { spec } = templatesOf({ learner: { podTemplate } }, true).results!;
    assert.equal(spec!.topologySpreadConstraints, undefined);
    assert.ok(spec!.affinity?.podAffinity);
  });
});
