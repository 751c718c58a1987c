import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { messages } from "../../../proto/service.ts";
import type { Stage } from "../parts/lifecycle/lifecycle.ts";
import { actorOf, at, linkOf, NOW_MS, podOf, runOf } from "../run.fixture.ts";
import { CONDITION_TYPES, type ConditionType, findCondition, REASONS } from "./conditions.ts";
import { CONNECTED, type facts, RUN, SCALE, shown, statusOf, unschedulable } from "./status.fixture.ts";
import type { StatusFacts } from "./status.ts";

const { Phase } = messages;

test("A refusal of the API server is a condition, and makes a run unready only where the learner needs the object", () => {
  const finding = { reason: "Forbidden", message: "m" } as const;
  const ready = (refused: StatusFacts["refused"]) => {
    const status = statusOf({ refused });
    return ["ObjectsApplied", "LearnerAvailable", "Ready"].map((type) => shown(status, type as ConditionType));
  };
  assert.deepEqual(ready({ blocked: finding }), ["False Forbidden", "True Connected", "False Forbidden"]);
  assert.deepEqual(ready({ other: finding }), ["False Forbidden", "True Connected", "True Training"]);
});

test("After two iterations in a row that had nothing to learn from, a condition names the remedies", () => {
  const learning = (noSignalIterations: number | undefined, validFraction = 0) => {
    const line = { iteration: 3, lineage: 1, noSignalIterations, validFraction };
    return findCondition(statusOf({ said: { iterationJson: JSON.stringify(line) } }).conditions, "Learning");
  };
  assert.deepEqual([learning(undefined), learning(1)], [undefined, undefined]);
  const { status, reason, message } = learning(2)!;
  assert.deepEqual([status, reason], ["False", "NothingToLearn"]);
  const remedies = [
    "spec.warmStart",
    "prompts.answerPrefix",
    "failureRewards",
    "prompts.debugProbability",
    "easier task",
  ];
  for (const remedy of remedies) assert.ok(message!.includes(remedy), remedy);
  assert.match(learning(5, 1)!.message!, /^5 iterations in a row .*grader.rewardRange.*harder task/);
});

const away = { connected: false };

/** The pod of an actor whose DNS is blocked, after its end. */
const unresolved = podOf(RUN, "actor", {
  containerStatuses: [
    {
      ...{ name: "supervisor", image: "img" },
      state: {
        terminated: {
          exitCode: 1,
          message: `{"level":60,"msg":"the learner's name has not resolved for 60 s (Name resolution failed for target dns:quick-learner.team.svc:7443)"}`,
        },
      },
    },
  ],
});

describe("conditions", () => {
  const CASES: [
    what: string,
    change: Parameters<typeof facts>[0],
    expected: Partial<Record<(typeof CONDITION_TYPES)[number], string>>,
    phase?: string,
  ][] = [
    [
      "training",
      {},
      {
        Ready: "True Training",
        Succeeded: "Unknown InProgress",
        Failed: "False InProgress",
        Suspended: "False NotSuspended",
        LearnerAvailable: "True Connected",
        ActorsScaled: "True AsDesired",
        Progressing: "True Executing",
      },
      "Running",
    ],
    ["generating", { said: { phase: Phase.GENERATING } }, { Progressing: "True Generating" }],
    ["warming up", { said: { phase: Phase.WARMING_UP } }, { Progressing: "True WarmingUp" }, "WarmingUp"],
    ["evaluating", { said: { phase: Phase.FINAL_EVALUATION } }, { Progressing: "True Evaluating" }, "Evaluating"],
    [
      "evaluating, and told to stop",
      { stage: "Suspending", said: { phase: Phase.FINAL_EVALUATION } },
      { Suspended: "False Suspending" },
      "Running",
    ],
    [
      "nobody takes executions",
      { said: { blocked: "NoActors", message: "no actor is connected" } },
      { Ready: "False NoResults", Progressing: "False NoResults" },
    ],
    [
      "programs that run are no trouble",
      { said: { blocked: "Executing" } },
      { Ready: "True Training", Progressing: "True Executing" },
    ],
    [
      "the learner starts",
      { learner: { available: false, reason: "LearnerStarting", message: "m" }, observed: { link: undefined } },
      {
        Ready: "False LearnerStarting",
        LearnerAvailable: "False LearnerStarting",
        Progressing: "False LearnerStarting",
      },
      "Pending",
    ],
    [
      "the learner is blocked",
      { learner: { available: false, reason: "ImagePullFailed", message: "m" } },
      { Ready: "False ImagePullFailed", LearnerAvailable: "False ImagePullFailed" },
    ],
    [
      "refused",
      { stage: "Refused", learner: { available: false, reason: "InvalidConfiguration", message: "m" } },
      { Ready: "False InvalidConfiguration" },
      "Pending",
    ],
    [
      "actors wait",
      { observed: { actors: [actorOf(RUN, 0, { state: "starting", pod: unschedulable })] } },
      { Ready: "False Unschedulable", ActorsScaled: "False Unschedulable" },
    ],
    [
      "actors start",
      { observed: { actors: [actorOf(RUN, 0, { state: "starting" })] } },
      { Ready: "True Training", ActorsScaled: "False Scaling" },
    ],
    [
      "actors cannot be created",
      { actorsRefused: { reason: "QuotaExceeded", message: "m" } },
      { ActorsScaled: "False QuotaExceeded", Ready: "False QuotaExceeded" },
    ],
    [
      "actors fail",
      { scale: { ...SCALE, failures: 5 }, observed: { actors: [actorOf(RUN, 0, { state: "failed" })] } },
      { ActorsScaled: "False ActorsFailing" },
    ],
    [
      "an actor cannot resolve the learner's name",
      {
        observed: {
          actors: [
            actorOf(RUN, 0, { ...away, state: "failed", pod: unresolved }),
            actorOf(RUN, 1, { ...away, state: "starting" }),
          ],
        },
      },
      { ActorsScaled: "False NamesNotResolved", Ready: "False NamesNotResolved" },
    ],
    [
      "another actor can",
      {
        observed: {
          actors: [actorOf(RUN, 0, { state: "failed", pod: unresolved }), actorOf(RUN, 1, { connected: true })],
        },
      },
      { Ready: "True Training" },
    ],
    ["no work", { scale: { ...SCALE, desired: 0 }, observed: { actors: [] } }, { ActorsScaled: "True NoWork" }],
    [
      "what there is to do is not known",
      { scale: { ...SCALE, desired: undefined } },
      { ActorsScaled: "Unknown LearnerUnavailable" },
    ],
    ["suspending", { stage: "Suspending" }, { Suspended: "False Suspending" }],
    [
      "suspended",
      {
        stage: "Suspended",
        learner: { available: false, reason: "Stopped", message: "m" },
        observed: { actors: [], link: undefined },
      },
      { Ready: "True Suspended", Suspended: "True Suspended", ActorsScaled: "True NoWork" },
      "Suspended",
    ],
    [
      "told to suspend, and the learner's pod is still there",
      {
        stage: "Suspended",
        learner: { available: false, reason: "Stopped", message: "m" },
        observed: {
          ...{ actors: [], link: undefined, run: runOf({ suspend: true }) },
          leavingPod: podOf(RUN, "learner", { phase: "Running" }),
        },
      },
      { Ready: "False Suspending", Suspended: "False Suspending" },
      "Pending",
    ],
    [
      "resumed, and the stopped learner's pod is still there",
      {
        stage: "Suspended",
        learner: { available: false, reason: "Stopped", message: "m" },
        observed: { actors: [], link: undefined, learnerPod: podOf(RUN, "learner", { phase: "Running" }) },
      },
      { Ready: "False Resumed", Suspended: "False Resumed" },
      "Pending",
    ],
    [
      "suspended, and a pod that has ended is still listed",
      {
        stage: "Suspended",
        learner: { available: false, reason: "Stopped", message: "m" },
        observed: { actors: [], link: undefined, learnerPod: podOf(RUN, "learner", { phase: "Failed" }) },
      },
      { Suspended: "True Suspended" },
      "Suspended",
    ],
    [
      "succeeded",
      { stage: "Ending", said: { phase: Phase.SUCCEEDED, message: "done" } },
      {
        Ready: "True Finished",
        Succeeded: "True Completed",
        Failed: "False Completed",
        Progressing: "False Finished",
      },
      "Succeeded",
    ],
    [
      "failed",
      { stage: "Ending", said: { phase: Phase.FAILED_RUN, message: "no" } },
      { Succeeded: "False RunFailed", Failed: "True RunFailed" },
      "Failed",
    ],
    [
      "failed too often",
      {
        stage: "Ending",
        observed: {
          link: undefined,
          run: runOf({ failurePolicy: { retries: 3 } }, { failures: { count: 4, class: "Resource" } }),
        },
      },
      { Succeeded: "False RunFailed", Failed: "True Resource", Ready: "False Finished" },
      "Failed",
    ],
  ];
  for (const [what, change, expected, phase] of CASES)
    test(what, () => {
      const status = statusOf(change);
      const types = status.conditions!.map(({ type }) => type as ConditionType);
      assert.deepEqual(
        types.filter((type) => type !== "Stalled" && type !== "Reconciling"),
        CONDITION_TYPES,
      );
      for (const [type, wanted] of Object.entries(expected)) assert.equal(shown(status, type as never), wanted, type);
      if (phase) assert.equal(status.phase, phase);
      for (const { reason } of status.conditions!) assert.ok(reason in REASONS, `${reason} is in the table`);
    });

  test("A run in a queue has the condition Admitted", () => {
    const of = (stage: Stage, reason: "Queued" | "Evicted" | "Admitted", status = {}) => {
      const state = reason === "Admitted" ? ("admitted" as const) : ("waiting" as const);
      const finding = { reason, message: "m" };
      const lifecycle = { stage, learnerReplicas: 0 as const, admission: { state, finding } };
      const learner = stage === "Queued" ? { available: false, ...finding } : CONNECTED;
      return statusOf({ lifecycle, learner, observed: { run: runOf({}, status), actors: [], link: undefined } });
    };
    const queued = of("Queued", "Queued");
    assert.deepEqual(
      ["Ready", "Suspended", "LearnerAvailable", "ActorsScaled", "Admitted"].map((type) =>
        shown(queued, type as never),
      ),
      ["False Queued", "False NotSuspended", "False Queued", "True NoWork", "False Queued"],
    );
    assert.equal(queued.phase, "Pending");
    const evicted = of("Queued", "Evicted", { startTime: at(-9) });
    assert.deepEqual([shown(evicted, "Ready"), shown(evicted, "Suspended")], ["False Evicted", "True Evicted"]);
    assert.equal(evicted.phase, "Suspended");
    const again = of("Running", "Admitted", evicted);
    assert.deepEqual([shown(again, "Admitted"), shown(again, "Suspended")], ["True Admitted", "False Resumed"]);
  });

  test("A resumed run has the reason Resumed", () => {
    const before = statusOf({ stage: "Suspended", observed: { link: undefined } });
    const run = runOf({}, before);
    assert.equal(shown(statusOf({ observed: { run } }), "Suspended"), "False Resumed");
    assert.equal(
      shown(statusOf({ observed: { run: runOf({}, statusOf({ observed: { run } })) } }), "Suspended"),
      "False Resumed",
    );
  });

  test("Progressing says since when no actor is connected and why; nonsense of a learner is left out", () => {
    const said = { blocked: "NoActors", executions: { queued: 1, running: 0 } };
    const message = (blockedSinceUnixMs: number, change: Parameters<typeof facts>[0] = {}) =>
      findCondition(statusOf({ said: { ...said, blockedSinceUnixMs }, ...change }).conditions, "Progressing")!.message;
    const actors = [actorOf(RUN, 0, { state: "starting", pod: unschedulable })];
    const link = linkOf({ phase: Phase.EXECUTING, ...said, blockedSinceUnixMs: NOW_MS });
    assert.match(
      message(NOW_MS, { observed: { actors, link } }),
      /^no actor is connected to the learner since 2026-01-01T00:00:00Z: 1 execution is queued; actors wait: .*no memory/,
    );
    assert.match(message(NOW_MS, { scale: { ...SCALE, desired: 0 } }), /; no actor is requested \(spec\.actors\)$/);
    for (const nonsense of [0, 2 ** 60])
      assert.match(message(nonsense), /^no actor is connected to the learner: 1 execution is queued; see condition/);
  });

  test("A failed run that is suspended is not failed any more", () => {
    const failing = runOf({ failurePolicy: { retries: 3 } }, { failures: { count: 4, class: "Resource" } });
    const ended = statusOf({ stage: "Ending", observed: { run: failing, link: undefined } });
    const notification = { state: "Delivered", attempts: 1 } as const;
    const stays = statusOf({ stage: "Ended", notification, observed: { run: runOf({}, ended), link: undefined } });
    assert.deepEqual(
      [shown(stays, "Failed"), shown(stays, "Succeeded"), stays.completionTime, stays.notification],
      ["True Resource", "False RunFailed", ended.completionTime, notification],
    );
    const run = runOf({ suspend: true }, stays);
    const suspended = statusOf({ stage: "Suspended", observed: { run, link: undefined, actors: [] } });
    assert.deepEqual(
      [shown(suspended, "Failed"), shown(suspended, "Succeeded"), shown(suspended, "Suspended"), suspended.phase],
      ["False InProgress", "Unknown InProgress", "True Suspended", "Suspended"],
    );
    assert.deepEqual(
      [suspended.completionTime, suspended.notification, suspended.failures?.count],
      [undefined, undefined, 0],
    );
  });

  test("A final phase stays, whatever the learner reports later", () => {
    const run = runOf({}, statusOf({ stage: "Ending", said: { phase: Phase.SUCCEEDED, message: "done" } }));
    const link = linkOf({ phase: Phase.GENERATING });
    const later = statusOf({ stage: "Ended", observed: { run, link }, nowMs: NOW_MS + 60_000 });
    assert.equal(shown(later, "Succeeded"), "True Completed");
    assert.equal(later.phase, "Succeeded");
    assert.equal(later.completionTime, run.status!.completionTime);
  });
});
