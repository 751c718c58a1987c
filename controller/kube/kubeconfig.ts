/** Which API server a command talks to: the one of the pod that it runs in, or a kubeconfig's, chosen as kubectl chooses. */
import { existsSync, readFileSync } from "node:fs";
import { KubeConfig } from "@kubernetes/client-node";
import { ControllerError } from "../errors.ts";

/** Where a pod finds the namespace that it is in. */
const NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

export interface KubeconfigOptions {
  /** A file. Absent: in a pod its service account, elsewhere `KUBECONFIG`, then `~/.kube/config`. */
  kubeconfig?: string | undefined;
  /** Absent: the current one. */
  context?: string | undefined;
}

export interface LoadedConfig {
  config: KubeConfig;
  inPod: boolean;
  /** The pod's, or the context's. */
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
/** What `loadFromDefault` makes up where it finds nothing; nobody has served the API there for years. */
const NOBODYS = "http://localhost:8080";
