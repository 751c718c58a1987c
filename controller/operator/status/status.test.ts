import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { labelsOf } from "../desired/names.ts";
import { actorOf, at, NOW_MS, runOf } from "../run.fixture.ts";
import { facts, RUN, SCALE, statusFrom, statusOf, unschedulable } from "./status.fixture.ts";

const LINE = {
  iteration: 4,
  lineage: 2,
  elapsedSeconds: 400,
  bestScoreSoFar: 812.3456,
  meanScore: 900,
  validFraction: 0.5,
  ...{ meanDurationSeconds: 2, engineSeconds: { generating: 30, updating: 20, idleActors: 50 } },
};

describe("The fields of the status", () => {
  const status = statusOf({
    said: {
      iterationJson: JSON.stringify(LINE),
      executions: { queued: 3, running: 2, completed: 40, lost: 1 },
      checkpoint: { iteration: 4, digest: "d", path: "p" },
      evaluationJson: '{"protocol":"Equal","before":{"iteration":0,"samples":8,"validFraction":0.5,"best":null}}',
    },
  });

  test("They have the result of the evaluations", () =>
    assert.deepEqual(status.evaluation, {
      protocol: "Equal",
      before: { iteration: 0, samples: 8, validFraction: 0.5 },
    }));

  test("They come from the newest line of metrics", () => {
    const {
      iteration,
      policyVersion,
      score,
      meanDurationSeconds,
      engineSeconds,
      percent,
      estimatedCompletion,
      executions,
      checkpoint,
    } = status;
    assert.deepEqual(engineSeconds, LINE.engineSeconds);
    assert.deepEqual(
      { iteration, policyVersion, score, meanDurationSeconds, percent, estimatedCompletion, executions, checkpoint },
      {
        ...{ iteration: 4, policyVersion: "2-4", meanDurationSeconds: 2, percent: 40, estimatedCompletion: at(600) },
        score: { best: 812.3456, mean: 900, validFraction: 0.5 },
        executions: { queued: 3, running: 2, completed: 40, lost: 1 },
        checkpoint: { iteration: 4, digest: "d", path: "p" },
      },
    );
  });

  test("kubectl get prints short texts", () =>
    assert.deepEqual(status.display, { iteration: "4/10", best: "812.3", mean: "900", valid: "50%", actors: "1/1" }));

  test("They stay the same while nothing happens", () => {
    const run = { ...RUN, status };
    const same = facts({
      said: {
        iterationJson: JSON.stringify(LINE),
        executions: { queued: 3, running: 2, completed: 40, lost: 1 },
        checkpoint: { iteration: 4, digest: "d", path: "p" },
      },
    });
    const later = { ...same, observed: { ...same.observed, run }, nowMs: NOW_MS + 100_000 };
    assert.deepEqual(statusFrom(later), status);
  });

  test("They stay when the learner is away", () => {
    const run = { ...RUN, status };
    const away = statusOf({
      observed: { run, link: undefined },
      learner: { available: false, reason: "LearnerStarting", message: "m" },
    });
    for (const field of [
      "iteration",
      "score",
      "engineSeconds",
      "executions",
      "checkpoint",
      "evaluation",
      "percent",
      "startTime",
    ] as const)
      assert.deepEqual(away[field], status[field], field);
  });

  test("They count actors", () => {
    const run = runOf({}, { actors: { desired: 3, lastScaleTime: at(-50) } });
    const actors = [
      actorOf(RUN, 0, { executions: 1 }),
      actorOf(RUN, 1),
      actorOf(RUN, 2, { state: "starting", connected: false, pod: unschedulable }),
      actorOf(RUN, 3, { state: "succeeded" }),
    ];
    const of = (desired: number) => statusOf({ observed: { run, actors }, scale: { ...SCALE, desired } }).actors!;
    const { waitingReason, ...counts } = of(3);
    assert.match(waitingReason!, /no memory/);
    assert.deepEqual(counts, {
      desired: 3,
      running: 2,
      idle: 1,
      waiting: 1,
      replicas: 3,
      selector: "app.kubernetes.io/component=actor,longrun.dev/run=quick",
      lastScaleTime: at(-50),
    });
    assert.equal(of(4).lastScaleTime, at(0));
    for (const [label, value] of counts.selector!.split(",").map((it) => it.split("=")))
      assert.equal(labelsOf(RUN, "actor")[label!], value);
  });
});
