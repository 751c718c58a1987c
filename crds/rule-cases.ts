/**
 * The table of cases for the rules of the CRD: a change of a manifest that a rule refuses, and the nearest one that it accepts.
 * `rules.test.ts` evaluates the rules of the CRD here, `api-server.test.ts` on a real API server.
 */

import type { RuleCase } from "./rule-case.ts";
import { ALGORITHM_CASES } from "./rule-cases-algorithm.ts";
import { CHANGE_CASES } from "./rule-cases-change.ts";
import { MODEL_CASES } from "./rule-cases-model.ts";
import { NAME_CASES } from "./rule-cases-names.ts";
import { TASK_CASES } from "./rule-cases-tasks.ts";
import { WORKLOAD_CASES } from "./rule-cases-workloads.ts";
/** The valid manifest that every case changes. */
export const BASE = `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata:
  name: test
spec:
  tasks:
    - name: diamonds
  model:
    policy: quickstart
`;

export const RULE_CASES: RuleCase[] = [
  ...NAME_CASES,
  ...TASK_CASES,
  ...MODEL_CASES,
  ...ALGORITHM_CASES,
  ...WORKLOAD_CASES,
  ...CHANGE_CASES,
];
