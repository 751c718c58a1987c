/** The one learner of a run: Deployment, Service, disruption budget. */
import type { V1Container, V1PodTemplateSpec, V1Volume, V1VolumeMount } from "@kubernetes/client-node";
import { isEmpty } from "../../../../crds/runtime.ts";
import type { Resources } from "../../../../crds/trainingrun.ts";
import {
  dataName,
  isCustom,
  MANIFEST,
  MODEL,
  TASK,
  taskFile,
  taskFolder,
  WARM_START,
} from "../../desired/config-map.ts";
import { withEnvironment } from "../../desired/environment.ts";
import {
  childMetadata,
  childName,
  digestOf,
  GENERATOR_PORT,
  GRPC_PORT,
  generatorHost,
  METRICS_PORT,
  podLabels,
  podMetadata,
  queueLabels,
  type Run,
  runId,
  SPEC_HASH,
} from "../../desired/names.ts";
import {
  ANSWERS_GROUP,
  APP,
  BUNDLED_TASKS,
  CONTAINER_SECURITY,
  dataVolume,
  overlay,
  POD_SECURITY,
  sharedMemory,
} from "../../desired/pod.ts";
import type { Settings } from "../../desired/settings.ts";
import type { Deployment, PodDisruptionBudget, Service } from "../../kube/resources.ts";
import type { Raw } from "../../kube/types.ts";

/** Period of the kubelet's startup probe: a loaded learner becomes ready a second later. */
const STARTUP_PROBE_SECONDS = 1;
/** Period of the kubelet's liveness probe, and the number of failures in a row after which the learner counts as hanging. */
const PROBE_SECONDS = 10;
const PROBE_TIMEOUT_SECONDS = 5;
const LIVENESS_MISSES = 6;

/**
 * A learner's requests if neither its run nor its runtime sets any, so that the scheduler counts the learner. The
 * quickstart's learner took 645 MiB (2026-11-22). A larger model needs `learner.resources` (learner/README.md, Memory).
 */
const DEFAULT_RESOURCES = { requests: { cpu: "500m", memory: "1Gi" } };
const withRequests = ({ claims = [], ...own }: Resources): Resources => ({
  ...(isEmpty(own) ? DEFAULT_RESOURCES : own),
  ...(claims.length > 0 && { claims }),
});

interface LearnerInputs {
  /** Returns the digest of the configuration; another digest restarts the learner. */
  configHash: string;
  claimName: string;
  replicas: 0 | 1;
  settings: Settings;
}

/** Recreate, because two learners must never write to one volume. */
export function desiredLearner(run: Run, { replicas, ...inputs }: LearnerInputs): Deployment {
  const template = learnerPod(run, inputs);
  const annotations = { [SPEC_HASH]: template.metadata!.annotations![SPEC_HASH]! };
  const metadata = childMetadata(run, "learner", "learner", annotations);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { ...metadata, labels: { ...metadata.labels, ...(inputs.settings.kueue ? {} : queueLabels(run)) } },
    spec: {
      replicas,
      strategy: { type: "Recreate" },
      revisionHistoryLimit: 1,
      // A waiting pod is no failure of the Deployment: the conditions report it.
      progressDeadlineSeconds: 2147483647,
      selector: { matchLabels: podLabels(run, "learner") },
      template: template as Raw<V1PodTemplateSpec>,
    },
  };
}

/** Returns the digest of the learner's pod; another digest restarts the learner. */
export function learnerHash(run: Run, inputs: Omit<LearnerInputs, "replicas">): string {
  return learnerPod(run, inputs).metadata!.annotations![SPEC_HASH]!;
}

function learnerPod(run: Run, inputs: Omit<LearnerInputs, "replicas">): V1PodTemplateSpec {
  const { spec } = run;
  const { volumes, mounts } = learnerVolumes(run, inputs.claimName);
  const { settings } = inputs;
  const folders = spec.tasks.map((task) => (isCustom(task) ? taskFolder(task) : `${BUNDLED_TASKS}/${task.name}`));
  const container: V1Container = {
    name: "learner",
    image: spec.learner.image ?? settings.image,
    imagePullPolicy: spec.learner.imagePullPolicy ?? settings.imagePullPolicy,
    command: ["node", `${APP}/learner/main.ts`],
    args: [
      ...["--run", "/data/run", "--manifest", `/config/${MANIFEST}`, "--tls", "/tls", "--stay"],
      ...["--run-id", runId(run)],
      ...["--listen", `:${GRPC_PORT}`, "--metrics-listen", `:${METRICS_PORT}`],
      ...(spec.generation ? ["--generators", `https://${generatorHost(run)}:${GENERATOR_PORT}`] : []),
      ...folders.flatMap((folder) => ["--task-dir", folder]),
    ],
    ports: [
      { name: "grpc", containerPort: GRPC_PORT, protocol: "TCP" },
      { name: "metrics", containerPort: METRICS_PORT, protocol: "TCP" },
    ],
    resources: withRequests(spec.learner.resources) as V1Container["resources"],
    startupProbe: {
      ...probe("/healthz", Math.ceil(spec.learner.startSeconds / STARTUP_PROBE_SECONDS)),
      periodSeconds: STARTUP_PROBE_SECONDS,
    },
    livenessProbe: probe("/healthz", LIVENESS_MISSES),
    readinessProbe: probe("/readyz", 1),
    securityContext: CONTAINER_SECURITY,
    // The last line of its log is the termination message, which the conditions show.
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: mounts,
  };
  const template = overlay<V1PodTemplateSpec>(
    {
      metadata: podMetadata(run, "learner", { "longrun.dev/config-hash": inputs.configHash }),
      spec: withEnvironment(
        {
          serviceAccountName: childName(run, "learner"),
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: { ...POD_SECURITY, supplementalGroups: [ANSWERS_GROUP] },
          terminationGracePeriodSeconds: Math.ceil(spec.learner.stopGraceSeconds),
          containers: [container],
          volumes,
        },
        run,
      ),
    },
    spec.learner.podTemplate,
  );
  const annotations = { ...template.metadata?.annotations, [SPEC_HASH]: digestOf(template) };
  return { ...template, metadata: { ...template.metadata, annotations } };
}

function probe(path: string, failureThreshold: number) {
  const httpGet = { path, port: METRICS_PORT };
  return { httpGet, periodSeconds: PROBE_SECONDS, timeoutSeconds: PROBE_TIMEOUT_SECONDS, failureThreshold };
}

/** Returns the volumes of the learner's pod. Only this pod mounts the answers of custom tasks. */
function learnerVolumes(run: Run, claimName: string): { volumes: V1Volume[]; mounts: V1VolumeMount[] } {
  const volumes: V1Volume[] = [
    { name: "data", persistentVolumeClaim: { claimName } },
    { name: "config", configMap: { name: childName(run, "config") } },
    // The pod's group can read it; the learner alone is in this group.
    { name: "tls", secret: { secretName: childName(run, "learner-tls"), defaultMode: 0o440 } },
    { name: "tmp", emptyDir: {} },
  ];
  const mounts: V1VolumeMount[] = [
    { name: "data", mountPath: "/data" },
    { name: "config", mountPath: "/config", readOnly: true },
    { name: "tls", mountPath: "/tls", readOnly: true },
    { name: "tmp", mountPath: "/tmp" },
  ];
  const add = ({ volume, mount }: { volume: V1Volume; mount: V1VolumeMount }) => {
    volumes.push(volume);
    mounts.push(mount);
  };
  for (const task of run.spec.tasks.filter(isCustom)) {
    const folder = taskFolder(task);
    add(dataVolume(dataName(run.spec, task, "public"), task.publicData!, `${folder}/prepared/public`));
    add(dataVolume(dataName(run.spec, task, "private"), task.privateData!, `${folder}/prepared/private`));
    mounts.push({
      name: "config",
      mountPath: `${folder}/${TASK}`,
      readOnly: true,
      subPath: taskFile(run.spec, task),
    });
  }
  if (run.spec.model.volume) add(dataVolume("model", run.spec.model.volume, MODEL));
  if (run.spec.warmStart) add(dataVolume("warm-start", run.spec.warmStart.data, WARM_START));
  const shared = sharedMemory(run.spec.learner);
  if (shared) add(shared);
  return { volumes, mounts };
}

export function desiredService(run: Run): Service {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: childMetadata(run, "learner", "learner"),
    spec: {
      type: "ClusterIP",
      selector: podLabels(run, "learner"),
      // Actors and the controller retry, so they may see the address of a learner that is still starting.
      publishNotReadyAddresses: true,
      ports: [
        // By name or appProtocol service meshes know that the connection is TLS already; `grpc` is HTTP/2 in clear text for them.
        { name: "tls-grpc", port: GRPC_PORT, targetPort: "grpc", protocol: "TCP", appProtocol: "tls" },
        { name: "metrics", port: METRICS_PORT, targetPort: "metrics", protocol: "TCP" },
      ],
    },
  };
}

/**
 * Returns the disruption budget. Checkpoint allows every eviction: after SIGTERM the learner saves its last finished iteration, and the
 * next pod continues from it. Protect refuses evictions while the learner is ready, because the current update would be lost.
 */
export function desiredDisruptionBudget(run: Run): PodDisruptionBudget {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: childMetadata(run, "learner", "learner"),
    spec: {
      minAvailable: run.spec.learner.disruption === "Protect" ? 1 : 0,
      selector: { matchLabels: podLabels(run, "learner") },
      unhealthyPodEvictionPolicy: "AlwaysAllow",
    },
  };
}
