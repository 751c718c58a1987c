import assert from "node:assert/strict";
import { test } from "node:test";
import { firstDifference, wholeDifference } from "./compare.ts";

const CASES: [what: string, desired: unknown, observed: unknown, difference: string | undefined][] = [
  ["the same", { a: 1, b: [{ c: "x" }] }, { a: 1, b: [{ c: "x" }] }, undefined],
  ["what the server adds", { a: 1 }, { a: 1, status: {}, b: 2 }, undefined],
  ["added within an item", [{ name: "x" }], [{ name: "x", protocol: "TCP" }], undefined],
  ["another value", { spec: { replicas: 1 } }, { spec: { replicas: 3 } }, "spec.replicas is 3, should be 1"],
  ["a field that is gone", { data: { a: "x" } }, { data: {} }, 'data.a is absent, should be "x"'],
  ["an item too many", { b: ["x"] }, { b: ["x", "y"] }, "b has 2 items, should have 1"],
  ["an item of another value", { b: [{ a: 1 }] }, { b: [{ a: 2 }] }, "b[0].a is 2, should be 1"],
  [
    "quantities in another spelling",
    { cpu: "0.5", memory: "1024Mi", gpu: 1 },
    { cpu: "500m", memory: "1Gi", gpu: "1" },
    undefined,
  ],
  ["another quantity", { cpu: "0.5" }, { cpu: "600m" }, 'cpu is "600m", should be "0.5"'],
  ["words that look like quantities", { a: "1e" }, { a: "1f" }, 'a is "1f", should be "1e"'],
  ["empty things that the server drops", { a: {}, b: [], c: { d: [] } }, {}, undefined],
  ["a list that is not there", { b: [1] }, {}, "b is absent, should be [1]"],
  ["undefined asks for nothing", { a: undefined }, { a: 1 }, undefined],
];

for (const [what, desired, observed, difference] of CASES)
  test(`firstDifference: ${what}`, () => assert.equal(firstDifference(desired, observed), difference));

const LABELS = { matchLabels: { run: "a" } };
const PEER = { namespaceSelector: {}, podSelector: LABELS };
const POLICY = { podSelector: LABELS, policyTypes: ["Ingress"], ingress: [{ from: [PEER], ports: [{ port: 1 }] }] };
const GRPC = { name: "grpc", port: 7443 };

const WHOLE: [what: string, kind: string, desired: object, observed: object, difference?: string, patch?: object][] = [
  ["the same", "NetworkPolicy", POLICY, POLICY],
  ["an empty list is none", "NetworkPolicy", POLICY, { ...POLICY, egress: [] }],
  [
    "a rule that lets all out",
    "NetworkPolicy",
    POLICY,
    { ...POLICY, egress: [{}] },
    "spec.egress is [{}], should be absent",
    { spec: { egress: null } },
  ],
  [
    "a peer of all namespaces",
    "NetworkPolicy",
    { podSelector: LABELS, ingress: [{ from: [{ podSelector: LABELS }] }] },
    { podSelector: LABELS, ingress: [{ from: [PEER] }] },
    "spec.ingress[0].from[0].namespaceSelector is {}, should be absent",
    { spec: { ingress: [{ from: [{ podSelector: LABELS }] }] } },
  ],
  [
    "a key in a selector",
    "PodDisruptionBudget",
    { selector: LABELS, minAvailable: 1 },
    { selector: { matchLabels: { run: "a", b: "c" } }, minAvailable: 1 },
    'spec.selector.matchLabels.b is "c", should be absent',
    { spec: { selector: { matchLabels: { run: "a", b: null } } } },
  ],
  [
    "a port more, and what the server sets",
    "Service",
    { type: "ClusterIP", ports: [GRPC] },
    { type: "ClusterIP", clusterIP: "10.0.0.1", ports: [GRPC, { name: "b", port: 2 }] },
    "spec.ports has 2 items, should have 1",
    { spec: { ports: [GRPC] } },
  ],
  ["a sidecar", "Deployment", { containers: [] }, { containers: [{ name: "sidecar" }] }],
];

for (const [what, kind, desired, observed, difference, patch] of WHOLE)
  test(`wholeDifference of a ${kind}: ${what}`, () =>
    assert.deepEqual(
      wholeDifference(kind, { spec: desired }, { spec: observed }),
      difference && { difference, patch },
    ));
