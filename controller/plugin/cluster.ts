/** The cluster and namespace of a command, chosen by kubectl's rules. */
import type { KubeConfig } from "@kubernetes/client-node";
import { ControllerError } from "../errors.ts";
import type { Run } from "../operator/desired/names.ts";
import { ApiClient } from "../operator/kube/api-client.ts";
import { ApiError } from "../operator/kube/errors.ts";
import { type KubeconfigOptions, loadConfig } from "../operator/kube/kubeconfig.ts";
import { TRAINING_RUN } from "../operator/kube/resources.ts";

export interface ClusterOptions extends KubeconfigOptions {
  namespace?: string | undefined;
}

export interface Cluster {
  config: KubeConfig;
  client: ApiClient;
  namespace: string;
  /** Aborted by Ctrl-C; ends slow work. */
  signal: AbortSignal;
}

/** @throws ControllerError `input` */
export function connect({ kubeconfig, context, namespace }: ClusterOptions, signal: AbortSignal): Cluster {
  const { config, namespace: own } = loadConfig({ kubeconfig, context });
  try {
    const client = new ApiClient(config, { fieldManager: "kubectl-longrun" });
    return { config, client, namespace: namespace ?? own, signal };
  } catch (cause) {
    throw new ControllerError("input", (cause as Error).message, { cause });
  }
}

/** @throws ControllerError `input` if the run does not exist */
export async function readRun({ client, namespace }: Cluster, name: string): Promise<Run> {
  const run = await client.get<Run>(TRAINING_RUN, { namespace, name }).catch((cause: unknown) => {
    throw cause instanceof ApiError ? new ControllerError("failed", cause.message, { cause }) : cause;
  });
  if (run) return run;
  throw new ControllerError(
    "input",
    `there is no TrainingRun ${name} in namespace ${namespace}; see kubectl get trainingruns --all-namespaces`,
  );
}
