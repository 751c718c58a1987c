/** What Flux (kstatus) and Argo CD say about a run in each phase. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { actorOf, at, NOW_MS, podOf, runOf } from "../../controller/operator/run.fixture.ts";
import type { Finding, Reason } from "../../controller/operator/status/conditions.ts";
import { type facts, RUN, statusOf, unschedulable } from "../../controller/operator/status/status.fixture.ts";
import { STALLED_SECONDS, stallSeconds } from "../../controller/operator/status/summary.ts";
import type { TrainingRunStatus } from "../../crds/trainingrun.ts";
import { messages } from "../../proto/service.ts";
import { judge, missingHealth } from "../cluster/health.ts";

const { Phase } = messages;
type Change = Parameters<typeof facts>[0];

const absent = (reason: Reason) => ({ available: false, reason, message: "m" });
const waits = { actors: [actorOf(RUN, 0, { state: "starting", pod: unschedulable })] };
const stopped: Change = {
  ...{ stage: "Suspended", learner: absent("Stopped") },
  observed: { actors: [], link: undefined },
};
const queued = (reason: "Queued" | "Evicted", status: TrainingRunStatus = {}): Change => {
  const finding: Finding = { reason, message: "m" };
  return {
    lifecycle: { stage: "Queued", learnerReplicas: 0, admission: { state: "waiting", finding } },
    learner: absent(reason),
    observed: { run: runOf({}, status), actors: [], link: undefined },
  };
};
/** The status before, of a run that has been reconciling for some seconds. */
const reconciling = (seconds: number) => ({
  observedGeneration: 1,
  conditions: [
    { type: "Reconciling", status: "True", reason: "Unschedulable", message: "m", lastTransitionTime: at(-seconds) },
  ] as NonNullable<TrainingRunStatus["conditions"]>,
});
const waitsFor = (seconds: number): Change => ({
  observed: { ...waits, run: runOf({ stopping: { iterations: 10 } }, reconciling(seconds)) },
});

const CASES: [what: string, status: TrainingRunStatus, flux: string, argo: string][] = [
  ["no controller has seen it", { observedGeneration: -1 }, "InProgress", "Progressing"],
  ["an older version was seen", { ...statusOf({}), observedGeneration: 0 }, "InProgress", "Progressing"],
  ["starting", statusOf({ learner: absent("LearnerStarting") }), "InProgress", "Progressing"],
  ["training", statusOf({}), "Current", "Healthy"],
  ["warming up", statusOf({ said: { phase: Phase.WARMING_UP } }), "Current", "Healthy"],
  ["evaluating", statusOf({ said: { phase: Phase.FINAL_EVALUATION } }), "Current", "Healthy"],
  ["waiting for a node", statusOf(waitsFor(STALLED_SECONDS - 1)), "InProgress", "Progressing"],
  ["waiting for a node too long", statusOf(waitsFor(STALLED_SECONDS)), "Failed", "Degraded"],
  [
    "invalid",
    statusOf({ stage: "Refused", learner: absent("InvalidConfiguration") }),
    ...(["Failed", "Degraded"] as const),
  ],
  [
    "suspending",
    statusOf({
      ...stopped,
      observed: { ...stopped.observed, leavingPod: podOf(RUN, "learner", { phase: "Running" }) },
    }),
    ...(["InProgress", "Progressing"] as const),
  ],
  ["suspended", statusOf(stopped), "Current", "Suspended"],
  ["queued", statusOf(queued("Queued", reconciling(9999))), "InProgress", "Suspended"],
  ["evicted", statusOf(queued("Evicted", { startTime: at(-9) })), "InProgress", "Suspended"],
  ["succeeded", statusOf({ stage: "Ending", said: { phase: Phase.SUCCEEDED } }), "Current", "Healthy"],
  ["failed", statusOf({ stage: "Ending", said: { phase: Phase.FAILED_RUN } }), "Failed", "Degraded"],
];

test("kstatus and Argo CD know each phase of a run", { skip: missingHealth() ?? false }, async () => {
  const objects = CASES.map(([, status]) => ({ ...RUN, status }));
  const judged = await judge(objects);
  assert.deepEqual(
    judged.map(({ kstatus, argo }, index) => [CASES[index]![0], kstatus.status, argo.status]),
    CASES.map(([what, , flux, argo]) => [what, flux, argo]),
  );
  for (const { argo } of judged) assert.ok(argo.message, "Argo CD shows a reason");
  const [deleted] = await judge([{ ...RUN, metadata: { ...RUN.metadata, deletionTimestamp: at(0) } }]);
  assert.equal(deleted!.kstatus.status, "Terminating");
});

test("A run is Stalled when it was blocked for long; an edit and progress begin anew", () => {
  const shown = (change: Change) => {
    const found = statusOf(change).conditions!.filter(({ type }) => ["Stalled", "Reconciling"].includes(type));
    return found.map(({ type, status, reason }) => `${type} ${status} ${reason}`).join();
  };
  assert.equal(shown({}), "");
  assert.equal(shown(waitsFor(STALLED_SECONDS - 1)), "Reconciling True Unschedulable");
  assert.equal(shown(waitsFor(STALLED_SECONDS)), "Stalled True Unschedulable");
  const long = statusOf(waitsFor(STALLED_SECONDS));
  const later = (generation: number, change: Change = { observed: waits }): Change => {
    const run = runOf({ stopping: { iterations: 10 } }, long);
    return { ...change, observed: { ...change.observed, run: { ...run, metadata: { ...run.metadata, generation } } } };
  };
  assert.equal(shown(later(1)), "Stalled True Unschedulable", "it stays");
  assert.equal(shown(later(2)), "Reconciling True Unschedulable");
  assert.equal(shown(later(1, { learner: absent("LearnerStarting") })), "Reconciling True LearnerStarting");
  const admittedFor = (seconds: number): TrainingRunStatus => {
    const { conditions, ...rest } = reconciling(9999);
    const admitted = { type: "Admitted", status: "True", reason: "Admitted", message: "m" } as const;
    return { ...rest, conditions: [...conditions, { ...admitted, lastTransitionTime: at(-seconds) }] };
  };
  const admitted = (seconds: number) => shown({ observed: { ...waits, run: runOf({}, admittedFor(seconds)) } });
  assert.equal(admitted(STALLED_SECONDS - 1), "Reconciling True Unschedulable", "the time in a queue does not count");
  assert.equal(admitted(STALLED_SECONDS), "Stalled True Unschedulable");
  assert.equal(stallSeconds(admittedFor(STALLED_SECONDS - 5), NOW_MS), 5);
  assert.equal(stallSeconds(reconciling(STALLED_SECONDS - 5), NOW_MS), 5);
  assert.equal(stallSeconds(long, NOW_MS), undefined);
});
