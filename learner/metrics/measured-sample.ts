import type { Result } from "../../proto/execution.ts";
import { type FailureStep, failureStepOfSample } from "../grading/failure-steps.ts";
import { type Reach, reachesOf } from "../grading/reaches.ts";
import type { Grade, Sample } from "../store/types.ts";

/** The fields of a sample that the metrics read. */
export interface MeasuredSample extends Partial<Grade>, Partial<Pick<Result, "durationSeconds" | "forgedMarkers">> {
  task: string;
  kind: Sample["kind"];
  instrumenter?: string | undefined;
  /** Absent if the solution was never executed (no plan, no code block). */
  outcome?: string | undefined;
  markers?: readonly { name: string }[] | undefined;
  valid: boolean;
  /** How far a solution without a valid submission came. */
  failureStep?: FailureStep | undefined;
  /** How far the program came that a debug prompt shows. */
  previousStep?: string | undefined;
  /** Iterations between the version that wrote it and the trained one. After a restart it can be ahead, which is as far as behind. */
  lag?: number | undefined;
  /** Whether the program stands word for word in the pretraining corpus; absent if the corpus is not known. */
  verbatim?: boolean | undefined;
  /** What the program reached for that it was not given. */
  reaches?: readonly Reach[] | undefined;
  promptTokens: { readonly length: number };
  responseTokens: { readonly length: number };
  /** Whether the response was cut at `model.maxResponseTokens`; absent if that is not known. */
  truncated?: boolean | undefined;
}

/** Returns the measured fields of a stored sample that `iteration` trains on. */
export function measuredSample(sample: Sample, iteration: number, verbatim?: boolean): MeasuredSample {
  const { task, kind, previousStep, instrumenter, promptTokens, responseTokens, truncated, state, result, grade } =
    sample;
  return {
    task,
    kind,
    previousStep,
    instrumenter,
    promptTokens,
    responseTokens,
    truncated,
    verbatim,
    outcome: result?.outcome ?? (state === "lost" ? "lost" : undefined),
    ...(result && {
      durationSeconds: result.durationSeconds,
      markers: result.markers,
      forgedMarkers: result.forgedMarkers,
    }),
    valid: false,
    failureStep: failureStepOfSample(sample),
    reaches: reachesOf(sample),
    ...grade,
    lag: Math.abs(iteration - 1 - sample.iteration),
  };
}
