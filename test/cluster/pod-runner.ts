/**
 * Replaces scheduler and kubelets in tests without a node: every pod of its namespaces runs and is ready as soon as it exists, and ends
 * when the test says so. Pods without a node disappear as soon as they are deleted.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ApiClient } from "../../controller/operator/kube/api-client.ts";
import { ApiError } from "../../controller/operator/kube/errors.ts";
import { POD, type Pod } from "../../controller/operator/kube/resources.ts";
import { Reflector } from "../../controller/operator/kube/runtime/reflector.ts";

/** Pause after a request without an answer. */
const RETRY_MILLISECONDS = 200;

interface PodRunnerOptions {
  client: ApiClient;
  /** Absent: all namespaces. */
  namespace?: string;
  /** Returns whether a pod stays Pending, as if no node could take it. Called for a new pod. */
  holds?: (pod: Pod) => boolean;
}

export class PodRunner {
  readonly pods: Reflector<Pod>;
  readonly #client: ApiClient;
  readonly #holds: (pod: Pod) => boolean;
  #signal: AbortSignal | undefined;

  constructor({ client, namespace, holds = () => false }: PodRunnerOptions) {
    this.#client = client;
    this.#holds = holds;
    this.pods = new Reflector<Pod>({
      client,
      resource: POD,
      ...(namespace && { namespace }),
      onChange: (_, pod, previous) => {
        if (pod && previous?.metadata.uid !== pod.metadata.uid && !this.#holds(pod)) void this.start(pod);
      },
    });
  }

  run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    return this.pods.run(signal);
  }

  start(pod: Pod): Promise<void> {
    const startedAt = now();
    const runs = (name: string) => ({
      ...{ name, image: "", imageID: "", ready: true, started: true, restartCount: 0 },
      state: { running: { startedAt } },
    });
    const ready = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
    return this.#setStatus(pod, {
      phase: "Running",
      startTime: startedAt,
      conditions: ready.map((type) => ({ type, status: "True", lastTransitionTime: startedAt })),
      initContainerStatuses: (pod.spec?.initContainers ?? []).map(({ name }) => runs(name)),
      containerStatuses: (pod.spec?.containers ?? []).map(({ name }) => runs(name)),
    });
  }

  /** Makes all containers exit with `exitCode`. @param kept conditions that the pod keeps @param message its termination message */
  end(pod: Pod, exitCode = 0, kept: object[] = [], message = ""): Promise<void> {
    const ended = (name: string) => ({
      ...{ name, image: "", imageID: "", ready: false, started: false, restartCount: 0 },
      state: { terminated: { exitCode, reason: exitCode === 0 ? "Completed" : "Error", message, finishedAt: now() } },
    });
    return this.#setStatus(pod, {
      phase: exitCode === 0 ? "Succeeded" : "Failed",
      conditions: [
        ...kept,
        ...["ContainersReady", "Ready"].map((type) => ({ type, status: "False", lastTransitionTime: now() })),
      ],
      initContainerStatuses: (pod.spec?.initContainers ?? []).map(({ name }) => ended(name)),
      containerStatuses: (pod.spec?.containers ?? []).map(({ name }) => ended(name)),
    });
  }

  async #setStatus(pod: Pod, status: object): Promise<void> {
    const { namespace, name, uid } = pod.metadata;
    const patch = { metadata: { uid }, status };
    for (;;)
      try {
        await this.#client.mergePatch(POD, { name, ...(namespace && { namespace }) }, patch, { subresource: "status" });
        return;
      } catch (error) {
        if (!(error instanceof ApiError && [0, 404, 409].includes(error.status))) throw error;
        // Meanwhile it was deleted or replaced by a pod with the same name, or the test has ended.
        if (error.status !== 0 || (this.#signal?.aborted ?? true)) return;
        await sleep(RETRY_MILLISECONDS); // a kubelet does not give up, either
      }
  }
}

function now(): string {
  return new Date().toISOString().replace(/\.\d+/, "");
}
