import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { withRuntime } from "../../../../crds/runtime.ts";
import { messages } from "../../../../proto/service.ts";
import type { Observed } from "../../observe.ts";
import { deploymentOf, linkOf, NOW_MS, observedOf, podOf, runOf } from "../../run.fixture.ts";
import type { Admission } from "../admission/queue.ts";
import { lastWords } from "../learner/learner-failures.ts";
import { type LifecyclePlan, planLifecycle, type Suspension } from "./lifecycle.ts";

const { Phase } = messages;
const RUN = runOf();
const conditions = (type: string, status: string, reason: string, observedGeneration = 1) => ({
  conditions: [{ type, status, reason, message: "m", lastTransitionTime: "", observedGeneration }],
});
const exited = (exitCode: number) => ({
  containerStatuses: [{ name: "learner", state: { terminated: { exitCode, message: "no such task" } } }],
});
const suspension = (done: boolean): Suspension => ({ startedMs: NOW_MS, deadlineMs: NOW_MS, done });
const init = (type?: string) =>
  ({ metadata: { name: "quick-init" }, status: { conditions: type ? [{ type, status: "True" }] : [] } }) as never;

const CUDA = runOf({ learner: { device: "CUDA" } });
const MIG = { limits: { "nvidia.com/mig-1g.10gb": 1 } };

const SOURCE = { model: { source: { huggingFace: { repo: "a/b" } } } };

describe("planLifecycle", () => {
  const CASES: [
    what: string,
    observed: Partial<Observed>,
    stage: LifecyclePlan["stage"],
    replicas: 0 | 1,
    suspension?: Suspension,
  ][] = [
    ["a new run", {}, "Running", 1],
    ["a run under way", { deployment: deploymentOf(1) }, "Running", 1],
    [
      "the end is written down before the learner goes",
      { deployment: deploymentOf(1), link: linkOf({ phase: Phase.SUCCEEDED }) },
      "Ending",
      1,
    ],
    ["a failure likewise", { deployment: deploymentOf(1), link: linkOf({ phase: Phase.FAILED_RUN }) }, "Ending", 1],
    [
      "succeeded",
      { run: runOf({}, conditions("Succeeded", "True", "Completed")), deployment: deploymentOf(1) },
      "Ended",
      0,
    ],
    [
      "failed",
      { run: runOf({}, conditions("Succeeded", "False", "RunFailed")), deployment: deploymentOf(1) },
      "Ended",
      0,
    ],
    [
      "too many failures: written down before the learner goes",
      {
        run: runOf({ failurePolicy: { retries: 0 } }),
        deployment: deploymentOf(1),
        learnerPod: podOf(RUN, "learner", exited(74)),
      },
      "Ending",
      1,
    ],
    [
      "as many failures as the run survives",
      {
        run: runOf({ failurePolicy: { retries: 1 } }),
        deployment: deploymentOf(1),
        learnerPod: podOf(RUN, "learner", exited(74)),
      },
      "Running",
      1,
    ],
    [
      "a full volume is no failure",
      {
        run: runOf({ failurePolicy: { retries: 0 } }),
        deployment: deploymentOf(1),
        learnerPod: podOf(RUN, "learner", exited(73)),
      },
      "Running",
      1,
    ],
    [
      "failed, then suspended",
      { run: runOf({ suspend: true }, conditions("Succeeded", "False", "RunFailed")), deployment: deploymentOf(0) },
      "Suspended",
      0,
    ],
    [
      "succeeded, then suspended",
      { run: runOf({ suspend: true }, conditions("Succeeded", "True", "Completed")), deployment: deploymentOf(0) },
      "Ended",
      0,
    ],
    [
      "suspended while a learner of 0.2 says that the run has failed",
      { run: runOf({ suspend: true }), deployment: deploymentOf(1), link: linkOf({ phase: Phase.FAILED_RUN }) },
      "Suspending",
      1,
    ],
    ["suspended from the start", { run: runOf({ suspend: true }) }, "Suspended", 0],
    ["told to suspend", { run: runOf({ suspend: true }), deployment: deploymentOf(1) }, "Suspending", 1],
    [
      "the checkpoint is there",
      { run: runOf({ suspend: true }), deployment: deploymentOf(1) },
      "Suspended",
      0,
      suspension(true),
    ],
    [
      "resumed while the Deployment still has the learner that stopped",
      { deployment: deploymentOf(0), learnerPod: podOf(RUN, "learner", { phase: "Running" }) },
      "Suspended",
      0,
      suspension(true),
    ],
    [
      "resumed when that learner's pod was told to end",
      { deployment: deploymentOf(0), leavingPod: podOf(RUN, "learner", { phase: "Running" }) },
      "Running",
      1,
      suspension(true),
    ],
    [
      "resumed where an evicted pod lies about",
      { deployment: deploymentOf(0), learnerPod: podOf(RUN, "learner", { phase: "Failed" }) },
      "Running",
      1,
      suspension(true),
    ],
    [
      "the checkpoint is not there yet",
      { run: runOf({ suspend: true }), deployment: deploymentOf(1) },
      "Suspending",
      1,
      suspension(false),
    ],
    ["resumed before the checkpoint was there", { deployment: deploymentOf(1) }, "Suspending", 1, suspension(false)],
    ["resumed before the learner went", { deployment: deploymentOf(1) }, "Suspended", 0, suspension(true)],
    ["resumed", { deployment: deploymentOf(0) }, "Running", 1],
    [
      "refused by the learner",
      { deployment: deploymentOf(1), learnerPod: podOf(RUN, "learner", exited(2)) },
      "Refused",
      1,
    ],
    [
      "refused, written down",
      { run: runOf({}, conditions("LearnerAvailable", "False", "InvalidConfiguration")), deployment: deploymentOf(1) },
      "Refused",
      0,
    ],
    [
      "refused, then edited",
      {
        run: runOf({}, conditions("LearnerAvailable", "False", "InvalidConfiguration", 1), { generation: 2 }),
        deployment: deploymentOf(0),
      },
      "Running",
      1,
    ],
    [
      "refused an earlier spec",
      { deployment: deploymentOf(1, "new"), learnerPod: podOf(RUN, "learner", exited(2), "old") },
      "Running",
      1,
    ],
    [
      "a crash is no refusal",
      { deployment: deploymentOf(1), learnerPod: podOf(RUN, "learner", exited(1)) },
      "Running",
      1,
    ],
    ["source: the model first", { run: runOf(SOURCE) }, "Initialising", 0],
    ["source: still fetching", { run: runOf(SOURCE), model: init() }, "Initialising", 0],
    ["source: fetched", { run: runOf(SOURCE), model: init("Complete") }, "Running", 1],
    ["source: under way, the Job has been cleaned up", { run: runOf(SOURCE, { startTime: "x" }) }, "Running", 1],
    [
      "source: fetched, and a checkpoint to copy",
      { run: runOf({ ...SOURCE, initFrom: { run: "other" } }), model: init("Complete") },
      "Initialising",
      0,
    ],
    ["initFrom: the copy first", { run: runOf({ initFrom: { run: "other" } }) }, "Initialising", 0],
    ["initFrom: still copying", { run: runOf({ initFrom: { run: "other" } }), init: init() }, "Initialising", 0],
    ["initFrom: copied", { run: runOf({ initFrom: { run: "other" } }), init: init("Complete") }, "Running", 1],
    [
      "initFrom: under way, the Job has been cleaned up",
      { run: runOf({ initFrom: { run: "other" } }, { startTime: "x" }) },
      "Running",
      1,
    ],
    ["a folder of one machine", { run: runOf({ initFrom: { path: "/somewhere" } }) }, "Refused", 0],
    ["CUDA, and no GPU from the runtime", { run: CUDA }, "Refused", 0],
    [
      "CUDA, with the runtime's part of a GPU",
      { run: withRuntime(CUDA, { learner: { resources: MIG } }) },
      "Running",
      1,
    ],
    ["CUDA, under way when the runtime's GPU goes", { run: CUDA, deployment: deploymentOf(1) }, "Running", 1],
  ];
  for (const [what, change, stage, learnerReplicas, known] of CASES)
    test(`${what}: ${stage}`, () => {
      const { refusal: _, ...plan } = planLifecycle(observedOf(RUN, change), known, "h");
      assert.deepEqual(plan, { stage, learnerReplicas });
    });

  test("The finding says what was refused, and the remedy", () => {
    const { refusal } = planLifecycle(
      observedOf(RUN, { deployment: deploymentOf(1), learnerPod: podOf(RUN, "learner", exited(2)) }),
      undefined,
      "h",
    );
    assert.match(refusal!.message, /no such task; change the spec/);
  });
});

describe("planLifecycle: a queue", () => {
  const waiting: Admission = { state: "waiting", finding: { reason: "Queued", message: "m" } };
  const admitted: Admission = { state: "admitted", finding: { reason: "Admitted", message: "m" } };
  const ended = runOf({}, conditions("Succeeded", "True", "Completed"));
  const CASES: [
    what: string,
    observed: Partial<Observed>,
    admission: Admission,
    stage: LifecyclePlan["stage"],
    replicas: 0 | 1,
    suspension?: Suspension,
  ][] = [
    ["not admitted", {}, waiting, "Queued", 0],
    ["admitted", {}, admitted, "Running", 1],
    ["not admitted, and a checkpoint to copy", { run: runOf({ initFrom: { run: "other" } }) }, waiting, "Queued", 0],
    ["evicted", { deployment: deploymentOf(1) }, waiting, "Suspending", 1],
    ["evicted, the checkpoint is there", { deployment: deploymentOf(1) }, waiting, "Queued", 0, suspension(true)],
    ["evicted, the learner is gone", { deployment: deploymentOf(0) }, waiting, "Queued", 0],
    [
      "admitted again before the learner went",
      { deployment: deploymentOf(1) },
      admitted,
      "Suspended",
      0,
      suspension(true),
    ],
    ["suspended by a person", { run: runOf({ suspend: true }) }, waiting, "Suspended", 0],
    ["over", { run: ended, deployment: deploymentOf(1) }, waiting, "Ended", 0],
    ["cannot be", { run: runOf({ initFrom: { path: "/somewhere" } }) }, waiting, "Refused", 0],
  ];
  for (const [what, change, admission, stage, learnerReplicas, known] of CASES)
    test(`${what}: ${stage}`, () => {
      const plan = planLifecycle(observedOf(RUN, change), known, "h", admission);
      assert.deepEqual([plan.stage, plan.learnerReplicas, plan.admission], [stage, learnerReplicas, admission]);
    });
});

describe("lastWords", () => {
  const CASES: [log: string | undefined, expected: string][] = [
    ["one line", "one line"],
    ["first\nlast\n", "last"],
    ['{"level":30,"msg":"json"}\nfor people\n{"level":30}', "for people"],
    ['{"level":60,"msg":"json alone"}', "json alone"],
    ['{"cut off', '{"cut off'],
    ['{"msg":5}', '{"msg":5}'],
    ["{}", "{}"],
    ["", "it left no message; see its log"],
    [undefined, "it left no message; see its log"],
  ];
  for (const [log, expected] of CASES)
    test(JSON.stringify(log) ?? "nothing", () => assert.equal(lastWords(log), expected));
});
