import assert from "node:assert/strict";
import { test } from "node:test";
import type { TrainingRunStatus } from "../../../crds/trainingrun.ts";
import { evaluationAnnouncements } from "./evaluation-status.ts";

const BEFORE = { iteration: 0, samples: 48, validFraction: 0.7625, best: 308.2412, mean: 1207.31 };
const AFTER = { iteration: 12, samples: 48, validFraction: 1, best: 0.16, bestMedal: "gold" as const };

const cases: [name: string, now: TrainingRunStatus, before: TrainingRunStatus, told: string[]][] = [
  [
    "it begins, before training",
    { phase: "Evaluating" },
    { phase: "Pending" },
    ["Evaluating: the policy is evaluated before training (spec.evaluation)"],
  ],
  [
    "and is over",
    { phase: "Running", evaluation: { before: BEFORE } },
    { phase: "Evaluating" },
    ["Evaluated: before training: 76 % of 48 programs are valid, best score 308.2, mean 1207"],
  ],
  [
    "it begins, after training",
    { phase: "Evaluating", iteration: 12, evaluation: { before: BEFORE } },
    { phase: "Running", evaluation: { before: BEFORE } },
    ["Evaluating: the policy is evaluated after iteration 12 (spec.evaluation)"],
  ],
  [
    "and is over with the run",
    { phase: "Succeeded", iteration: 12, evaluation: { before: BEFORE, after: AFTER } },
    { phase: "Evaluating", iteration: 12, evaluation: { before: BEFORE } },
    ["Evaluated: after training: 100 % of 48 programs are valid, best score 0.16 (gold medal)"],
  ],
  [
    "of several tasks each is told once",
    {
      phase: "Evaluating",
      tasks: [
        { name: "a", evaluation: { before: BEFORE } },
        { name: "b", evaluation: { before: AFTER } },
      ],
    },
    { phase: "Evaluating", tasks: [{ name: "a", evaluation: { before: BEFORE } }] },
    ["Evaluated: before training, b: 100 % of 48 programs are valid, best score 0.16 (gold medal)"],
  ],
  ["it goes on", { phase: "Evaluating" }, { phase: "Evaluating" }, []],
  [
    "nothing new",
    { phase: "Running", evaluation: { before: BEFORE } },
    { phase: "Running", evaluation: { before: BEFORE } },
    [],
  ],
];
for (const [name, now, before, told] of cases)
  test(`Events report the evaluations: ${name}`, () => {
    assert.deepEqual(
      evaluationAnnouncements(now, before).map(({ reason, message }) => `${reason}: ${message}`),
      told,
    );
  });
