/** What to do about iterations whose samples all have the same reward: for the learner's log, the terminal and the status of a run. */

/** So many iterations in a row without a difference between rewards are worth a warning. */
export const WARN_AFTER_ITERATIONS = 2;

/**
 * Returns one sentence and the remedies.
 *
 * @param iterations in a row
 * @param validFraction of the newest one
 */
export function nothingToLearn(iterations: number, validFraction: number): string {
  const since =
    iterations === 1
      ? "this iteration had nothing to learn from"
      : `${iterations} iterations in a row had nothing to learn from`;
  const remedies =
    validFraction === 0
      ? "the model wrote no valid program: begin with a supervised start (longrun sft or spec.warmStart), give answers a beginning " +
        "(prompts.answerPrefix), reward the steps before a valid program (tasks[].failureRewards), let it mend failures " +
        "(prompts.debugProbability), or give it an easier task"
      : "tell better programs from worse ones (grader.rewardRange, algorithm.validScoreWeight), sample more different ones " +
        "(model.temperature, algorithm.batchSize), or give it a harder task";
  return `${since}, because all rewards were alike, so the policy stays as it is; ${remedies}`;
}
