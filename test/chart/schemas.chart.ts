/**
 * `npm run test:chart`: every object of the chart, with each file of `values/`, and every child that the controller makes for a
 * TrainingRun, must be valid in several versions of Kubernetes; and `helm lint --strict`.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { desiredNetworkPolicies, desiredServiceAccounts } from "../../controller/operator/desired/access.ts";
import { desiredConfigMap } from "../../controller/operator/desired/config-map.ts";
import { DEFAULT_SETTINGS } from "../../controller/operator/desired/settings.fixture.ts";
import type { KubeObject } from "../../controller/operator/kube/types.ts";
import { desiredActor } from "../../controller/operator/parts/actors/desired.ts";
import { desiredInit } from "../../controller/operator/parts/inputs/init.ts";
import {
  desiredDisruptionBudget,
  desiredLearner,
  desiredService,
} from "../../controller/operator/parts/learner/desired.ts";
import { desiredVolume } from "../../controller/operator/parts/volume/desired.ts";
import { runOf } from "../../controller/operator/run.fixture.ts";
import { CHART, helm, helmUnavailable, keyOf, OPERATORS, objectsOf, template, VALUE_SETS, valuesFile } from "./helm.ts";
import { KUBERNETES_MINORS, kubernetesValidator } from "./kubernetes-schemas.ts";

const skip = helmUnavailable() ?? false;
/** Kinds that Kubernetes itself lacks. */
const FOREIGN = new Set(["ServiceMonitor", "PodMonitor", "PrometheusRule", "TrainingRuntime"]);

function problemsOf(minor: string, object: KubeObject): string[] {
  const problems = kubernetesValidator(minor)(object);
  if (problems === undefined) return FOREIGN.has(object.kind!) ? [] : [`${object.kind} is unknown`];
  return problems;
}

function childrenOfRun(): KubeObject[] {
  const run = runOf({ actors: { slots: 2, runtimeClassName: "gvisor" }, queueName: "team" });
  const inputs = { configHash: "c", claimName: "quick-data", replicas: 1, settings: DEFAULT_SETTINGS } as const;
  return [
    ...desiredServiceAccounts(run),
    ...desiredNetworkPolicies(run, DEFAULT_SETTINGS),
    ...[desiredConfigMap(run), desiredVolume(run, "quick-data", { succeeded: false }), desiredService(run)],
    ...[desiredDisruptionBudget(run), desiredLearner(run, inputs), desiredActor(run, 0, 0, DEFAULT_SETTINGS)],
    desiredInit(run, "quick-data", "other-data", DEFAULT_SETTINGS),
  ];
}

describe("Kubernetes knows every field", () => {
  const sets = new Map<string, KubeObject[]>([["the children of a run", childrenOfRun()]]);
  before(async () => {
    if (skip) return;
    for (const set of VALUE_SETS) sets.set(set, objectsOf(await template(["--values", valuesFile(set), ...OPERATORS])));
  });

  for (const minor of KUBERNETES_MINORS) {
    test(`Kubernetes ${minor} knows every field of a run's children`, () => {
      for (const object of childrenOfRun()) assert.deepEqual(problemsOf(minor, object), [], keyOf(object));
    });
    for (const set of VALUE_SETS)
      test(`Kubernetes ${minor} knows every field of the chart with values/${set}.yaml`, { skip }, () => {
        for (const object of sets.get(set)!) assert.deepEqual(problemsOf(minor, object), [], keyOf(object));
      });
  }

  test("The check finds a misspelt field", () => {
    const learner = childrenOfRun().find(({ kind }) => kind === "Deployment") as never as { spec: object };
    const wrong = { ...learner, spec: { ...learner.spec, replicas: "2", replica: 2 } } as never as KubeObject;
    assert.equal(problemsOf("1.30", wrong).length, 2);
    assert.deepEqual(problemsOf("1.30", { ...wrong, apiVersion: "apps/v2" }), ["Deployment is unknown"]);
  });
});

describe("helm lint --strict", { skip }, () => {
  for (const set of VALUE_SETS)
    test(`helm lint --strict accepts values/${set}.yaml`, async () => {
      await helm(["lint", "--strict", "--quiet", CHART, "--values", valuesFile(set)]);
    });
});
