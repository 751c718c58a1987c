import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Job, Pod } from "../../kube/resources.ts";
import { slimPod } from "../../observe.ts";
import { actorOf, at, NOW_MS, podOf, runOf } from "../../run.fixture.ts";
import { actorState, isDisrupted, isOnLostNode, PAST_GRACE_SECONDS, silentSince, takesRoom } from "./actor-state.ts";

const RUN = runOf();
/** Returns a pod as a cache stores it. */
const pod = (status: object, graceOverInSeconds?: number): Pod => {
  const made = podOf(RUN, "actor", { phase: "Running", ...status });
  if (graceOverInSeconds !== undefined) made.metadata.deletionTimestamp = at(graceOverInSeconds);
  return slimPod(made);
};
const says = (type: string, status: string, reason?: string) => ({ conditions: [{ type, status, reason }] });
const NODE_GONE = {
  conditions: [
    { type: "Ready", status: "False" },
    { type: "ContainersReady", status: "True" },
  ],
};
const job = (change: object = {}) => ({ ...actorOf(RUN, 0).job, ...change }) as Job;
const over = (type: string, message = "") =>
  job({ status: { conditions: [{ type, status: "True", message, reason: "PodFailurePolicy" }] } });

describe("actorState", () => {
  const CASES: [what: string, job: Job, pod: Pod | undefined, state: string][] = [
    ["no pod yet", job(), undefined, "starting"],
    ["its pod runs", job(), pod({}), "running"],
    ["its pod waits", job(), pod({ phase: "Pending" }), "starting"],
    ["a sandbox starts again", job(), pod(says("Ready", "False", "ContainersNotReady")), "running"],
    ["its node is not heard", job(), pod(NODE_GONE), "lost"],
    ["its node is not heard, and the pod is deleted for it", job(), pod(NODE_GONE, 600), "lost"],
    ["its node is lost, in the words of older versions", job(), pod({ reason: "NodeLost" }), "lost"],
    ["its pod is deleted", job(), pod({}, 600), "leaving"],
    ["its pod is to be evicted", job(), pod(says("DisruptionTarget", "True", "EvictionByEvictionAPI")), "leaving"],
    ["an eviction that did not come", job(), pod(says("DisruptionTarget", "False")), "running"],
    ["its grace is just over", job(), pod({}, 1 - PAST_GRACE_SECONDS), "leaving"],
    ["its grace has long been over", job(), pod({}, -PAST_GRACE_SECONDS), "lost"],
    ["a queue took its place back", job({ spec: { suspend: true } }), pod({}, 600), "starting"],
    ["it is done, its pod is being collected", over("Complete"), pod({ phase: "Succeeded" }, 5), "succeeded"],
    ["it failed", over("Failed"), pod(NODE_GONE), "failed"],
  ];
  for (const [what, of, its, state] of CASES)
    test(`${state}: ${what}`, () => assert.equal(actorState(of, its, false, NOW_MS), state));

  for (const status of [{ phase: "Pending" }, NODE_GONE])
    test(`An actor that the learner hears runs, whatever its node reports: ${JSON.stringify(status)}`, () =>
      assert.equal(actorState(job(), pod(status), true, NOW_MS), "running"));
});

test("A pod that has ended is not on a lost node, although its conditions are False", () =>
  assert.equal(isOnLostNode(pod({ phase: "Failed", ...says("Ready", "False") })), false));

describe("isDisrupted", () => {
  const target = pod({ phase: "Failed", ...says("DisruptionTarget", "True", "TerminationByKubelet") });
  const byRule = "Pod team/p has condition DisruptionTarget matching FailJob rule at index 0";
  const byExit = "Container supervisor for pod team/p failed with exit code 1 matching FailJob rule at index 1";
  const CASES: [what: string, of: Parameters<typeof isDisrupted>[0], expected: boolean][] = [
    ["leaving", { state: "leaving", job: job(), pod: undefined }, true],
    ["lost", { state: "lost", job: job(), pod: undefined }, true],
    ["running", { state: "running", job: job(), pod: undefined }, false],
    [
      "its queue took its place back",
      { state: "starting", job: job({ spec: { suspend: true } }), pod: pod({}, 9) },
      true,
    ],
    ["removed because its node is lost", { state: "deleting", job: job(), pod: pod(NODE_GONE, 600) }, true],
    ["removed because fewer are needed", { state: "deleting", job: job(), pod: pod({}, 600) }, false],
    ["it waits in a queue", { state: "starting", job: job({ spec: { suspend: true } }), pod: undefined }, false],
    ["failed by a disruption, the pod is gone", { state: "failed", job: over("Failed", byRule), pod: undefined }, true],
    ["failed, its pod was evicted", { state: "failed", job: over("Failed"), pod: target }, true],
    ["failed by itself", { state: "failed", job: over("Failed", byExit), pod: undefined }, false],
    ["evicted and done", { state: "succeeded", job: over("Complete"), pod: target }, false],
  ];
  for (const [what, of, expected] of CASES) test(what, () => assert.equal(isDisrupted(of), expected));
});

test("The controller waits for no pod far past its grace period: its node is lost", () => {
  assert.equal(takesRoom(pod({}), NOW_MS), true);
  assert.equal(takesRoom(pod({}, 1 - PAST_GRACE_SECONDS), NOW_MS), true);
  assert.equal(takesRoom(pod({}, -PAST_GRACE_SECONDS), NOW_MS), false);
  assert.equal(takesRoom(pod({ phase: "Failed" }), NOW_MS), false);
});

test("An actor counts as silent from when it runs and a learner that answers does not hear it", () => {
  const actors = [
    actorOf(RUN, 0, { connected: false }),
    actorOf(RUN, 1, { connected: true }),
    actorOf(RUN, 2, { connected: false, state: "starting" }),
    actorOf(RUN, 3, { connected: false }),
  ];
  const before = new Map([
    ["quick-actor-0-0", 5],
    ["quick-actor-1-0", 5],
  ]);
  assert.deepEqual(
    [...silentSince(actors, true, before, 9)],
    [
      ["quick-actor-0-0", 5],
      ["quick-actor-3-0", 9],
    ],
  );
  assert.equal(silentSince(actors, false, before, 9).size, 0, "a learner that is away hears nobody");
});
