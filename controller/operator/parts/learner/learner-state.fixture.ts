/** States of a learner's pod, and a table test of what the controller concludes from them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Observed } from "../../observe.ts";
import { at, deploymentOf, NOW_MS, observedOf, podOf, runOf } from "../../run.fixture.ts";
import type { Stage } from "../lifecycle/lifecycle.ts";
import { type LearnerFacts, learnerState } from "./learner-state.ts";

const RUN = runOf();
export const pod = (status: object) => ({ deployment: deploymentOf(1), learnerPod: podOf(RUN, "learner", status) });
export const container = (change: object) =>
  pod({ phase: "Running", containerStatuses: [{ name: "learner", image: "img", ready: false, ...change }] });
export const unscheduled = (reason: string, message: string) =>
  pod({ phase: "Pending", conditions: [{ type: "PodScheduled", status: "False", reason, message }] });
export const UNBOUND = "pod has unbound immediate PersistentVolumeClaims";
export const claimOf = (spec: object) =>
  ({ metadata: { name: "quick-data" }, spec }) as NonNullable<Observed["volume"]>;
export const waiting = (reason: string, message = "", name = "learner") =>
  container({ name, state: { waiting: { reason, message } } });
export const ended = (terminated: object) =>
  container({ state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated } });
export const runsSince = (seconds: number, ready = false) =>
  container({ ready, state: { running: { startedAt: at(-seconds) } } });

/** Returns the status of a pod whose node is silent: the node controller set Ready to false and left the rest. */
export const silent = () => ({
  phase: "Running",
  conditions: [{ type: "Ready", status: "False", lastTransitionTime: at(-600) }],
  containerStatuses: [{ name: "learner", image: "img", ready: true, state: { running: { startedAt: at(-3600) } } }],
});
export const leavingOf = (seconds: number, status: object) => ({
  ...{ metadata: { name: "old", uid: "old", deletionTimestamp: at(seconds) }, spec: { nodeName: "n1" } as never },
  ...{ status },
});
export const young = (status: object, seconds: number) => {
  const made = pod(status);
  made.learnerPod.metadata.creationTimestamp = at(seconds);
  return made;
};
export const unboundStatus = {
  phase: "Pending",
  conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: UNBOUND }],
};
export const unfoundStatus = {
  phase: "Pending",
  conditions: [
    {
      ...{ type: "PodScheduled", status: "False", reason: "Unschedulable" },
      message: '0/1 nodes are available: persistentvolumeclaim "quick-data" not found.',
    },
  ],
};
export const MULTI_ATTACH = {
  reason: "FailedAttachVolume",
  note: 'Multi-Attach error for volume "pv-1" Volume is already used by pod(s) old',
};
export const ATTACHING = { reason: "FailedAttachVolume", note: "AttachVolume.Attach failed: volume is being created" };

export type StateCase = [
  what: string,
  observed: Partial<Observed>,
  reason: string,
  message: RegExp,
  facts?: Partial<LearnerFacts>,
];

/** Tests the reason and the message of each case. */
export function testStates(cases: StateCase[]): void {
  for (const [what, change, reason, message, facts] of cases)
    test(`${what}: ${reason}`, () => {
      const lifecycle = { stage: "Running" as Stage, learnerReplicas: 1 as const };
      const state = learnerState({
        observed: observedOf(RUN, change),
        lifecycle,
        refused: undefined,
        warning: undefined,
        podlessSinceMs: undefined,
        nowMs: NOW_MS,
        ...facts,
      });
      assert.equal(state.reason, reason);
      assert.match(state.message, message);
      assert.equal(state.available, reason === "Connected");
      assert.doesNotMatch(state.message, /\n/);
    });
}
