/** A policy of the cluster that demands a label of every object, and a run that gives it to all of them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KubeObject, Resource } from "../../controller/operator/kube/types.ts";
import { PARTS } from "../../controller/operator/parts/index.ts";
import { answers, hasActors, hasReason, skip, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

const DEMANDING = "example.com/demands-team";

useWorld({ ready: demandLabels });

/** Demands the label `team` of every object in the namespaces with the label DEMANDING. */
async function demandLabels(): Promise<void> {
  const create = (plural: string, kind: string, name: string, spec: object) => {
    const resource = { group: "admissionregistration.k8s.io", version: "v1", plural, kind, namespaced: false };
    return world.client.create(resource, { metadata: { name }, spec } as unknown as KubeObject);
  };
  const core = ["pods", "secrets", "configmaps", "serviceaccounts", "services", "persistentvolumeclaims"];
  const others = ["deployments", "jobs", "networkpolicies", "poddisruptionbudgets"];
  await create("validatingadmissionpolicies", "ValidatingAdmissionPolicy", "team", {
    matchConstraints: {
      namespaceSelector: { matchLabels: { [DEMANDING]: "yes" } },
      resourceRules: [
        {
          ...{ apiGroups: ["", "apps", "batch", "networking.k8s.io", "policy"], apiVersions: ["*"] },
          ...{ operations: ["CREATE", "UPDATE"], resources: [...core, ...others] },
        },
      ],
    },
    validations: [
      {
        expression: "has(object.metadata.labels) && 'team' in object.metadata.labels",
        message: "every object needs the label team",
      },
    ],
  });
  await create("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "team", {
    ...{ policyName: "team", validationActions: ["Deny"] },
  });
}

/** Returns a namespace whose objects need the label; without it the API server refuses one. */
async function demandingNamespace(): Promise<string> {
  const namespace = await world.namespace();
  const v1 = { group: "", version: "v1" };
  const namespaces: Resource = { ...v1, plural: "namespaces", kind: "Namespace", namespaced: false };
  await world.client.mergePatch(namespaces, { name: namespace }, { metadata: { labels: { [DEMANDING]: "yes" } } });
  const services: Resource = { ...v1, plural: "services", kind: "Service", namespaced: true };
  await eventually(async () => {
    const spec = { ports: [{ port: 80 }] };
    const key = { name: "probe", namespace };
    const made = await world.client
      .create<KubeObject>(services, { metadata: key, spec } as never)
      .catch(() => undefined);
    if (made) await world.client.delete(services, key, { uid: made.metadata.uid! });
    return made === undefined; // the policy takes effect some time after it is stored
  });
  return namespace;
}

describe("inheritedMetadata", { skip, concurrency: 2 }, () => {
  test("A run without the label is refused by name; with it every child and pod has label and annotation", async () => {
    const namespace = await demandingNamespace();
    await world.createRun(namespace, "run", {
      learner: { podTemplate: { metadata: { labels: { team: "vision" } } } },
      actors: { podTemplate: { metadata: { labels: { team: "vision" } } } },
    });
    const blocked = await hasReason(namespace, "Ready", "Refused");
    assert.match(blocked.message!, /every object needs the label team/);

    const inheritedMetadata = { labels: { team: "speech" }, annotations: { "example.com/owner": "someone" } };
    await world.patchRun(namespace, "run", { inheritedMetadata });
    await answers(namespace);
    await hasActors(namespace, 1);
    const kinds = new Set(PARTS.flatMap((part) => part.kinds?.({ kueue: false }) ?? []));
    const children: string[] = [];
    for (const resource of kinds)
      for (const { metadata } of await world.list(resource, namespace, "app.kubernetes.io/managed-by=longrun")) {
        children.push(resource.kind);
        const { labels, annotations } = metadata;
        const isPod = resource.kind === "Pod" || resource.kind === "ReplicaSet";
        // A podTemplate is more specific.
        assert.equal(labels?.team, isPod ? "vision" : "speech", `${resource.kind} ${metadata.name}`);
        assert.equal(annotations?.["example.com/owner"], "someone", `${resource.kind} ${metadata.name}`);
      }
    for (const kind of ["Pod", "Secret", "ConfigMap", "Job", "Deployment", "PersistentVolumeClaim", "NetworkPolicy"])
      assert.ok(children.includes(kind), `there is a ${kind}: ${children}`);
  });
});
