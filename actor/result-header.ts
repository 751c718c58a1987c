/** A result as it travels to the learner. */
import { type longrun, messages } from "../proto/service.ts";
import type { ExecutionResult } from "./execution.ts";
import type { Attempt } from "./lease.ts";
import type { PackedSubmission } from "./submission.ts";

const OUTCOMES = {
  completed: messages.Outcome.COMPLETED,
  failed: messages.Outcome.FAILED,
  timedOut: messages.Outcome.TIMED_OUT,
  outOfMemory: messages.Outcome.OUT_OF_MEMORY,
  outputLimit: messages.Outcome.OUTPUT_LIMIT,
  lost: messages.Outcome.LOST,
} as const;

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
    outcome: OUTCOMES[outcome],
    markers: markers.map(({ name, value, atSeconds }) => ({ name, value, atSeconds })),
    peakMemoryBytes: Math.round(rest.peakMemoryBytes),
    submission: submission?.info,
    isolationLevel,
  };
}
