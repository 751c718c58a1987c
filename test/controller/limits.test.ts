/** Limits of a namespace that a run does not keep to. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject, Resource } from "../../controller/operator/kube/types.ts";
import { answers, hasReason, skip, useWorld, world } from "./steps.ts";

useWorld();

const LIMIT_RANGE: Resource = { group: "", version: "v1", plural: "limitranges", kind: "LimitRange", namespaced: true };

const limit = (namespace: string, type: string, max: object) =>
  world.client.create(LIMIT_RANGE, {
    metadata: { namespace, name: "limits" },
    spec: { limits: [{ type, max }] },
  } as KubeObject);

test("A LimitRange that refuses the volume is named with the field that holds its size", { skip }, async () => {
  const namespace = await world.namespace();
  await limit(namespace, "PersistentVolumeClaim", { storage: "50Gi" });
  await world.createRun(namespace, "run");
  const { message } = await hasReason(namespace, "Ready", "Refused");
  assert.match(
    message!,
    /a LimitRange .*per PersistentVolumeClaim is 50Gi, but request is 100Gi.*spec\.learner\.storage\.size/,
  );
  await world.patchRun(namespace, "run", { learner: { storage: { size: "50Gi" } } });
  await answers(namespace);
});

test("So is a LimitRange that refuses the learner's pod", { skip }, async () => {
  const namespace = await world.namespace();
  await limit(namespace, "Container", { memory: "512Mi" });
  await world.createRun(namespace, "run", { learner: { resources: { limits: { memory: "1Gi" } } } });
  const { message } = await hasReason(namespace, "Ready", "Refused");
  assert.match(
    message!,
    /memory usage per Container is 512Mi, but limit is 1Gi.*stay within its limits in spec\.learner\.resources/,
  );
});
