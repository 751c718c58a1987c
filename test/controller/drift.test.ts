/** Tests refused writes of a run's objects, and manual changes to them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { parse } from "yaml";
import { DEFAULT_SETTINGS } from "../../controller/operator/desired/settings.fixture.ts";
import {
  CONFIG_MAP,
  DEPLOYMENT,
  type Deployment,
  NETWORK_POLICY,
  POD_DISRUPTION_BUDGET,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  TRAINING_RUNTIME,
} from "../../controller/operator/kube/resources.ts";
import type { KubeObject, Resource } from "../../controller/operator/kube/types.ts";
import type { Operator } from "../../controller/operator/operator.ts";
import type { TrainingRuntime } from "../../crds/runtime.ts";
import { createAuthority, createCertificate } from "../../proto/certificates.ts";
import { answers, conditionOf, hasEvent, hasReason, skip, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

useWorld({ controller: false, ready: allowAnyTemplate });

/** Starts a controller for one namespace; `podTemplate` is of its default runtime, in a cluster whose CRD allows any. */
async function operatorOf(namespace: string, podTemplate?: object) {
  if (podTemplate) await world.runtime(namespace, { learner: { podTemplate } });
  const settings = { ...DEFAULT_SETTINGS, ...(podTemplate && { defaultRuntime: namespace }) };
  return world.operator({ namespaces: [namespace], settings });
}

const CRD = {
  ...{ group: "apiextensions.k8s.io", version: "v1", namespaced: false },
  ...{ plural: "customresourcedefinitions", kind: "CustomResourceDefinition" },
};

/** Has the API server take any podTemplate of a TrainingRuntime's learner, as one with another version's CRD may. */
async function allowAnyTemplate(): Promise<void> {
  const crd = parse(readFileSync(new URL("../../crds/longrun.dev_trainingruntimes.yaml", import.meta.url), "utf8"));
  const [version] = crd.spec.versions;
  version.schema.openAPIV3Schema.properties.spec.properties.learner.properties.podTemplate = {
    ...{ type: "object", "x-kubernetes-preserve-unknown-fields": true },
  };
  await world.client.mergePatch(CRD, { name: crd.metadata.name }, { spec: crd.spec });
  await eventually(async () => {
    await world.runtime("probe", { learner: { podTemplate: { any: 1 } } });
    const probe = await world.client.get<KubeObject & TrainingRuntime>(TRAINING_RUNTIME, { name: "probe" });
    return (probe!.spec.learner!.podTemplate as { any?: number }).any === 1;
  });
}

describe("a pod template that the CRD's schema refuses", { skip, concurrency: false }, () => {
  for (const [what, spec, message] of [
    [
      "an unknown field",
      { nodeSelectr: { gpu: "yes" } },
      /podTemplate\.spec\.nodeSelectr is unknown; did you mean nodeSelector\?; change the field/,
    ],
    [
      "a field of another type",
      { containers: [{ name: "learner", env: "x" }] },
      /podTemplate\.spec\.containers\[0\]\.env is "x"; give a list of 0 to 64 items; change the field/,
    ],
  ] as const)
    test(`A condition and an event name ${what}`, async () => {
      const namespace = await world.namespace();
      const operator = await operatorOf(namespace, { spec });
      await world.createRun(namespace, "run");
      const refused = await hasReason(namespace, "LearnerAvailable", "RuntimeRefuses");
      assert.match(refused.message, message);
      assert.equal((await conditionOf(namespace, "Ready"))?.reason, "RuntimeRefuses");
      assert.equal((await world.status(namespace, "run")).phase, "Pending");
      await hasEvent(namespace, /^RuntimeRefuses: TrainingRuntime \S+ does not allow it: spec\.learner\.podTemplate/);
      await operator.stop();
    });

  test("A suspension takes the learner's checkpoint and deletes its pod, though the new template is refused", async () => {
    const namespace = await world.namespace();
    const operator = await operatorOf(namespace);
    await world.createRun(namespace, "run", { upgradePolicy: "Immediately" });
    await answers(namespace);
    await operator.stop();
    const next = await operatorOf(namespace, { spec: { nodeSelectr: { gpu: "yes" } } });
    await hasReason(namespace, "Ready", "RuntimeRefuses");
    const learner = world.learner(namespace, "run");
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    assert.equal(learner.suspended.length, 1);
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
    await eventually(async () => (await world.podsOf(namespace, "run", "learner")).length === 0);
    await next.stop();
  });
});

describe("The controller undoes changes by hand", { skip, concurrency: false }, () => {
  let namespace: string;
  let operator: Operator;

  before(async () => {
    namespace = await world.namespace();
    operator = await operatorOf(namespace);
    await world.createRun(namespace, "run", { actors: { min: 0 } });
    await answers(namespace);
  });
  after(() => operator.stop());

  const anybody = { from: [{ namespaceSelector: {} }] };
  const CASES: [what: string, resource: Resource, name: string, patch: object][] = [
    ["an egress rule for all", NETWORK_POLICY, "run-learner", { spec: { egress: [{}] } }],
    ["an ingress rule", NETWORK_POLICY, "run-actor", { spec: { ingress: [anybody] } }],
    ["no rule", NETWORK_POLICY, "run-actor", { spec: { egress: null } }],
    ["a key in a selector", NETWORK_POLICY, "run-actor", { spec: { podSelector: { matchLabels: { some: "pod" } } } }],
    [
      "an expression in a selector",
      NETWORK_POLICY,
      "run-learner",
      { spec: { podSelector: { matchExpressions: [{ key: "some", operator: "Exists" }] } } },
    ],
    ["another policy type", NETWORK_POLICY, "run-learner", { spec: { policyTypes: ["Ingress"] } }],
    [
      "a port's number",
      SERVICE,
      "run-learner",
      { spec: { ports: [{ name: "grpc", port: 7000, targetPort: "grpc" }] } },
    ],
    [
      "a port more",
      SERVICE,
      "run-learner",
      {
        spec: {
          ports: [
            { name: "grpc", port: 7443, targetPort: "grpc" },
            { name: "metrics", port: 9400, targetPort: "metrics" },
            { name: "debug", port: 9229, targetPort: 9229 },
          ],
        },
      },
    ],
    [
      "the names of ports",
      SERVICE,
      "run-learner",
      {
        spec: {
          ports: [
            { name: "metrics", port: 7443 },
            { name: "grpc", port: 9400 },
          ],
        },
      },
    ],
    ["a key in its selector", SERVICE, "run-learner", { spec: { selector: { some: "pod" } } }],
    ["an external address", SERVICE, "run-learner", { spec: { externalIPs: ["192.0.2.1"] } }],
    ["another type", SERVICE, "run-learner", { spec: { type: "NodePort" } }],
    ["a token", SERVICE_ACCOUNT, "run-actor", { automountServiceAccountToken: true }],
    [
      "a key in its selector",
      POD_DISRUPTION_BUDGET,
      "run-learner",
      { spec: { selector: { matchExpressions: [{ key: "some", operator: "Exists" }] } } },
    ],
  ];
  for (const [what, resource, name, patch] of CASES)
    test(`${resource.kind}: the controller undoes ${what}`, async () => {
      const key = { namespace, name };
      const contentOf = ({ spec, automountServiceAccountToken }: Content) => ({ spec, automountServiceAccountToken });
      const content = async () => contentOf((await world.client.get<Content>(resource, key))!);
      const before = await content();
      const toldBefore = await world.events(namespace);
      const from = world.auditLength();
      const changed = await world.client.mergePatch<Content>(resource, key, patch);
      assert.notDeepEqual(contentOf(changed), before);
      await eventually(async () => isDeepStrictEqual(await content(), before), 10);
      await eventually(async () => {
        const told = (await world.events(namespace)).filter((text) => !toldBefore.includes(text));
        return told.some((text) => text.startsWith(`Repaired: ${resource.kind} ${name} was changed`));
      });
      const writes = world.writes(namespace, from).filter((it) => it.name === name);
      assert.deepEqual([...new Set(writes.map(({ code }) => code))], [200], JSON.stringify(writes));
      assert.ok(writes.length <= 2, JSON.stringify(writes));
    });

  for (const [resource, name] of [
    [SERVICE, "run-learner"],
    [DEPLOYMENT, "run-learner"],
    [CONFIG_MAP, "run-config"],
    [SECRET, "run-ca"],
  ] as const)
    test(`${resource.kind}: the controller restores its owner reference`, async () => {
      const key = { namespace, name };
      const owners = async () => (await world.client.get(resource, key))!.metadata.ownerReferences;
      const before = await owners();
      const changed = await world.client.mergePatch(resource, key, { metadata: { ownerReferences: null } });
      assert.equal(changed.metadata.ownerReferences, undefined);
      await eventually(async () => isDeepStrictEqual(await owners(), before), 10);
    });

  test("Deployment: the controller restores a port's number, which an apply would merge into two ports of one name", async () => {
    const key = { namespace, name: "run-learner" };
    const ports = ({ spec }: Deployment) =>
      spec!.template.spec!.containers[0]!.ports!.map((port) => port.containerPort);
    const deployment = (await world.client.get<Deployment>(DEPLOYMENT, key))!;
    const [container] = deployment.spec!.template.spec!.containers;
    const changed = { ...container, ports: [{ name: "grpc", containerPort: 7000 }] };
    await world.client.mergePatch(DEPLOYMENT, key, { spec: { template: { spec: { containers: [changed] } } } });
    await eventually(
      async () => isDeepStrictEqual(ports((await world.client.get<Deployment>(DEPLOYMENT, key))!), [7443, 9400]),
      10,
    );
    await hasEvent(namespace, /^Repaired: Deployment run-learner was changed/);
    await answers(namespace);
  });

  test("The controller accepts an addition that a webhook makes at every write", async (context) => {
    const webhook = await mutating(namespace, { op: "add", path: "/spec/selector/added", value: "by-webhook" });
    context.after(() => webhook.remove());
    const key = { namespace, name: "run-learner" };
    const selector = async () => (await world.client.get<Content>(SERVICE, key))!.spec.selector!;
    await eventually(async () => {
      const labels = { look: String(Math.floor(performance.now())) };
      await world.client.mergePatch(SERVICE, key, { metadata: { labels } });
      return "added" in (await selector());
    });
    await sleep(1000);
    const from = world.auditLength();
    const told = (await world.events(namespace)).length;
    for (const ttlSecondsAfterFinished of [3600, 3601]) {
      await world.patchRun(namespace, "run", { ttlSecondsAfterFinished }); // to start a reconcile
      await sleep(1500);
    }
    const writes = world.writes(namespace, from).filter(({ resource }) => resource === "services");
    assert.deepEqual(writes, []);
    assert.equal((await world.events(namespace)).length, told);
    assert.ok("added" in (await selector()));
  });
});

type Content = KubeObject & { spec: Record<string, object>; automountServiceAccountToken?: boolean };

/** Starts an admission webhook that patches every created or changed Service of the namespace. */
async function mutating(namespace: string, operation: object) {
  const authority = await createAuthority({ validSeconds: 3600 });
  const hosts = ["127.0.0.1"];
  const tls = await createCertificate(authority, { role: "learner", name: "webhook", hosts, validSeconds: 3600 });
  const server = createServer({ key: tls.key, cert: tls.certificate }, async (request, response) => {
    const { apiVersion, kind, request: review } = JSON.parse(await text(request));
    const patch = Buffer.from(JSON.stringify([operation])).toString("base64");
    const answer = { uid: review.uid, allowed: true, patchType: "JSONPatch", patch };
    response.setHeader("content-type", "application/json").end(JSON.stringify({ apiVersion, kind, response: answer }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const resource: Resource = {
    ...{ group: "admissionregistration.k8s.io", version: "v1", plural: "mutatingwebhookconfigurations" },
    ...{ kind: "MutatingWebhookConfiguration", namespaced: false },
  };
  const { metadata } = await world.client.create(resource, {
    metadata: { name: "adds" },
    webhooks: [
      {
        name: "adds.example.com",
        clientConfig: {
          url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
          caBundle: Buffer.from(authority.certificate).toString("base64"),
        },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["services"] }],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
      },
    ],
  } as KubeObject);
  return {
    async remove() {
      await world.client.delete(resource, { name: "adds" }, { uid: metadata.uid! });
      server.closeAllConnections();
      server.close();
    },
  };
}
