/** How far a solution without a valid submission came: the steps of `tasks[].failureRewards`, the earliest first. */
import type { FailureRewards } from "../../crds/trainingrun.ts";
import type { Outcome } from "../../proto/execution.ts";
import type { Sample } from "../store/types.ts";

export type FailureStep = keyof FailureRewards;

export const FAILURE_STEPS: readonly FailureStep[] = [
  ...(["noCodeBlock", "unclosedCodeBlock", "syntaxError", "importError"] as const),
  ...(["failed", "noSubmission", "invalidSubmission"] as const),
];

interface FailureFacts {
  /** Why the solution was never executed. Absent: it was executed. */
  fault?: string | undefined;
  outcome?: Outcome | undefined;
  exitStatus?: number | undefined;
  /** The actor's words on the outcome; they begin with the type of an uncaught exception. */
  detail?: string | undefined;
  /** Markers that the program printed. */
  seenMarkers: readonly string[];
  hasSubmission: boolean;
}

/** Returns the last step that a solution without a valid submission reached. */
export function failureStepOf(facts: FailureFacts): FailureStep {
  const { fault, outcome, exitStatus, detail = "", seenMarkers, hasSubmission } = facts;
  if (fault === "noCodeBlock" || fault === "emptyCodeBlock") return "noCodeBlock";
  if (fault !== undefined) return fault === "notExecuted" ? "failed" : "unclosedCodeBlock";
  if (outcome === "completed" && exitStatus === 0) return hasSubmission ? "invalidSubmission" : "noSubmission";
  if (outcome !== "failed") return "failed";
  const exception = /^\w+/.exec(detail)?.[0] ?? "";
  // A program that has printed a marker was parsed, whatever it passes to `exec`.
  if (["SyntaxError", "IndentationError", "TabError"].includes(exception) && seenMarkers.length === 0)
    return "syntaxError";
  return ["ImportError", "ModuleNotFoundError"].includes(exception) ? "importError" : "failed";
}

/** Returns the step of a graded sample; undefined if its submission is valid. */
export function failureStepOfSample({ grade, result }: Pick<Sample, "grade" | "result">): FailureStep | undefined {
  if (grade === undefined || grade.valid) return undefined;
  const seenMarkers = result?.markers.map(({ name }) => name) ?? [];
  const fault = result === undefined ? grade.reason : undefined;
  return failureStepOf({ ...result, fault, seenMarkers, hasSubmission: grade.reason !== "noSubmission" });
}
