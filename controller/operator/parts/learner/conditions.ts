import { nothingToLearn, WARN_AFTER_ITERATIONS } from "../../../../proto/nothing-to-learn.ts";
import type { Observed } from "../../observe.ts";
import { condition, type NewCondition } from "../../status/conditions.ts";

/** Returns a condition after some iterations without a difference between rewards. */
export function learningCondition({ link }: Observed): NewCondition[] {
  const { noSignalIterations = 0, validFraction = 0 } = link?.status?.finished ?? {};
  if (noSignalIterations < WARN_AFTER_ITERATIONS) return [];
  const message = nothingToLearn(noSignalIterations, validFraction);
  return [condition("Learning", false, { reason: "NothingToLearn", message })];
}
