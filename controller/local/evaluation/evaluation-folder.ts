/** The folder of an evaluation: like a run's, plus `policies.json`. */
import { createWorkFolder, openWorkFolder, type Work } from "../work-folder.ts";
import type { EvaluationPlan } from "./evaluation-plan.ts";

const workOf = ({ run, policies }: EvaluationPlan): Work => ({
  run,
  file: "policies.json",
  settings: policies,
  what: "an evaluation",
  fields: ["seed", "tasks", "model", "prompts", "evaluation"],
});

export const createEvaluationFolder = (directory: string, plan: EvaluationPlan): void =>
  createWorkFolder(directory, workOf(plan));

/** Like `openWorkFolder`. */
export const openEvaluationFolder = (directory: string, plan: EvaluationPlan): "new" | "begun" | "done" =>
  openWorkFolder(directory, workOf(plan));
