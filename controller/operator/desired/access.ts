/** Service accounts, which have no rights, and network policies. */
import type { V1NetworkPolicyEgressRule, V1NetworkPolicyPeer } from "@kubernetes/client-node";
import type { NetworkPolicy, ServiceAccount } from "../kube/resources.ts";
import { dnsRule } from "./dns.ts";
import {
  COMPONENT,
  childMetadata,
  GENERATOR_PORT,
  GENERATORS,
  GRPC_PORT,
  METRICS_PORT,
  podLabels,
  type Run,
} from "./names.ts";
import { s3Egress } from "./s3.ts";
import type { Settings } from "./settings.ts";

/** Labels of the controller's own pods, in any namespace. */
export const CONTROLLER_POD_LABELS = { "app.kubernetes.io/name": "longrun", [COMPONENT]: "controller" };

/** Returns the run's service accounts. None has any right, and no pod gets a token. */
export function desiredServiceAccounts(run: Run): ServiceAccount[] {
  const { model, generation, results } = run.spec;
  const accounts = [
    ["learner", "learner"],
    ["actor", "actor"],
    ...(model.source ? ([["model", "model"]] as const) : []),
    ...(results ? ([["results", "results"]] as const) : []),
    ...(generation ? ([[GENERATORS, "generator"]] as const) : []),
  ] as const;
  return accounts.map(([suffix, component]) => ({
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: childMetadata(run, suffix, component),
    automountServiceAccountToken: false,
  }));
}

export function desiredNetworkPolicies(run: Run, settings: Settings): NetworkPolicy[] {
  const { model, results, generation } = run.spec;
  const { huggingFace, s3, oci } = model.source ?? {};
  const hub = huggingFace && outwardPolicy(run, "model", settings, huggingFace);
  const registry = oci && outwardPolicy(run, "model", settings, { endpoint: `https://${oci.reference.split("/")[0]}` });
  const bucket = s3 && outwardPolicy(run, "model", settings, s3, s3Egress(s3));
  const pushes = results && outwardPolicy(run, "results", settings, results.s3, s3Egress(results.s3));
  const outward = [hub, bucket, registry, pushes].filter((policy) => policy !== undefined);
  const generates = generation ? [generatorPolicy(run)] : [];
  return [learnerPolicy(run, settings), actorPolicy(run, settings), ...outward, ...generates];
}

const HTTPS_PORT = 443;

/**
 * Returns a NetworkPolicy for the Jobs that fetch or copy. In: nothing. Out: DNS, and any host at the ports of https, of the hub or S3 and
 * of the proxies, because the hub redirects to storage at unknown addresses.
 */
function outwardPolicy(
  run: Run,
  component: "model" | "results",
  { proxy = {}, dns }: Settings,
  { endpoint }: { endpoint?: string },
  further: V1NetworkPolicyEgressRule[] = [],
): NetworkPolicy {
  const urls = [endpoint, proxy.HTTP_PROXY, proxy.HTTPS_PROXY].filter((url) => url !== undefined && URL.canParse(url));
  const ports = new Set([HTTPS_PORT, ...urls.map((url) => portOf(new URL(url!)))]);
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: childMetadata(run, component, component),
    spec: {
      podSelector: { matchLabels: podLabels(run, component) },
      policyTypes: ["Ingress", "Egress"],
      egress: [
        { ports: [...ports].sort((a, b) => a - b).map((port) => ({ port, protocol: "TCP" })) },
        ...further,
        dnsRule(dns),
      ],
    },
  };
}

const portOf = ({ port, protocol }: URL): number => Number(port) || (protocol === "https:" ? HTTPS_PORT : 80);

/** Returns the generators' NetworkPolicy. In: the learner. Out: nothing. No policy blocks the kubelet's probes from the node. */
function generatorPolicy(run: Run): NetworkPolicy {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: childMetadata(run, GENERATORS, "generator"),
    spec: {
      podSelector: { matchLabels: podLabels(run, "generator") },
      policyTypes: ["Ingress", "Egress"],
      ingress: [
        {
          from: [{ podSelector: { matchLabels: podLabels(run, "learner") } }],
          ports: [{ port: GENERATOR_PORT, protocol: "TCP" }],
        },
      ],
    },
  };
}

/**
 * Returns the learner's NetworkPolicy. In: its actors, the controller and readers of metrics. Out: its generators, and DNS to find
 * them; a learner without generators opens no connection.
 */
function learnerPolicy(run: Run, { controllerNamespace, dns }: Settings): NetworkPolicy {
  const controller: V1NetworkPolicyPeer = {
    namespaceSelector: controllerNamespace
      ? { matchLabels: { "kubernetes.io/metadata.name": controllerNamespace } }
      : {},
    podSelector: { matchLabels: CONTROLLER_POD_LABELS },
  };
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: childMetadata(run, "learner", "learner"),
    spec: {
      podSelector: { matchLabels: podLabels(run, "learner") },
      policyTypes: ["Ingress", "Egress"],
      ingress: [
        {
          from: [{ podSelector: { matchLabels: podLabels(run, "actor") } }, controller],
          ports: [{ port: GRPC_PORT, protocol: "TCP" }],
        },
        { ports: [{ port: METRICS_PORT, protocol: "TCP" }] },
      ],
      ...(run.spec.generation && {
        egress: [
          {
            to: [{ podSelector: { matchLabels: podLabels(run, "generator") } }],
            ports: [{ port: GENERATOR_PORT, protocol: "TCP" }],
          },
          dnsRule(dns),
        ],
      }),
    },
  };
}

/**
 * Returns the actors' NetworkPolicy. In: readers of the supervisor's metrics; the supervisor serves nothing else. Programs share its
 * network but have no sockets. Out: the learner's port, and DNS to find it.
 */
function actorPolicy(run: Run, { dns }: Settings): NetworkPolicy {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: childMetadata(run, "actor", "actor"),
    spec: {
      podSelector: { matchLabels: podLabels(run, "actor") },
      policyTypes: ["Ingress", "Egress"],
      ingress: [{ ports: [{ port: METRICS_PORT, protocol: "TCP" }] }],
      egress: [
        {
          to: [{ podSelector: { matchLabels: podLabels(run, "learner") } }],
          ports: [{ port: GRPC_PORT, protocol: "TCP" }],
        },
        dnsRule(dns),
      ],
    },
  };
}
