/** The programs of the other parts, which this one starts as processes and never imports. */
import { fileURLToPath } from "node:url";

const file = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

export const PARTS = {
  learner: file("learner/main.ts"),
  prepareTask: file("learner/tasks/prepare.ts"),
  instrument: file("learner/rollout/instrument-command.ts"),
  grade: file("learner/commands/grade-command.ts"),
  validate: file("learner/commands/validate-command.ts"),
  samples: file("learner/commands/samples-command.ts"),
  task: file("learner/commands/task-command.ts"),
  report: file("learner/report/main.ts"),
  compare: file("learner/report/compare-command.ts"),
  evaluationTable: file("learner/commands/table-command.ts"),
  pretrain: file("learner/commands/pretrain-command.ts"),
  sft: file("learner/commands/sft-command.ts"),
  logProbs: file("learner/commands/logprobs-command.ts"),
  generate: file("learner/commands/generate-command.ts"),
  model: file("learner/commands/model-command.ts"),
  results: file("learner/commands/results-command.ts"),
  serve: file("learner/commands/serve-command.ts"),
  actor: file("actor/main.ts"),
  execute: file("actor/exec.ts"),
  pythonEnvironment: file("actor/python-env.ts"),
};

/** Paths of the parts' programs. Tests pass others. */
export type Parts = typeof PARTS;
