/** What is told in events of the evaluations before and after training. Pure. */
import type { EvaluatedPolicyStatus, TrainingRunStatus } from "../crds/trainingrun.ts";
import { significant } from "./numbers.ts";

export interface Announcement {
  type: "Normal";
  reason: "Evaluating" | "Evaluated";
  message: string;
}

/** @returns what of the change is worth an event */
export function evaluationAnnouncements(now: TrainingRunStatus, before: TrainingRunStatus): Announcement[] {
  const told: Announcement[] = [];
  for (const when of ["before", "after"] as const) {
    const policy = now.evaluation?.[when];
    if (policy && policy.iteration !== before.evaluation?.[when]?.iteration)
      told.push({ type: "Normal", reason: "Evaluated", message: `${when} training: ${describe(policy)}` });
  }
  if (now.phase === "Evaluating" && before.phase !== "Evaluating") {
    const iteration = now.iteration ?? 0;
    const when = iteration === 0 && !now.evaluation?.before ? "before training" : `after iteration ${iteration}`;
    told.push({ type: "Normal", reason: "Evaluating", message: `the policy is evaluated ${when} (spec.evaluation)` });
  }
  return told;
}

function describe({ samples, validFraction, best, mean, bestMedal }: EvaluatedPolicyStatus): string {
  return [
    `${Math.round((validFraction ?? 0) * 100)} % of ${samples} programs are valid`,
    ...(best === undefined ? [] : [`best score ${significant(best)}${bestMedal ? ` (${bestMedal} medal)` : ""}`]),
    ...(mean === undefined ? [] : [`mean ${significant(mean)}`]),
  ].join(", ");
}
