import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { parseTrainingRun } from "../../../../crds/trainingrun.ts";
import { desiredNetworkPolicies, desiredServiceAccounts } from "../../desired/access.ts";
import { desiredConfigMap } from "../../desired/config-map.ts";
import { inputsOf } from "../../desired/inputs.ts";
import type { Run } from "../../desired/names.ts";
import { DEFAULT_SETTINGS } from "../../desired/settings.fixture.ts";
import { runOf } from "../../run.fixture.ts";
import { desiredLearner } from "../learner/desired.ts";
import { desiredGeneratorService, desiredGenerators } from "./desired.ts";

const MODEL = {
  policy: "qwen/3b",
  volume: { persistentVolumeClaim: { claimName: "models" } },
  adaptation: { type: "LoRA", rank: 48 },
  ...{ maxPromptTokens: 512, maxResponseTokens: 1024, generationBatchSize: 32 },
};
const VLLM = { engine: "VLLM", image: "vllm:1", resources: { limits: { "nvidia.com/gpu": 2 } } };

const podOf = (spec: object) =>
  desiredGenerators(runOf(spec), { replicas: 2, settings: DEFAULT_SETTINGS }).spec!.template.spec!;
const learnerOf = (run: Run) =>
  desiredLearner(run, { configHash: "c", claimName: "quick-data", replicas: 1, settings: DEFAULT_SETTINGS }).spec!
    .template.spec!;
/** The value after an option. */
const option = (args: string[] | undefined, name: string) => args?.[args.indexOf(name) + 1];

describe("The pods of generators", () => {
  for (const [engine, generation] of Object.entries({ Longrun: {}, VLLM }))
    test(`Pods of engine ${engine} fit the restricted level, and have no token, answers or store`, () => {
      const pod = podOf({ model: MODEL, generation });
      assert.equal(pod.automountServiceAccountToken, false);
      assert.equal(pod.securityContext?.runAsNonRoot, true);
      assert.equal(pod.securityContext?.seccompProfile?.type, "RuntimeDefault");
      assert.equal(pod.securityContext?.supplementalGroups, undefined);
      for (const { securityContext } of [...(pod.initContainers ?? []), ...pod.containers]) {
        assert.deepEqual(securityContext?.capabilities?.drop, ["ALL"]);
        assert.equal(securityContext?.allowPrivilegeEscalation, false);
        assert.equal(securityContext?.readOnlyRootFilesystem, true);
      }
      const claims = pod.volumes!.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim ?? []);
      assert.deepEqual(claims, [{ claimName: "models", readOnly: true }]);
    });

  test("They serve the run's model with its slots and tokens to clients with the learner's certificate", () => {
    const [container, ...others] = podOf({ model: MODEL, generation: {} }).containers;
    assert.deepEqual(others, []);
    assert.equal(container!.image, DEFAULT_SETTINGS.image);
    const expected = {
      ...{ "--model": "/model/qwen/3b", "--slots": "32", "--context": "1536" },
      ...{ "--port": "8443", "--tls": "/tls", "--probe-port": "8081", "--drain-seconds": "60" },
    };
    for (const [name, value] of Object.entries(expected)) assert.equal(option(container!.args, name), value, name);
    const model = container!.volumeMounts!.find(({ name }) => name === "model");
    assert.deepEqual(model, { name: "model", mountPath: "/model", readOnly: true });
    const { failureThreshold, periodSeconds } = container!.startupProbe!;
    assert.deepEqual([failureThreshold, periodSeconds], [1800, 1], "generation.startSeconds, asked every second");
    assert.equal(option(podOf({ generation: {} }).containers[0]!.args, "--model"), "quickstart");
  });

  test("They have time to finish their rows when they are stopped", () => {
    assert.equal(podOf({ generation: { drainSeconds: 90 } }).terminationGracePeriodSeconds, 90 + 15);
  });

  test("A stock vLLM listens on loopback, beside a sidecar that holds the certificate and ends with it", () => {
    const { initContainers, containers, volumes } = podOf({ model: MODEL, generation: VLLM });
    const [vllm] = initContainers!;
    const [sidecar] = containers;
    assert.deepEqual([vllm!.image, sidecar!.image], ["vllm:1", DEFAULT_SETTINGS.image]);
    assert.equal(vllm!.restartPolicy, "Always");
    assert.deepEqual(vllm!.command, ["vllm", "serve", "/model/qwen/3b"]);
    const expected = {
      ...{ "--host": "127.0.0.1", "--port": "8000", "--max-lora-rank": "64", "--max-loras": "2" },
      ...{ "--logprobs-mode": "processed_logprobs", "--generation-config": "vllm", "--max-model-len": "1536" },
      ...{ "--max-num-seqs": "32", "--tensor-parallel-size": "2" },
    };
    for (const [name, value] of Object.entries(expected)) assert.equal(option(vllm!.args, name), value, name);
    assert.ok(vllm!.args!.includes("--enable-lora"));
    const wholes = [
      podOf({ model: { ...MODEL, adaptation: { type: "Full" } }, generation: VLLM }),
      podOf({ model: MODEL, generation: { ...VLLM, weightSync: "Full" } }),
    ].map((pod) => pod.initContainers![0]!);
    for (const whole of wholes) {
      assert.doesNotMatch(whole.args!.join(" "), /lora/);
      assert.ok(whole.env!.some(({ name, value }) => name === "VLLM_SERVER_DEV_MODE" && value === "1"));
      assert.doesNotMatch(JSON.stringify(whole.env), /VLLM_ALLOW_RUNTIME_LORA_UPDATING/);
    }
    assert.doesNotMatch(JSON.stringify(vllm!.env), /VLLM_SERVER_DEV_MODE/);
    const variable = vllm!.env!.find(({ name }) => name === "VLLM_ALLOW_RUNTIME_LORA_UPDATING");
    assert.equal(variable?.value, "1");
    assert.deepEqual(vllm!.resources, VLLM.resources);
    assert.equal(vllm!.startupProbe!.failureThreshold, 180);
    assert.match(vllm!.startupProbe!.exec!.command!.join(" "), /127\.0\.0\.1:8000\/health/);
    assert.equal(option(sidecar!.args, "--slots"), "32");
    assert.equal(sidecar!.resources?.limits, undefined);
    assert.equal(option(sidecar!.args, "--vllm"), "http://127.0.0.1:8000");
    assert.equal(option(sidecar!.args, "--model-name"), option(vllm!.args, "--served-model-name"));
    const mountOf = ({ volumeMounts }: typeof sidecar & object, name: string) =>
      volumeMounts!.find((it) => it.name === name);
    assert.equal(mountOf(sidecar!, "adapters")!.mountPath, option(sidecar!.args, "--adapter-folder"));
    assert.equal(mountOf(vllm!, "adapters")!.readOnly, true);
    assert.equal(mountOf(vllm!, "tls"), undefined);
    assert.deepEqual(volumes!.find(({ name }) => name === "adapters")!.emptyDir, {});
  });

  const RANKS: [rank: number, most: string][] = [
    [1, "8"],
    [16, "16"],
    [17, "32"],
    [512, "512"],
  ];
  for (const [rank, most] of RANKS)
    test(`vLLM takes adapters of rank ${rank} with --max-lora-rank ${most}`, () => {
      const pod = podOf({ model: { ...MODEL, adaptation: { type: "LoRA", rank } }, generation: VLLM });
      assert.equal(option(pod.initContainers![0]!.args, "--max-lora-rank"), most);
    });

  test("Each container gets its own part of podTemplate, and the pod gets the learner's pull secrets", () => {
    const env = (name: string) => [{ name, value: "1" }];
    const containers = ["generator", "vllm"].map((name) => ({ name, env: env(name.toUpperCase()) }));
    const podTemplate = { spec: { nodeSelector: { gpu: "l40" }, runtimeClassName: "nvidia", containers } };
    const pod = podOf({
      model: MODEL,
      learner: { podTemplate: { spec: { imagePullSecrets: [{ name: "registry" }] } } },
      generation: { ...VLLM, podTemplate },
    });
    assert.deepEqual([pod.nodeSelector, pod.runtimeClassName], [{ gpu: "l40" }, "nvidia"]);
    assert.deepEqual(pod.imagePullSecrets, [{ name: "registry" }]);
    assert.ok(pod.initContainers![0]!.env!.some(({ name }) => name === "VLLM"));
    assert.deepEqual(pod.containers[0]!.env, env("GENERATOR"));
  });
});

test("Generators are replaced one at a time without an extra one, because their GPUs are counted", () => {
  const { spec } = desiredGenerators(runOf({ generation: {} }), { replicas: 3, settings: DEFAULT_SETTINGS });
  assert.equal(spec!.replicas, 3);
  assert.deepEqual(spec!.strategy!.rollingUpdate, { maxSurge: 0, maxUnavailable: 1 });
});

test("One name finds every generator, also before it is ready", () => {
  const { spec, metadata } = desiredGeneratorService(runOf({ generation: {} }));
  assert.equal(metadata.name, "quick-generators");
  assert.equal(spec!.clusterIP, "None");
  assert.equal(spec!.publishNotReadyAddresses, true);
  assert.equal(option(learnerOf(runOf({ generation: {} })).containers[0]!.args, "--generators"), urlOf(8443));
  assert.ok(!learnerOf(runOf()).containers[0]!.args!.includes("--generators"));
});
const urlOf = (port: number) => `https://quick-generators.team.svc:${port}`;

test("The learner reaches generators and DNS; generators reach no pod, and only the learner reaches them", () => {
  const policies = desiredNetworkPolicies(runOf({ generation: {} }), DEFAULT_SETTINGS);
  const specOf = (name: string) => policies.find(({ metadata }) => metadata.name === name)!.spec!;
  const generators = { "app.kubernetes.io/component": "generator", "longrun.dev/run": "quick" };
  const [toGenerators, dns, ...others] = specOf("quick-learner").egress!;
  assert.deepEqual(toGenerators, {
    to: [{ podSelector: { matchLabels: generators } }],
    ports: [{ port: 8443, protocol: "TCP" }],
  });
  assert.equal(dns!.ports![0]!.port, 53);
  assert.deepEqual(others, []);
  const { podSelector, policyTypes, ingress, egress } = specOf("quick-generators");
  assert.deepEqual(podSelector, { matchLabels: generators });
  assert.deepEqual(policyTypes, ["Ingress", "Egress"]);
  assert.equal(egress, undefined);
  const learner = { "app.kubernetes.io/component": "learner", "longrun.dev/run": "quick" };
  assert.deepEqual(ingress, [
    { from: [{ podSelector: { matchLabels: learner } }], ports: [{ port: 8443, protocol: "TCP" }] },
  ]);
  const accounts = desiredServiceAccounts(runOf({ generation: {} })).map(({ metadata }) => metadata.name);
  assert.ok(accounts.includes(podOf({ generation: {} }).serviceAccountName!));
});

test("The learner's manifest says that there are generators; their settings and number start no learner anew", () => {
  const run = runOf({ model: MODEL, generation: { ...VLLM, replicas: { min: 2, max: 4 } } });
  const text = desiredConfigMap(run).data!["trainingrun.yaml"]!;
  assert.deepEqual(parse(text).spec.generation, {});
  parseTrainingRun(text, "config");
  const digest = (generation?: object) => inputsOf(runOf({ model: MODEL, ...(generation && { generation }) })).learner;
  const more = { replicas: { min: 3, max: 9 }, image: "b", drainSeconds: 1, resources: { limits: { cpu: 1 } } };
  assert.equal(digest({}), digest(more));
  assert.equal(digest({}), digest(VLLM));
  assert.notEqual(digest({}), digest());
});

describe("/dev/shm", () => {
  const GPUS: [what: string, part: object, size: string | undefined][] = [
    ["no GPU", {}, undefined],
    ["no GPU, and a size", { sharedMemory: "128Mi" }, "128Mi"],
    ["GPUs", { resources: { limits: { "nvidia.com/gpu": 4 } } }, "1Gi"],
    ["a MIG slice", { resources: { limits: { "nvidia.com/mig-1g.10gb": 1 } } }, "1Gi"],
    ["a shared GPU", { resources: { limits: { "nvidia.com/gpu.shared": "1" } } }, "1Gi"],
    ["a GPU of which it has none", { resources: { limits: { "nvidia.com/gpu": 0 } } }, undefined],
    ["a GPU and a size", { sharedMemory: "8Gi", resources: { limits: { "nvidia.com/gpu": 1 } } }, "8Gi"],
  ];
  const sizeOf = ({ containers, initContainers, volumes }: ReturnType<typeof podOf>, container: string) => {
    const all = [...containers, ...(initContainers ?? [])];
    const mount = all
      .find(({ name }) => name === container)!
      .volumeMounts!.find(({ mountPath }) => mountPath === "/dev/shm");
    const { emptyDir } = volumes!.find(({ name }) => name === mount?.name) ?? {};
    if (emptyDir) assert.equal(emptyDir.medium, "Memory");
    return emptyDir?.sizeLimit;
  };
  for (const [what, part, size] of GPUS)
    test(`A container with ${what} has ${size ?? "the container runtime's size"}`, () => {
      assert.equal(sizeOf(learnerOf(runOf({ learner: part })), "learner"), size);
      assert.equal(sizeOf(podOf({ generation: part }), "generator"), size);
    });
  test("vLLM, whose processes use /dev/shm, has it on a CPU too", () =>
    assert.equal(sizeOf(podOf({ model: MODEL, generation: { ...VLLM, resources: {} } }), "vllm"), "1Gi"));
});
