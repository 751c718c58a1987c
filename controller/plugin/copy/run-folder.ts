/**
 * Access to the run folder on a run's volume: in the learner's pod if it exists, else in a temporary pod that mounts the volume for reading
 * and does nothing.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ControllerError } from "../../errors.ts";
import { COMPONENT, childName, METRICS_PORT, ownerReference, RUN, type Run } from "../../operator/desired/names.ts";
import { CONTAINER_SECURITY, POD_SECURITY } from "../../operator/desired/pod.ts";
import { ApiError } from "../../operator/kube/errors.ts";
import { DEPLOYMENT, type Deployment, POD, type Pod } from "../../operator/kube/resources.ts";
import { podBlocker } from "../../operator/status/blockers.ts";
import type { Cluster } from "../cluster.ts";
import type { Container } from "./exec.ts";

/** Path of the run folder in a learner's container. */
export const RUN_FOLDER = "/data/run";
export const REPORT_PORT = METRICS_PORT;
const READER = "reader";
/** Time after which a reader pod ends by itself, in case the process that created it was killed. */
const READER_SECONDS = 3600;
const POLL_SECONDS = 1;

export interface RunFolderOptions {
  /** Longest wait for the reader's pod. */
  timeoutSeconds: number;
  /** Called with a line for people about each wait. */
  say: (line: string) => void;
}

/** @returns undefined if no learner runs */
export async function findLearner({ client, namespace }: Cluster, run: Run): Promise<Container | undefined> {
  const { items } = await client.list<Pod>(POD, {
    namespace,
    labelSelector: `${RUN}=${run.metadata.name},${COMPONENT}=learner`,
  });
  const pod = items.find(
    ({ metadata, status }) =>
      !metadata.deletionTimestamp &&
      status?.containerStatuses?.some(({ name, state }) => name === "learner" && state?.running),
  );
  return pod && { namespace, pod: pod.metadata.name, container: "learner" };
}

/** Runs `work` with a container that has the run folder at RUN_FOLDER. @throws ControllerError */
export async function withRunFolder<T>(
  cluster: Cluster,
  run: Run,
  options: RunFolderOptions,
  work: (at: Container) => Promise<T>,
): Promise<T> {
  const learner = await findLearner(cluster, run);
  if (learner) return work(learner);
  const { client, namespace } = cluster;
  const name = childName(run, "learner");
  const deployment = await client.get<Deployment>(DEPLOYMENT, { namespace, name });
  if (!deployment)
    throw new ControllerError("failed", `TrainingRun ${run.metadata.name} has no learner yet, so no volume to read`);
  if ((deployment.spec?.replicas ?? 0) > 0)
    throw new ControllerError(
      "failed",
      `the learner of ${run.metadata.name} does not run at the moment: see kubectl longrun status ${run.metadata.name}`,
    );
  options.say(`no learner runs: pod ${run.metadata.name}-${READER}-… mounts the volume meanwhile`);
  const made = await client.create<Pod>(POD, readerPod(run, deployment)).catch((cause: unknown) => {
    throw cause instanceof ApiError ? new ControllerError("failed", cause.message, { cause }) : cause;
  });
  try {
    await untilRunning(cluster, made, options.timeoutSeconds);
    return await work({ namespace, pod: made.metadata.name, container: READER });
  } finally {
    const { name: pod, uid } = made.metadata;
    await client.delete(POD, { namespace, name: pod }, { uid: uid!, gracePeriodSeconds: 0 });
  }
}

/** Returns a pod with the learner's image, volume and scheduling, but without its command, GPU and certificates. */
function readerPod(run: Run, deployment: Deployment): Pod {
  const { spec } = deployment.spec!.template;
  const learner = spec!.containers.find(({ name }) => name === "learner")!;
  const data = spec!.volumes!.find(({ name }) => name === "data")!;
  const { imagePullSecrets, nodeSelector, affinity, tolerations, runtimeClassName, serviceAccountName } = spec!;
  return {
    metadata: {
      name: undefined as never,
      generateName: `${run.metadata.name}-${READER}-`,
      namespace: run.metadata.namespace,
      labels: { "app.kubernetes.io/managed-by": "kubectl-longrun", [RUN]: run.metadata.name, [COMPONENT]: READER },
      ownerReferences: [{ ...ownerReference(run), controller: false, blockOwnerDeletion: false }],
    } as Pod["metadata"],
    spec: {
      imagePullSecrets,
      nodeSelector,
      affinity,
      tolerations,
      runtimeClassName,
      serviceAccountName,
      restartPolicy: "Never",
      activeDeadlineSeconds: READER_SECONDS,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 0,
      securityContext: { ...POD_SECURITY, ...spec!.securityContext },
      containers: [
        {
          name: READER,
          image: learner.image!,
          imagePullPolicy: learner.imagePullPolicy!,
          command: ["sleep", String(READER_SECONDS)],
          resources: { requests: { cpu: "10m", memory: "32Mi" }, limits: { memory: "256Mi" } },
          securityContext: CONTAINER_SECURITY as never,
          volumeMounts: [{ name: "data", mountPath: "/data", readOnly: true }],
        },
      ],
      volumes: [data],
    },
  };
}

async function untilRunning({ client, namespace, signal }: Cluster, made: Pod, timeoutSeconds: number): Promise<void> {
  const { name } = made.metadata;
  const deadlineMs = Date.now() + timeoutSeconds * 1000;
  for (;;) {
    const pod = await client.get<Pod>(POD, { namespace, name });
    if (!pod) throw new ControllerError("failed", `pod ${namespace}/${name} was deleted by somebody else`);
    if (pod.status?.phase === "Running") return;
    if (Date.now() > deadlineMs) {
      const why = podBlocker(pod, "learner")?.message ?? "it says no reason";
      throw new ControllerError("failed", `pod ${namespace}/${name} does not run after ${timeoutSeconds} s: ${why}`);
    }
    await sleep(POLL_SECONDS * 1000, undefined, { signal }).catch(() => {
      throw signal.reason;
    });
  }
}
