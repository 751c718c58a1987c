/** Generators: a Deployment of pods that write programs instead of the learner, and the Service that lists their addresses. */
import { join } from "node:path/posix";
import type { V1Container, V1PodTemplateSpec, V1Volume, V1VolumeMount } from "@kubernetes/client-node";
import { gpuCount } from "../../../../crds/gpu.ts";
import { isPolicyName } from "../../../../crds/policy.ts";
import type { Generation } from "../../../../crds/trainingrun.ts";
import { MODEL } from "../../desired/config-map.ts";
import { withEnvironment } from "../../desired/environment.ts";
import {
  childMetadata,
  childName,
  digestOf,
  GENERATOR_PORT,
  GENERATORS,
  podLabels,
  podMetadata,
  queueLabels,
  type Run,
  SPEC_HASH,
} from "../../desired/names.ts";
import { APP, CONTAINER_SECURITY, dataVolume, overlay, POD_SECURITY, sharedMemory } from "../../desired/pod.ts";
import type { Settings } from "../../desired/settings.ts";
import type { Deployment, Service } from "../../kube/resources.ts";
import type { Raw } from "../../kube/types.ts";

/** Port with plain HTTP for the kubelet's probes, because the run's port requires a certificate. */
const PROBE_PORT = 8081;
/** Period of the kubelet's startup probe: a loaded generator is used a second later. vLLM's probe starts a Python each time. */
const STARTUP_PROBE_SECONDS = 1;
const PROBE_SECONDS = 10;
const PROBE_TIMEOUT_SECONDS = 5;
const LIVENESS_MISSES = 6;
/** Seconds beyond `drainSeconds` within which a drained generator must end. */
const STOP_SECONDS = 15;

/** vLLM's port on the pod's loopback address. */
const VLLM_PORT = 8000;
/** The name under which vLLM serves the model without an adapter. */
const VLLM_MODEL = "policy";
/** Values that vLLM's `--max-lora-rank` accepts. */
const VLLM_RANKS = [8, 16, 32, 64, 128, 256, 320, 512];
/** Adapters that vLLM holds at once: solutions with the last policy version end while the next version is loaded. */
const VLLM_ADAPTERS = 2;
const ADAPTERS = "/adapters";
/** Resources of the container in front of vLLM, which forwards requests and receives adapters. Not measured. */
const SIDECAR_RESOURCES = { requests: { cpu: "250m", memory: "512Mi" } };

/** Rolling update: at most one pod is missing while the template changes, and none is added, because GPUs are limited. */
export function desiredGenerators(
  run: Run,
  { replicas, settings }: { replicas: number; settings: Settings },
): Deployment {
  const template = generatorPod(run, settings);
  const metadata = childMetadata(run, GENERATORS, "generator", { [SPEC_HASH]: digestOf(template) });
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { ...metadata, labels: { ...metadata.labels, ...(settings.kueue ? {} : queueLabels(run)) } },
    spec: {
      replicas,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      revisionHistoryLimit: 1,
      // A waiting pod is no failure of the Deployment: the conditions report it.
      progressDeadlineSeconds: 2147483647,
      selector: { matchLabels: podLabels(run, "generator") },
      template: template as Raw<V1PodTemplateSpec>,
    },
  };
}

function generatorPod(run: Run, settings: Settings): V1PodTemplateSpec {
  const { learner } = run.spec;
  const generation = run.spec.generation!;
  const shared = sharedMemory(generation, generation.engine === "VLLM");
  const model = run.spec.model.volume && dataVolume("model", run.spec.model.volume, MODEL);
  const engineMounts = [...(model ? [model.mount] : []), ...(shared ? [shared.mount] : [])];
  const isVllm = generation.engine === "VLLM";
  const volumes: V1Volume[] = [
    // The pod's group can read it.
    { name: "tls", secret: { secretName: childName(run, `${GENERATORS}-tls`), defaultMode: 0o440 } },
    { name: "tmp", emptyDir: {} },
    ...(isVllm ? [{ name: "adapters", emptyDir: {} }] : []),
    ...(model ? [model.volume] : []),
    ...(shared ? [shared.volume] : []),
  ];
  // The run's images are pulled with the same Secrets, whichever pod they are in.
  const { imagePullSecrets } = learner.podTemplate?.spec ?? {};
  return overlay<V1PodTemplateSpec>(
    {
      metadata: podMetadata(run, "generator"),
      spec: withEnvironment(
        {
          serviceAccountName: childName(run, GENERATORS),
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: POD_SECURITY,
          terminationGracePeriodSeconds: generation.drainSeconds + STOP_SECONDS,
          ...(imagePullSecrets && { imagePullSecrets }),
          ...(isVllm && { initContainers: [vllm(run, generation, engineMounts)] }),
          containers: [serve(run, generation, isVllm ? [] : engineMounts, settings)],
          volumes,
        },
        run,
        ["initContainers", "containers"],
      ),
    },
    generation.podTemplate,
  );
}

/** Returns the container with `longrun serve`: the engine, or the proxy in front of vLLM. */
function serve(run: Run, generation: Generation, mounts: V1VolumeMount[], settings: Settings): V1Container {
  const { learner, model } = run.spec;
  const isVllm = generation.engine === "VLLM";
  const own = isVllm
    ? ["--vllm", `http://127.0.0.1:${VLLM_PORT}`, "--adapter-folder", ADAPTERS, "--model-name", VLLM_MODEL]
    : [...["--model", modelPath(run), "--context", String(contextTokens(run))]];
  return {
    name: "generator",
    image: (isVllm ? learner.image : (generation.image ?? learner.image)) ?? settings.image,
    imagePullPolicy: generation.imagePullPolicy ?? learner.imagePullPolicy ?? settings.imagePullPolicy,
    command: ["node", `${APP}/learner/commands/serve-command.ts`],
    args: [
      ...own,
      ...["--slots", String(model.generationBatchSize)],
      ...["--port", String(GENERATOR_PORT), "--tls", "/tls"],
      ...["--probe-port", String(PROBE_PORT), "--drain-seconds", String(generation.drainSeconds)],
    ],
    ports: [{ name: "generate", containerPort: GENERATOR_PORT, protocol: "TCP" }],
    resources: (isVllm ? SIDECAR_RESOURCES : generation.resources) as V1Container["resources"],
    startupProbe: { ...probe("/health", 1), ...startup(generation, STARTUP_PROBE_SECONDS) },
    livenessProbe: probe("/health", LIVENESS_MISSES),
    readinessProbe: probe("/ready", 1),
    securityContext: CONTAINER_SECURITY,
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: [
      { name: "tls", mountPath: "/tls", readOnly: true },
      { name: "tmp", mountPath: "/tmp" },
      ...(isVllm ? [{ name: "adapters", mountPath: ADAPTERS }] : []),
      ...mounts,
    ],
  };
}

function startup({ startSeconds }: Generation, periodSeconds: number) {
  const failureThreshold = Math.ceil(startSeconds / periodSeconds);
  return { failureThreshold, periodSeconds, timeoutSeconds: PROBE_TIMEOUT_SECONDS };
}

function probe(path: string, failureThreshold: number) {
  const httpGet = { path, port: PROBE_PORT };
  return { httpGet, periodSeconds: PROBE_SECONDS, timeoutSeconds: PROBE_TIMEOUT_SECONDS, failureThreshold };
}

/**
 * Returns the container with a stock vLLM. It is a native sidecar, so it ends after the container that drains. It listens on the loopback
 * address alone. It has no network, so it must not ask the hub for anything.
 */
function vllm(run: Run, generation: Generation, mounts: V1VolumeMount[]): V1Container {
  const { model, learner } = run.spec;
  const { type, rank } = model.adaptation;
  const most = VLLM_RANKS.find((it) => it >= (rank ?? 0))!;
  // endpoints that load adapters, or replace all weights; only the sidecar can reach them
  const [endpoints, flags] =
    type === "LoRA" && generation.weightSync !== "Full"
      ? [
          "VLLM_ALLOW_RUNTIME_LORA_UPDATING",
          ["--enable-lora", "--max-lora-rank", String(most), "--max-loras", String(VLLM_ADAPTERS)],
        ]
      : ["VLLM_SERVER_DEV_MODE", []];
  const environment = {
    [endpoints]: "1",
    VLLM_NO_USAGE_STATS: "1",
    HF_HUB_OFFLINE: "1",
    // The root file system is read-only, and the image has no user of this number.
    HOME: "/tmp",
    XDG_CACHE_HOME: "/tmp/cache",
    XDG_CONFIG_HOME: "/tmp/config",
    USER: "longrun",
  };
  const pullPolicy = generation.imagePullPolicy ?? learner.imagePullPolicy;
  return {
    name: "vllm",
    image: generation.image!,
    ...(pullPolicy && { imagePullPolicy: pullPolicy }),
    restartPolicy: "Always",
    command: ["vllm", "serve", modelPath(run)],
    args: [
      ...["--host", "127.0.0.1", "--port", String(VLLM_PORT), "--served-model-name", VLLM_MODEL],
      ...flags,
      // By default vLLM's log-probs ignore the temperature.
      ...["--logprobs-mode", "processed_logprobs"],
      // Otherwise the model's generation_config.json would change the sampling.
      ...["--generation-config", "vllm"],
      ...["--max-model-len", String(contextTokens(run)), "--max-num-seqs", String(model.generationBatchSize)],
      ...["--tensor-parallel-size", String(Math.max(1, gpuCount(generation.resources)))],
    ],
    env: Object.entries(environment).map(([name, value]) => ({ name, value })),
    resources: generation.resources as V1Container["resources"],
    // The probe runs inside the container: the kubelet cannot reach the loopback address. The sidecar starts when the model is loaded.
    startupProbe: {
      exec: {
        command: ["python3", "-c", `import urllib.request as r; r.urlopen("http://127.0.0.1:${VLLM_PORT}/health")`],
      },
      ...startup(generation, PROBE_SECONDS),
    },
    securityContext: CONTAINER_SECURITY,
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: [
      { name: "tmp", mountPath: "/tmp" },
      { name: "adapters", mountPath: ADAPTERS, readOnly: true },
      ...mounts,
    ],
  };
}

/** Returns the starting policy's path in the pod: a bundled policy's name, or a folder of `model.volume`. */
function modelPath({ spec: { model } }: Run): string {
  const policy = model.policy ?? "";
  return isPolicyName(policy) ? policy : join(MODEL, policy);
}

/** Returns the tokens of the longest prompt and its solution. */
function contextTokens({ spec: { model } }: Run): number {
  return model.maxPromptTokens + model.maxResponseTokens;
}

/** Returns the headless Service: each address is a generator. It also lists those without weights or drained; their state says so. */
export function desiredGeneratorService(run: Run): Service {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: childMetadata(run, GENERATORS, "generator"),
    spec: {
      type: "ClusterIP",
      clusterIP: "None",
      selector: podLabels(run, "generator"),
      publishNotReadyAddresses: true,
      ports: [{ name: "generate", port: GENERATOR_PORT, targetPort: "generate", protocol: "TCP" }],
    },
  };
}
