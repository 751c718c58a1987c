/** An API server that drops a field and answers 200: image volumes, which Kubernetes 1.31 to 1.34 know only with a feature gate. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DEPLOYMENT } from "../../controller/operator/kube/resources.ts";
import { hasEvent, hasReason, skip, useWorld, world } from "./steps.ts";

useWorld({ parts: { apiServer: { "feature-gates": "ImageVolume=false" } } });

const volume = { image: { reference: "registry.example.com/m:1" } };

test("A run whose model volume is dropped starts no learner, and its condition names field and version", {
  skip,
}, async () => {
  const namespace = await world.namespace();
  await world.createRun(namespace, "run", { model: { policy: "m", volume } });
  const { message } = await hasReason(namespace, "Ready", "FieldDropped");
  assert.match(message!, /spec\.model\.volume\.image, in Deployment run-learner .*volumes\[model\]/);
  assert.match(message!, /Kubernetes 1\.\d+\.\d+\).*feature gate ImageVolume/);
  await hasEvent(namespace, /^FieldDropped: .*spec\.model\.volume\.image/);
  await hasReason(namespace, "ObjectsApplied", "FieldDropped");
  assert.deepEqual(await world.list(DEPLOYMENT, namespace), []);
});

test("So does a run whose task's data is dropped", { skip }, async () => {
  const namespace = await world.namespace();
  const claim = { persistentVolumeClaim: { claimName: "answers" } };
  const grader = { metric: "RMSE", idColumn: "id", targetColumns: ["y"], direction: "Lower" };
  const task = { name: "own", publicData: volume, privateData: claim, grader };
  await world.createRun(namespace, "run", { tasks: [task], actors: { sandboxImage: "ours" } });
  const { message } = await hasReason(namespace, "Ready", "FieldDropped");
  assert.match(message!, /spec\.tasks\[0\]\.publicData\.image, in Deployment run-learner .*volumes\[public-data\]/);
});
