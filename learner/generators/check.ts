/** Whether a generator's log-probs are those of the learner's weights. */
import type { Engine } from "../engine/index.ts";
import type { GeneratorState } from "./protocol.ts";

/** Rows of each generator and policy version that are compared. */
export const CHECKED_ROWS = 2;

/**
 * Largest mean over a row's tokens of |log-prob of the generator - log-prob of the learner|, nats. `cpu`: both compute in float32. `cuda`: one of
 * them rounds to half precision. Other weights, another temperature or another model are far above both (README.md).
 */
export const MEAN_DIFFERENCE_LIMITS = { cpu: 0.001, cuda: 0.05 };

export function differenceLimit(devices: readonly GeneratorState["device"][]): number {
  return MEAN_DIFFERENCE_LIMITS[devices.includes("cuda") ? "cuda" : "cpu"];
}

/** Returns the mean absolute difference of a row's log-probs and those of the learner's current policy, nats a token. */
export async function meanDifference(
  engine: Pick<Engine, "evaluate">,
  row: { prompt: Int32Array; response: Int32Array; logProbs: Float32Array },
  temperature: number,
): Promise<number> {
  const [own] = await engine.evaluate([row], { temperature, values: false, reference: false });
  const differences = own!.logProbs.map((logProb, t) => Math.abs(logProb - row.logProbs[t]!));
  return differences.reduce((sum, difference) => sum + difference, 0) / differences.length;
}
