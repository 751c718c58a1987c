/** What the API server refuses of a run's objects, and what people change in them by hand. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DEFAULT_SETTINGS } from "../../controller/desired/settings.ts";
import { CONTROL_PLANE } from "../cluster/binaries.ts";
import { controlPlaneUnavailable } from "../cluster/control-plane.ts";
import { stepsIn } from "./steps.ts";
import { eventually, World } from "./world.ts";

const skip = controlPlaneUnavailable(CONTROL_PLANE) ?? false;

let world: World;
const { answers, conditionOf, hasEvent, hasReason } = stepsIn(() => world);

before(async () => {
  if (!skip) world = await World.start();
});
after(() => world?.stop());

/** A controller for one namespace, whose learners' pods have this laid over them. */
const operatorOf = (namespace: string, podTemplate?: object) =>
  world.operator({
    namespaces: [namespace],
    settings: { ...DEFAULT_SETTINGS, ...(podTemplate && { runDefaults: { learner: { podTemplate } } }) } as never,
  });

describe("a pod template that the API server's schema refuses", { skip, concurrency: false }, () => {
  for (const [what, spec, message] of [
    [
      "an unknown field",
      { nodeSelectr: { gpu: "yes" } },
      /podTemplate\.spec\.nodeSelectr: field not declared in schema/,
    ],
    [
      "a field of another type",
      { containers: [{ name: "learner", env: "x" }] },
      /podTemplate\.spec\.containers\[name="learner"\]\.env: expected list/,
    ],
  ] as const)
    test(`${what} is named in a condition and an event`, async () => {
      const namespace = await world.namespace();
      const operator = await operatorOf(namespace, { spec });
      await world.createRun(namespace, "run");
      const refused = await hasReason(namespace, "LearnerAvailable", "Refused");
      assert.match(refused.message, message);
      assert.equal((await conditionOf(namespace, "Ready"))?.reason, "Refused");
      assert.equal((await world.status(namespace, "run")).phase, "Pending");
      await hasEvent(namespace, /^Refused: Deployment run-learner is refused: spec\.learner\.podTemplate/);
      await operator.stop();
    });

  test("a suspend takes the learner's checkpoint and its pod, though the new template is refused", async () => {
    const namespace = await world.namespace();
    const operator = await operatorOf(namespace);
    await world.createRun(namespace, "run");
    await answers(namespace);
    await operator.stop();
    const next = await operatorOf(namespace, { spec: { nodeSelectr: { gpu: "yes" } } });
    await hasReason(namespace, "Ready", "Refused");
    const learner = world.learner(namespace, "run");
    await world.patchRun(namespace, "run", { suspend: true });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Suspended");
    assert.equal(learner.suspended.length, 1);
    assert.equal((await world.deployment(namespace, "run"))?.spec?.replicas, 0);
    await eventually(async () => (await world.podsOf(namespace, "run", "learner")).length === 0);
    await next.stop();
  });
});
