/** An actor: a Job of one pod, a supervisor that holds the certificate and one sandbox container for each slot. */
import type { V1Container, V1PodSpec, V1PodTemplateSpec, V1Volume, V1VolumeMount } from "@kubernetes/client-node";
import type { Resources } from "../../../../crds/trainingrun.ts";
import { dataName, isCustom, taskFolder } from "../../desired/config-map.ts";
import { withEnvironment } from "../../desired/environment.ts";
import {
  actorName,
  childMetadata,
  childName,
  digestOf,
  GRPC_PORT,
  learnerHost,
  METRICS_PORT,
  podMetadata,
  queueLabels,
  type Run,
  runId,
  SPEC_HASH,
  SUPERVISOR,
  tlsSecret,
} from "../../desired/names.ts";
import {
  APP,
  BUNDLED_TASKS,
  CONTAINER_SECURITY,
  dataVolume,
  overlay,
  POD_SECURITY,
  PYTHON,
  SANDBOX_USER,
} from "../../desired/pod.ts";
import type { Settings } from "../../desired/settings.ts";
import type { Job } from "../../kube/resources.ts";
import type { Raw } from "../../kube/types.ts";

/** Seconds for which a finished Job, and the log of its pod, is kept. */
const FINISHED_JOB_SECONDS = 600;
/** Memory of a sandbox beyond its execution's limit: the zygote with its imported packages, and the pages that a fork copies. */
const SANDBOX_OVERHEAD_BYTES = { Basic: 512 * 2 ** 20, Paper: 1024 * 2 ** 20 };
/** The kubelet's limit on the scratch directory, as a multiple of scratchBytes. */
const SCRATCH_MARGIN = 1.25;
const TMP_BYTES = 2 ** 30;
const SHARED_MEMORY_BYTES = 64 * 2 ** 20;

const sandboxName = (slot: number) => `sandbox-${slot}`;

/** @returns undefined for a container that is no sandbox */
export function slotOf(container: string): number | undefined {
  const slot = /^sandbox-(\d+)$/.exec(container)?.[1];
  return slot === undefined ? undefined : Number(slot);
}

/** @param queued whether Kueue admits it separately; otherwise it is part of the run's Workload */
export function desiredActor(run: Run, index: number, generation: number, settings: Settings, queued = true): Job {
  const name = actorName(run, index, generation);
  const annotations = { [SPEC_HASH]: actorHash(run, settings) };
  const metadata = childMetadata(run, `actor-${index}-${generation}`, "actor", annotations);
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { ...metadata, labels: { ...metadata.labels, ...(queued ? queueLabels(run) : {}) } },
    spec: {
      completions: 1,
      parallelism: 1,
      // One pod, so that an actor's name stands for one process. The controller creates the next actor: at once after a disruption, and
      // with a pause after a failure. The number of the Job's rule distinguishes the two.
      backoffLimit: 0,
      podReplacementPolicy: "Failed",
      podFailurePolicy: {
        rules: [
          { action: "FailJob", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
          { action: "FailJob", onExitCodes: { containerName: SUPERVISOR, operator: "NotIn", values: [0] } },
        ],
      },
      ttlSecondsAfterFinished: FINISHED_JOB_SECONDS,
      template: actorPod(run, name, settings) as Raw<V1PodTemplateSpec>,
    },
  };
}

/** Returns the digest of an actor without its name. Jobs with another digest are replaced, a few at a time. */
export function actorHash(run: Run, settings: Settings): string {
  return digestOf(actorPod(run, "", settings));
}

function actorPod(run: Run, name: string, settings: Settings): V1PodTemplateSpec {
  const { actors } = run.spec;
  const slots = Array.from({ length: actors.slots }, (_, slot) => slot);
  const inputs = actorInputs(run);
  const spec: V1PodSpec = {
    restartPolicy: "Never",
    serviceAccountName: childName(run, "actor"),
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: POD_SECURITY,
    terminationGracePeriodSeconds: Math.ceil(finishSeconds(run) + actors.stopGraceSeconds),
    ...(actors.runtimeClassName !== undefined && { runtimeClassName: actors.runtimeClassName }),
    initContainers: slots.map((slot) => sandbox(run, slot, inputs.mounts, settings)),
    containers: [supervisor(run, name, inputs.paths, settings)],
    volumes: [
      // The pod's group can read it. Sandboxes are in this group, but do not mount it.
      { name: "tls", secret: { secretName: tlsSecret(name), defaultMode: 0o440 } },
      { name: "sandboxes", emptyDir: { sizeLimit: String(TMP_BYTES) } },
      { name: "supervisor-tmp", emptyDir: { sizeLimit: String(TMP_BYTES) } },
      ...slots.flatMap((slot) => sandboxVolumes(run, slot)),
      ...inputs.volumes,
    ],
  };
  const metadata = podMetadata(run, "actor");
  return overlay<V1PodTemplateSpec>({ metadata, spec: withEnvironment(spec, run) }, actors.podTemplate);
}

/** Returns the seconds for which programs continue after an eviction or deletion of the pod. */
function finishSeconds({ spec }: Run): number {
  const longest = Math.max(...spec.tasks.map((task) => task.executionTimeoutSeconds));
  return Math.min(longest, spec.actors.evictionGraceSeconds);
}

/** Returns the supervisor's container. It leases executions, sends programs to sandboxes and reports, but never runs a program. */
function supervisor(run: Run, name: string, inputs: string[], settings: Settings): V1Container {
  const { actors } = run.spec;
  return {
    name: SUPERVISOR,
    image: actors.image ?? settings.actorImage,
    imagePullPolicy: actors.imagePullPolicy ?? settings.imagePullPolicy,
    command: ["node", `${APP}/actor/main.ts`],
    args: [
      ...["--learner", `${learnerHost(run)}:${GRPC_PORT}`, "--tls", "/tls", "--name", name, "--run-id", runId(run)],
      ...["--slots", String(actors.slots), "--sandboxes", "/sandboxes", "--metrics-listen", `:${METRICS_PORT}`],
      ...["--inputs", inputs.join(",")],
      ...(actors.isolation === "Pod" ? ["--executions", "1"] : []),
      ...(actors.requireIsolation ? [] : ["--allow-no-isolation"]),
    ],
    // See actor/main.ts.
    env: [{ name: "LONGRUN_FINISH_SECONDS", value: String(finishSeconds(run)) }],
    ports: [{ name: "metrics", containerPort: METRICS_PORT, protocol: "TCP" }],
    resources: actors.resources as V1Container["resources"],
    securityContext: CONTAINER_SECURITY,
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: [
      { name: "tls", mountPath: "/tls", readOnly: true },
      { name: "sandboxes", mountPath: "/sandboxes" },
      { name: "supervisor-tmp", mountPath: "/tmp" },
    ],
  };
}

/** Returns the sidecar in which programs run. It has another user and no certificate, token or answers. */
function sandbox(run: Run, slot: number, inputs: V1VolumeMount[], settings: Settings): V1Container {
  const { actors } = run.spec;
  return {
    name: sandboxName(slot),
    image: actors.sandboxImage ?? settings.sandboxImage,
    imagePullPolicy: actors.imagePullPolicy ?? settings.imagePullPolicy,
    // Started before the supervisor, stopped after it.
    restartPolicy: "Always",
    command: [PYTHON, "-s", "-B", `${APP}/actor/sandbox/zygote.py`, "--listen", "/sandbox/control.sock"],
    resources: sandboxResources(run) as V1Container["resources"],
    securityContext: { ...CONTAINER_SECURITY, runAsUser: SANDBOX_USER, runAsGroup: SANDBOX_USER },
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: [
      { name: "sandboxes", mountPath: "/sandbox", subPath: `slot-${slot}` },
      { name: `scratch-${slot}`, mountPath: "/scratch" },
      { name: `tmp-${slot}`, mountPath: "/tmp" },
      { name: `shm-${slot}`, mountPath: "/dev/shm" },
      ...inputs,
    ],
  };
}

/**
 * Returns the resources of a sandbox. The container's memory limit is above the execution's, so that the supervisor ends a program that
 * takes too much and can report it. The request for storage covers scratchBytes, so that the scheduler finds a node with enough room.
 */
function sandboxResources({ spec }: Run): Resources {
  const { requests = {}, limits = {}, claims } = spec.actors.sandboxResources;
  const most = Math.max(...spec.tasks.map((task) => task.executionMemoryBytes));
  const memory = String(most + SANDBOX_OVERHEAD_BYTES[spec.actors.packages ?? "Basic"]);
  const scratch = String(Math.max(...spec.tasks.map((task) => task.scratchBytes)));
  return {
    requests: {
      ...("memory" in limits || "memory" in requests ? {} : { memory }),
      ...("ephemeral-storage" in limits ? {} : { "ephemeral-storage": scratch }),
      ...requests,
    },
    limits: { ...("memory" in limits ? {} : { memory }), ...limits },
    ...(claims && { claims }),
  };
}

/**
 * Returns the volumes of a sandbox. Volumes in memory count towards the sandbox's memory. The sandbox ends a program that
 * writes more than its scratchBytes; the kubelet evicts the whole pod at the size limit, so the size limit is larger.
 */
function sandboxVolumes({ spec }: Run, slot: number): V1Volume[] {
  const scratchBytes = Math.max(...spec.tasks.map((task) => task.scratchBytes));
  return [
    { name: `scratch-${slot}`, emptyDir: { sizeLimit: String(Math.ceil(SCRATCH_MARGIN * scratchBytes)) } },
    { name: `tmp-${slot}`, emptyDir: { sizeLimit: String(TMP_BYTES) } },
    { name: `shm-${slot}`, emptyDir: { medium: "Memory", sizeLimit: String(SHARED_MEMORY_BYTES) } },
  ];
}

/** Returns the public data of each task as `TASK=PATH`: in the sandbox's image, or mounted from a custom task's volume. */
function actorInputs({ spec }: Run): { paths: string[]; volumes: V1Volume[]; mounts: V1VolumeMount[] } {
  const paths: string[] = [];
  const volumes: V1Volume[] = [];
  const mounts: V1VolumeMount[] = [];
  for (const task of spec.tasks) {
    const folder = isCustom(task) ? taskFolder(task) : `${BUNDLED_TASKS}/${task.name}`;
    const path = `${folder}/prepared/public`;
    paths.push(`${task.name}=${path}`);
    if (!isCustom(task)) continue;
    const { volume, mount } = dataVolume(dataName(spec, task, "public"), task.publicData!, path);
    volumes.push(volume);
    mounts.push(mount);
  }
  return { paths, volumes, mounts };
}
