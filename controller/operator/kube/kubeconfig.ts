/** Chooses the API server: that of the pod in which the command runs, or that of a kubeconfig, by kubectl's rules. */
import { existsSync, readFileSync } from "node:fs";
import { KubeConfig } from "@kubernetes/client-node";
import { ControllerError } from "../../errors.ts";

/** File with the namespace of this process's pod. */
const NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

export interface KubeconfigOptions {
  /** Path of a kubeconfig. Absent: in a pod its service account, elsewhere `KUBECONFIG`, then `~/.kube/config`. */
  kubeconfig?: string | undefined;
  /** Absent: the current context. */
  context?: string | undefined;
}

interface LoadedConfig {
  config: KubeConfig;
  inPod: boolean;
  /** The pod's or the context's namespace. */
  namespace: string;
}

/** @throws ControllerError `input` */
export function loadConfig({ kubeconfig, context }: KubeconfigOptions): LoadedConfig {
  const config = new KubeConfig();
  const inPod =
    kubeconfig === undefined && process.env.KUBERNETES_SERVICE_HOST !== undefined && existsSync(NAMESPACE_FILE);
  try {
    if (kubeconfig !== undefined) config.loadFromFile(kubeconfig);
    else if (inPod) config.loadFromCluster();
    else config.loadFromDefault();
  } catch (cause) {
    const { message } = cause as Error;
    const which = kubeconfig ?? process.env.KUBECONFIG ?? "";
    throw new ControllerError("input", `the kubeconfig ${which} cannot be read: ${message}; ${REMEDY}`, { cause });
  }
  if (config.getCurrentCluster()?.server === NOBODYS)
    throw new ControllerError("input", `there is no kubeconfig, neither in KUBECONFIG nor ~/.kube/config; ${REMEDY}`);
  if (context !== undefined) {
    if (!config.getContextObject(context))
      throw new ControllerError("input", `--context ${context}: ${kubeconfig ?? "the kubeconfig"} has no such context`);
    config.setCurrentContext(context);
  }
  const own = inPod
    ? readFileSync(NAMESPACE_FILE, "utf8").trim()
    : config.getContextObject(config.getCurrentContext())?.namespace;
  return { config, inPod, namespace: own ?? "default" };
}

const REMEDY = "name one with --kubeconfig";
/** The address that `loadFromDefault` invents if it finds nothing. */
const NOBODYS = "http://localhost:8080";
