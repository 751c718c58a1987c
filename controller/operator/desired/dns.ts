/** DNS servers that pods of runs may ask, as NetworkPolicies have them. */

import { isIP } from "node:net";
import type { V1NetworkPolicyEgressRule, V1NetworkPolicyPeer } from "@kubernetes/client-node";
import { ControllerError } from "../../errors.ts";

export interface DnsServers {
  to: readonly V1NetworkPolicyPeer[];
  /** For UDP and TCP. A policy sees the port of the server's pod, which need not be that of its Service. */
  ports: readonly number[];
}

const everywhere = (podSelector: V1NetworkPolicyPeer["podSelector"]): V1NetworkPolicyPeer => ({
  namespaceSelector: {},
  podSelector: podSelector!,
});

/**
 * DNS servers of common clusters: kube-dns and CoreDNS, NodeLocal DNSCache as pods (GKE Dataplane V2) and at its link-local address, Cloud
 * DNS of GKE (169.254.169.254), and OpenShift's, whose pods listen at 5353. The chart has the same as networkPolicy.dns.
 */
export const DNS_SERVERS: DnsServers = {
  to: [
    everywhere({
      matchExpressions: [{ key: "k8s-app", operator: "In", values: ["kube-dns", "node-local-dns", "coredns"] }],
    }),
    everywhere({ matchLabels: { "app.kubernetes.io/name": "coredns" } }),
    everywhere({ matchExpressions: [{ key: "dns.operator.openshift.io/daemonset-dns", operator: "Exists" }] }),
    { ipBlock: { cidr: "169.254.0.0/16" } },
  ],
  ports: [53, 5353],
};

export function dnsRule({ to, ports }: DnsServers = DNS_SERVERS): V1NetworkPolicyEgressRule {
  return { to: [...to], ports: ports.flatMap((port) => ["UDP", "TCP"].map((protocol) => ({ port, protocol }))) };
}

/**
 * Adds the servers that a pod's `/etc/resolv.conf` names. Pods of runs get the same ones as the controller's pod. Where the node itself
 * answers at the Service's address (NodeLocal DNSCache with iptables), no selector of pods matches.
 */
export function withNameservers(servers: DnsServers, resolvConf: string): DnsServers {
  const named = [...resolvConf.matchAll(/^nameserver\s+([0-9a-fA-F.:]+)\s*$/gm)].map(([, address]) => address!);
  const cidrs = new Set(named.filter((it) => isIP(it) !== 0).map((it) => `${it}/${isIP(it) === 6 ? 128 : 32}`));
  return { ...servers, to: [...servers.to, ...[...cidrs].sort().map((cidr) => ({ ipBlock: { cidr } }))] };
}

/** @param text JSON such as `{"to": [{"ipBlock": {"cidr": "10.0.0.10/32"}}], "ports": [53]}` @throws ControllerError `input` */
export function parseDnsServers(text: string, option: string): DnsServers {
  const fault = (what: string) =>
    new ControllerError("input", `${option}: ${what}; give {"to": [a NetworkPolicy's peers], "ports": [numbers]}`);
  let value: Partial<DnsServers>;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw fault(`is no JSON (${(cause as Error).message})`);
  }
  const { to, ports } = value ?? {};
  const isPeer = (it: unknown) => typeof it === "object" && it !== null && !Array.isArray(it);
  if (!Array.isArray(to) || !to.every(isPeer)) throw fault("`to` must be a list of objects");
  const isPort = (it: unknown) => Number.isInteger(it) && (it as number) >= 1 && (it as number) <= 65_535;
  if (!Array.isArray(ports) || ports.length === 0 || !ports.every(isPort))
    throw fault("`ports` must be a list of numbers from 1 to 65535");
  return { to, ports };
}
