import type { FailureRewards } from "../../../crds/trainingrun.ts";

/**
 * Failure rewards that increase with each step, for a model that may write no valid program at first. All are at most the paper's -10, so
 * that with the credit for seven markers they stay below the default `rewardFloor`.
 */
export const INCREASING_REWARDS: Readonly<Required<FailureRewards>> = {
  noCodeBlock: -12,
  unclosedCodeBlock: -11.5,
  syntaxError: -11,
  importError: -10.75,
  failed: -10.5,
  noSubmission: -10.25,
  invalidSubmission: -10,
};
