/** `longrun controller`: reconciles TrainingRuns until it is stopped. */
import { readFileSync } from "node:fs";
import { pino } from "pino";
import { formatAddress } from "../../proto/address.ts";
import { ControllerError, EXIT } from "../errors.ts";
import { parseAddress } from "../local/address.ts";
import { DNS_SERVERS, parseDnsServers, withNameservers } from "../operator/desired/dns.ts";
import { ApiClient } from "../operator/kube/api-client.ts";
import { loadConfig } from "../operator/kube/kubeconfig.ts";
import { parseSelector } from "../operator/kube/runtime/selected-namespaces.ts";
import { startOperator } from "../operator/operator.ts";
import { parseHosts } from "../operator/parts/notification/webhook-hosts.ts";
import type { ControllerOptions } from "./cluster-options.ts";

/** @returns the exit status. @throws ControllerError `input` */
export async function runController(options: ControllerOptions, signal: AbortSignal): Promise<number> {
  const log = pino({ name: "controller", level: process.env.LOG_LEVEL || "info" }, pino.destination(2));
  const { config, inPod: inCluster, namespace } = loadConfig(options);
  const { kueue, namespace: namespaces } = options;
  const images = {
    image: imageOf("--image", options.image),
    actorImage: imageOf("--actor-image", options.actorImage),
    sandboxImage: imageOf("--sandbox-image", options.sandboxImage),
  };
  const dns = options.dns === undefined ? DNS_SERVERS : parseDnsServers(options.dns, "--dns");
  const namespaceSelector =
    options.namespaceSelector === undefined
      ? undefined
      : parseSelector(options.namespaceSelector, "--namespace-selector");
  let lost: string | undefined;
  const metricsAddress = parseAddress(options.metricsAddress, "--metrics-address");
  const operator = await startOperator({
    config,
    inCluster,
    log,
    namespaces,
    namespaceSelector,
    controllerClass: options.controllerClass,
    settings: {
      ...images,
      imagePullPolicy: options.imagePullPolicy,
      ...(inCluster && { controllerNamespace: namespace }),
      ...(options.defaultRuntime !== undefined && { defaultRuntime: options.defaultRuntime }),
      kueue,
      proxy: proxyOf(process.env),
      dns: inCluster ? withNameservers(dns, resolvConf()) : dns,
      webhookHosts: parseHosts(options.webhookAllow, "--webhook-allow"),
    },
    metricsAddress,
    lease: options.leaderElect ? { namespace: inCluster ? namespace : (namespaces[0] ?? "default") } : undefined,
    workers: options.workers,
    qps: options.qps,
    burst: options.burst,
    onLost: (why) => {
      lost = why;
    },
  }).catch((cause: Error) => {
    throw new ControllerError("failed", `the controller cannot start: ${cause.message}`, { cause });
  });
  log.info(
    {
      namespace: namespaces.join(", ") || "all",
      inCluster,
      metrics: formatAddress({ ...metricsAddress, port: operator.metricsPort! }),
    },
    "the controller runs",
  );
  const stop = () => void operator.stop().catch(() => {}); // `done` reports the error
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  await operator.done;
  if (lost === undefined) return EXIT.done;
  throw new ControllerError("failed", `${lost}; the controller ends, another leads`);
}

const proxyOf = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(
    ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"].flatMap((name) => (env[name] ? [[name, env[name]]] : [])),
  );

/** Returns the file that names a pod's DNS servers, or "" where there is none. */
function resolvConf(): string {
  try {
    return readFileSync("/etc/resolv.conf", "utf8");
  } catch {
    return "";
  }
}

/** There is no default image: anybody could publish a name that longrun does not own. */
function imageOf(option: string, image: string | undefined): string {
  if (image) return image;
  throw new ControllerError(
    "input",
    `${option} is missing: longrun publishes no images; give the images that you have built, --image, --actor-image and --sandbox-image`,
  );
}

/** @throws ControllerError `input` */
export function clusterClient(kubeconfig: string | undefined): ApiClient {
  return new ApiClient(loadConfig({ kubeconfig }).config);
}
