import assert from "node:assert/strict";
import { test } from "node:test";
import type { V1NetworkPolicyPeer } from "@kubernetes/client-node";
import type { NetworkPolicy } from "../kube/resources.ts";
import { runOf } from "../run.fixture.ts";
import { desiredNetworkPolicies } from "./access.ts";
import { parseDnsServers, withNameservers } from "./dns.ts";
import { DEFAULT_SETTINGS } from "./settings.fixture.ts";

/** A DNS server as a network plugin sees it after the Service's translation of addresses. */
interface Server {
  labels?: Record<string, string>;
  address?: string;
  port: number;
}

const SERVERS: [name: string, server: Server][] = [
  ["kube-dns, and CoreDNS of kubeadm", { labels: { "k8s-app": "kube-dns" }, port: 53 }],
  ["NodeLocal DNSCache", { address: "169.254.20.10", port: 53 }],
  ["Cloud DNS of GKE", { address: "169.254.169.254", port: 53 }],
  ["NodeLocal DNSCache of GKE Dataplane V2", { labels: { "k8s-app": "node-local-dns" }, port: 53 }],
  ["OpenShift", { labels: { "dns.operator.openshift.io/daemonset-dns": "default" }, port: 5353 }],
  ["CoreDNS of its chart", { labels: { "k8s-app": "coredns", "app.kubernetes.io/name": "coredns" }, port: 53 }],
  ["CoreDNS of its chart without the first label", { labels: { "app.kubernetes.io/name": "coredns" }, port: 53 }],
];
const OTHERS: [name: string, server: Server][] = [
  ["another pod", { labels: { app: "web" }, port: 53 }],
  ["another port of the DNS server", { labels: { "k8s-app": "kube-dns" }, port: 80 }],
  ["the cloud's metadata", { address: "169.254.169.254", port: 80 }],
  ["an address of the internet", { address: "203.0.113.1", port: 53 }],
];

/** Selects as the API does: https://kubernetes.io/docs/concepts/services-networking/network-policies/ */
function selects({ podSelector, ipBlock }: V1NetworkPolicyPeer, { labels, address }: Server): boolean {
  if (ipBlock)
    return address !== undefined && address.split(".").slice(0, 2).join(".") === ipBlock.cidr.split(".0.0/")[0];
  if (labels === undefined) return false;
  const { matchLabels = {}, matchExpressions = [] } = podSelector ?? {};
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }) =>
      operator === "Exists" ? key in labels : values!.includes(labels[key] ?? ""),
    )
  );
}

const reaches = ({ spec }: NetworkPolicy, server: Server): boolean =>
  spec!.egress!.some(
    ({ to = [], ports = [] }) => to.some((it) => selects(it, server)) && ports.some(({ port }) => port === server.port),
  );

const policies = desiredNetworkPolicies(
  runOf({ generation: {}, model: { source: { huggingFace: { repo: "a/b", revision: "main" } } } }),
  DEFAULT_SETTINGS,
).filter(({ metadata }) => !metadata.name.endsWith("-generators")); // these ask no names

for (const policy of policies) {
  const { name } = policy.metadata;
  for (const [what, server] of SERVERS)
    test(`${name} reaches the DNS of ${what}`, () => assert.ok(reaches(policy, server)));
  for (const [what, server] of OTHERS)
    test(`${name} does not reach ${what}`, () => assert.ok(!reaches(policy, server)));
}

test("The servers of the controller's own pod are added, each as one address", () => {
  const text = "search team.svc.cluster.local\nnameserver 10.96.0.10\nnameserver fd00:10:96::a\nnameserver nonsense\n";
  assert.deepEqual(withNameservers({ to: [], ports: [53] }, text), {
    to: [{ ipBlock: { cidr: "10.96.0.10/32" } }, { ipBlock: { cidr: "fd00:10:96::a/128" } }],
    ports: [53],
  });
});

test("parseDnsServers refuses what is no rule", () => {
  const good = { to: [{ ipBlock: { cidr: "10.0.0.10/32" } }], ports: [53] };
  assert.deepEqual(parseDnsServers(JSON.stringify(good), "--dns"), good);
  const bad: [text: string, message: RegExp][] = [
    ["{", /^--dns: is no JSON .*give \{"to"/],
    ["null", /`to` must be a list of objects/],
    ['{"to": ["a"], "ports": [53]}', /`to` must be a list of objects/],
    ['{"to": [], "ports": []}', /`ports` must be a list of numbers/],
    ['{"to": [], "ports": [70000]}', /from 1 to 65535/],
  ];
  for (const [text, message] of bad) assert.throws(() => parseDnsServers(text, "--dns"), { code: "input", message });
});
