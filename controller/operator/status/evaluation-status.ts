/** Events about the evaluations before and after training. Pure. */
import type { EvaluatedPolicyStatus, EvaluationStatus, TrainingRunStatus } from "../../../crds/trainingrun.ts";
import { significant } from "../../numbers.ts";

type Announcement = { reason: "Evaluating" | "Evaluated"; message: string };

/** Returns the event messages for a change. */
export function evaluationAnnouncements(now: TrainingRunStatus, before: TrainingRunStatus): Announcement[] {
  const told: Announcement[] = [];
  const known = evaluationsOf(before);
  for (const [task, evaluation] of evaluationsOf(now))
    for (const when of ["before", "after"] as const) {
      const policy = evaluation[when];
      if (!policy || policy.iteration === known.get(task)?.[when]?.iteration) continue;
      const label = task === "" ? "" : `, ${task}`;
      told.push({ reason: "Evaluated", message: `${when} training${label}: ${describe(policy)}` });
    }
  if (now.phase === "Evaluating" && before.phase !== "Evaluating") {
    const iteration = now.iteration ?? 0;
    const wasEvaluated = [...evaluationsOf(now).values()].some((evaluation) => evaluation.before);
    const when = iteration === 0 && !wasEvaluated ? "before training" : `after iteration ${iteration}`;
    told.push({ reason: "Evaluating", message: `the policy is evaluated ${when} (spec.evaluation)` });
  }
  return told;
}

/** Returns evaluations by task name; the name is empty if the run has one task. */
function evaluationsOf({ evaluation, tasks = [] }: TrainingRunStatus): Map<string, EvaluationStatus> {
  if (evaluation) return new Map([["", evaluation]]);
  return new Map(tasks.flatMap((task) => (task.evaluation ? [[task.name, task.evaluation]] : [])));
}

function describe({ samples, validFraction, best, mean, bestMedal }: EvaluatedPolicyStatus): string {
  return [
    `${Math.round((validFraction ?? 0) * 100)} % of ${samples} programs are valid`,
    ...(best === undefined ? [] : [`best score ${significant(best)}${bestMedal ? ` (${bestMedal} medal)` : ""}`]),
    ...(mean === undefined ? [] : [`mean ${significant(mean)}`]),
  ].join(", ");
}
