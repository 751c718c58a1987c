import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runOf } from "../run.fixture.ts";
import { desiredNetworkPolicies, desiredServiceAccounts } from "./access.ts";
import { DEFAULT_SETTINGS } from "./settings.fixture.ts";

describe("network policies", () => {
  const [learner, actor] = desiredNetworkPolicies(runOf(), { ...DEFAULT_SETTINGS, controllerNamespace: "longrun" });

  test("Actors reach the learner's port and DNS, and no pod reaches them", () => {
    assert.deepEqual(actor!.spec!.policyTypes, ["Ingress", "Egress"]);
    assert.deepEqual(actor!.spec!.ingress, [{ ports: [{ port: 9400, protocol: "TCP" }] }]);
    const [toLearner, toDns] = actor!.spec!.egress!;
    assert.deepEqual(toLearner!.ports, [{ port: 7443, protocol: "TCP" }]);
    assert.deepEqual(toLearner!.to![0]!.podSelector!.matchLabels, {
      "app.kubernetes.io/component": "learner",
      "longrun.dev/run": "quick",
    });
    assert.deepEqual(
      toDns!.ports!.map(({ port }) => port),
      [53, 53, 5353, 5353],
    );
    assert.equal(actor!.spec!.egress!.length, 2);
  });

  test("The actors and the controller reach the learner, which dials no pod", () => {
    const [grpc, metrics] = learner!.spec!.ingress!;
    assert.equal(grpc!.from!.length, 2);
    assert.deepEqual(grpc!.from![1]!.namespaceSelector, { matchLabels: { "kubernetes.io/metadata.name": "longrun" } });
    assert.deepEqual(metrics!.ports, [{ port: 9400, protocol: "TCP" }]);
    assert.equal(learner!.spec!.egress, undefined);
  });
});

test("Service accounts mount no token", () => {
  for (const account of desiredServiceAccounts(runOf())) assert.equal(account.automountServiceAccountToken, false);
});
