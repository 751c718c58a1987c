/** Stands for the controllers of Deployments and Jobs, and for the kubelets. */
import { COMPONENT } from "../../controller/operator/desired/names.ts";
import type { ApiClient } from "../../controller/operator/kube/api-client.ts";
import type { Deployment, Job, Pod } from "../../controller/operator/kube/resources.ts";
import * as resources from "../../controller/operator/kube/resources.ts";

export const NAMESPACE = "default";
/** Most concurrent requests of the stub. */
export const STUB_PARALLEL = 24;

/** A learner's pod belongs to a ReplicaSet, which belongs to the Deployment. */
export async function startLearner(client: ApiClient, deployment: Deployment): Promise<void> {
  const { metadata, spec } = deployment;
  const name = `${metadata.name}-0`;
  const pod = podOf(deployment, name);
  const { template, selector } = spec!;
  const set = await client.create(resources.REPLICA_SET, {
    kind: "ReplicaSet",
    metadata: { ...pod.metadata, annotations: {} },
    spec: { replicas: 1, selector, template },
  } as resources.ReplicaSet);
  await runPod(client, podOf(set as never, name));
}

export async function runPod(client: ApiClient, pod: Pod, phase: "Running" | "Succeeded" = "Running"): Promise<void> {
  await client.create(resources.POD, pod);
  await setStatus(client, pod, phase === "Running" ? "running" : "succeeded");
}

export async function setStatus(client: ApiClient, pod: Pod, to: "running" | "succeeded" | "image"): Promise<void> {
  const startedAt = new Date().toISOString().replace(/\.\d+/, "");
  const states = {
    running: { running: { startedAt } },
    succeeded: { terminated: { exitCode: 0, reason: "Completed", startedAt, finishedAt: startedAt } },
    image: { waiting: { reason: "ImagePullBackOff", message: "Back-off pulling image" } },
  };
  const container = (name: string, state: object) => ({
    ...{ name, state, image: "docker.io/longrun/longrun:dev", imageID: `sha256:${"0".repeat(64)}`, restartCount: 0 },
    ...{ ready: to === "running", started: to === "running", containerID: `containerd://${"0".repeat(64)}` },
  });
  const ready = { status: to === "running" ? "True" : "False", lastTransitionTime: startedAt };
  const status = {
    phase: { running: "Running", succeeded: "Succeeded", image: "Pending" }[to],
    ...{ startTime: startedAt, podIP: "10.0.0.1", hostIP: "10.0.0.2" },
    conditions: ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map((type) => ({
      type,
      ...ready,
      status: type === "PodScheduled" ? "True" : ready.status,
    })),
    // Sandboxes start before the supervisor.
    initContainerStatuses: (pod.spec?.initContainers ?? []).map(({ name }) =>
      container(name, states[to === "image" ? "running" : to]),
    ),
    containerStatuses: pod.spec!.containers.map(({ name }) => container(name, states[to])),
  };
  await client.mergePatch(
    resources.POD,
    { namespace: NAMESPACE, name: pod.metadata.name },
    { status },
    { subresource: "status" },
  );
}

/** Returns the pod that the Deployment or Job would create. */
export function podOf({ kind, metadata, spec }: Deployment | Job, name: string): Pod {
  const { metadata: template, spec: podSpec } = spec!.template;
  const isJob = template?.labels?.[COMPONENT] === "actor";
  return {
    metadata: {
      ...template,
      name,
      namespace: NAMESPACE,
      labels: { ...template?.labels, ...(isJob && { "batch.kubernetes.io/job-name": metadata.name }) },
      ownerReferences: [
        {
          apiVersion: isJob ? "batch/v1" : "apps/v1",
          kind: kind!,
          name: metadata.name,
          uid: metadata.uid!,
          controller: true,
        },
      ],
    },
    spec: podSpec,
  } as Pod;
}

export function complain(error: Error): void {
  process.stderr.write(`the stub: ${error.message}\n`);
}

export async function inParallel<T>(items: T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const queue = items.values();
  await Promise.all(
    Array.from({ length: STUB_PARALLEL }, async () => {
      for (const item of queue) await work(item);
    }),
  );
}
