import { UpdateError } from "./errors.ts";

/** Limits for `importanceMaxDeviation`, the largest |exp(proximal - behaviour) - 1| of any on-policy token. */
export interface DeviationLimits {
  /** Above it, log and terminal warn once per iteration. */
  warning: number;
  /** Above it, the run ends before it trains on anything. */
  error: number;
}

/** For a CPU with float32. Measured: at most 1.4e-5 with the bundled policy (README.md). */
export const CPU_DEVIATION_LIMITS: DeviationLimits = { warning: 0.01, error: 0.1 };

/**
 * For a GPU, with every `learner.compute`: generation is always bfloat16, training rounds as configured. Measured with bfloat16's rounding:
 * 0.2 for one of 7,339 tokens. The warning begins if a token is twice as probable in training, the error at eleven times.
 */
export const GPU_DEVIATION_LIMITS: DeviationLimits = { warning: 1, error: 10 };

export function deviationLimits(device: { kind: string }): DeviationLimits {
  return device.kind === "cpu" ? CPU_DEVIATION_LIMITS : GPU_DEVIATION_LIMITS;
}

/**
 * Returns whether the deviation is above the warning's limit.
 *
 * @param deviation null if there is no on-policy token. NaN, from a broken policy, is not reported here: the steps skip it
 * @throws UpdateError `deviation` if it is above the error's limit
 */
export function checkDeviation(deviation: number | null, limits: DeviationLimits): boolean {
  if (deviation === null || !(deviation > limits.warning)) return false;
  if (deviation <= limits.error) return true;
  throw new UpdateError(
    "deviation",
    `importanceMaxDeviation is ${deviation.toPrecision(3)}, above ${limits.error}: the rollout engine samples from other weights, ` +
      "or at another temperature, than the trainer evaluates; nothing was trained on these samples. Rounding does not " +
      "explain it: report it with the bundle of `longrun debug` (learner/rl/README.md, Generation and training disagree)",
  );
}
