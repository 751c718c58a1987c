/** The failed programs of a task that debug prompts can show. */
import { type FailureStep, failureStepOfSample } from "../grading/failure-steps.ts";
import { errorKind, errorOf } from "../metrics/common-errors.ts";
import type { Sample } from "../store/types.ts";
import type { FailedSolution } from "./debug-prompt.ts";

export interface Failure extends FailedSolution {
  id: string;
  /** How far the program came. */
  step: FailureStep;
  /** Debug prompts in a row that led to it. */
  depth: number;
}

/** Returns the failures in their order, of those that failed in the same way only the first. */
export function distinctFailures(samples: readonly Sample[]): Failure[] {
  const seen = new Set<string>();
  return samples.flatMap((sample) => {
    const step = failureStepOfSample(sample);
    if (step === undefined || sample.program === undefined || sample.result === undefined) return [];
    const kind = `${step} ${errorKind(errorOf(sample))}`;
    if (seen.has(kind)) return [];
    seen.add(kind);
    const { id, plan, program, result, depth = 0 } = sample;
    return [{ id, plan, program, output: result.terminalOutput, failure: failureText(sample), step, depth }];
  });
}

/** Returns one line on why a program has no valid submission. It tells nothing of the answers. */
export function failureText({ result, grade }: Pick<Sample, "result" | "grade">): string {
  const { outcome, detail } = result!;
  if (outcome === "timedOut") return `it took too long (${detail})`;
  if (outcome === "outOfMemory") return "it used more memory than allowed";
  if (outcome !== "completed") return detail;
  if (grade!.reason === "noSubmission") return detail || "it wrote no submission.csv";
  if (/\banswers?\b/.test(grade!.reason)) return "its submission cannot be graded";
  return `its submission cannot be graded: ${grade!.reason}`;
}

/** Returns the newer of two failures that are drawn uniformly. @param next uniform in [0, 1) */
export function drawFailure(failures: readonly Failure[], next: () => number): Failure | undefined {
  const [one, other] = [next(), next()];
  return failures[Math.floor(Math.min(one, other) * failures.length)];
}
