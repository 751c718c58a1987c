import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { actorOf, learnerOf } from "../../desired/desired.fixture.ts";
import { runOf } from "../../run.fixture.ts";
import { desiredDisruptionBudget, desiredService } from "./desired.ts";

test("Only with Protect the learner's disruption budget refuses evictions", () => {
  const least = (learner: object) => desiredDisruptionBudget(runOf({ learner })).spec!.minAvailable;
  assert.deepEqual([least({}), least({ disruption: "Checkpoint" }), least({ disruption: "Protect" })], [0, 0, 1]);
});

describe("The learner's Deployment", () => {
  test("One learner runs at a time, so that two never share a volume", () => {
    const { spec } = learnerOf(runOf());
    assert.deepEqual([spec!.replicas, spec!.strategy], [1, { type: "Recreate" }]);
    assert.deepEqual(
      desiredService(runOf()).spec!.ports!.map(({ port }) => port),
      [7443, 9400],
    );
  });

  test("The startup probe waits for learner.startSeconds, and asks every second", () => {
    const { startupProbe } = learnerOf(runOf({ learner: { startSeconds: 95 } })).spec!.template.spec!.containers[0]!;
    assert.deepEqual([startupProbe!.failureThreshold, startupProbe!.periodSeconds], [95, 1]);
  });

  test("The Deployment has the queue's name for Kueue", () => {
    const run = runOf({ queueName: "research" });
    for (const object of [learnerOf(run), actorOf(run)])
      assert.equal(object.metadata.labels!["kueue.x-k8s.io/queue-name"], "research");
  });

  test("The label on the run names its queue too; spec.queueName takes precedence", () => {
    const labels = { "kueue.x-k8s.io/queue-name": "labelled" };
    for (const [spec, queue] of [
      [{}, "labelled"],
      [{ queueName: "research" }, "research"],
    ] as const)
      assert.equal(learnerOf(runOf(spec, {}, { labels })).metadata.labels!["kueue.x-k8s.io/queue-name"], queue);
  });
});
