import type { Sample } from "../store/types.ts";
import type { MeasuredSample } from "./iteration.ts";

/**
 * What the metrics read of a stored sample that `iteration` trains on. `verbatim`: whether its program stands word for
 * word in the pretraining corpus, undefined if that is not known.
 */
export function measuredSample(sample: Sample, iteration: number, verbatim?: boolean): MeasuredSample {
  const { result, grade } = sample;
  const lost = sample.state === "lost" ? "lost" : undefined;
  return {
    task: sample.task,
    kind: sample.kind,
    instrumenter: sample.instrumenter,
    outcome: result?.outcome ?? lost,
    durationSeconds: result?.durationSeconds,
    markers: result?.markers,
    forgedMarkers: result?.forgedMarkers,
    valid: grade?.valid ?? false,
    score: grade?.score,
    reward: grade?.reward,
    guards: grade?.guards,
    clamped: grade?.clamped,
    capped: grade?.capped,
    family: grade?.family,
    lag: Math.abs(iteration - 1 - sample.iteration),
    verbatim,
    promptTokens: sample.promptTokens,
    responseTokens: sample.responseTokens,
    truncated: sample.truncated,
  };
}
