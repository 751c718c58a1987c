/**
 * Stands in for scheduler and kubelets where a test has no node: every pod of its namespaces runs and is ready as soon
 * as it is there, and ends when the test says so. Pods that have no node are gone as soon as they are deleted.
 */
import type { ApiClient } from "../../controller/kube/api-client.ts";
import { ApiError } from "../../controller/kube/errors.ts";
import { Reflector } from "../../controller/kube/reflector.ts";
import { POD, type Pod } from "../../controller/kube/resources.ts";

export interface PodRunnerOptions {
  client: ApiClient;
  /** Default: all. */
  namespace?: string;
  /** Pods that stay Pending, as if nothing could take them. Asked when a pod is new. */
  holds?: (pod: Pod) => boolean;
}

export class PodRunner {
  readonly pods: Reflector<Pod>;
  readonly #client: ApiClient;
  readonly #holds: (pod: Pod) => boolean;

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

  /** All its containers exit with `exitCode`. @param kept conditions that it goes on having @param message its last words */
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
    try {
      await this.#client.mergePatch(POD, { name, ...(namespace && { namespace }) }, patch, { subresource: "status" });
    } catch (error) {
      // It was deleted, or replaced by another of its name, meanwhile; or the test is over.
      if (!(error instanceof ApiError && [0, 404, 409].includes(error.status))) throw error;
    }
  }
}

function now(): string {
  return new Date().toISOString().replace(/\.\d+/, "");
}
