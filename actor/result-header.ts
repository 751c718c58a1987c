/** Converts a result to the message for the learner. */
import { type longrun, OUTCOME_CODES } from "../proto/service.ts";
import type { ExecutionResult } from "./execution.ts";
import type { Attempt } from "./lease.ts";
import type { PackedSubmission } from "./submission.ts";

/** @param submission absent: the program left none, or it was refused */
export function headerOf(
  attempt: Attempt,
  result: ExecutionResult,
  submission: PackedSubmission | undefined,
  isolationLevel: string,
): longrun.v1alpha1.ResultHeader.$Properties {
  const { outcome, submission: _, markers, ...rest } = result;
  return {
    ...rest,
    attempt,
    outcome: OUTCOME_CODES[outcome],
    markers: markers.map(({ name, value, atSeconds }) => ({ name, value, atSeconds })),
    peakMemoryBytes: Math.round(rest.peakMemoryBytes),
    submission: submission?.info,
    isolationLevel,
  };
}
