import { UpdateError } from "./errors.ts";

/** Limits of `importanceMaxDeviation`, the largest |exp(proximal - behaviour) - 1| of any on-policy token. */
export interface DeviationLimits {
  /** Above it the log and the terminal warn, once an iteration. */
  warning: number;
  /** Above it the run ends before anything is trained. */
  error: number;
}

/** On a CPU, in float32. Measured: at most 1.4e-5 with the bundled policy (README.md). */
export const CPU_DEVIATION_LIMITS: DeviationLimits = { warning: 0.01, error: 0.1 };

/**
 * On a GPU, with every `learner.compute`: generation is bfloat16 with each, training rounds as it says. Measured with bfloat16's rounding: 0.2 for one
 * of 7,339 tokens. The warning begins where a token is twice as probable in training, the error where it is eleven times.
 */
export const GPU_DEVIATION_LIMITS: DeviationLimits = { warning: 1, error: 10 };

export function deviationLimits(device: { kind: string }): DeviationLimits {
  return device.kind === "cpu" ? CPU_DEVIATION_LIMITS : GPU_DEVIATION_LIMITS;
}

/**
 * Whether the deviation is above the warning's limit.
 *
 * @param deviation null where there is no on-policy token; NaN, of a policy that is broken, is left to the steps, which skip it
 * @throws UpdateError `deviation` if it is above the error's
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
