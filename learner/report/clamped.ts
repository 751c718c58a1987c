/** Rewards that were raised to the grader's rewardFloor. All scores below it earn the same. */
import { count } from "../metrics/format.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { sum } from "../metrics/statistics.ts";

/** Returns the count; lines of an earlier longrun have none. */
export const clampedOf = (line: Partial<Pick<IterationMetrics, "clampedRewards">>): number => line.clampedRewards ?? 0;

/** Returns one paragraph for the report; empty if no reward was raised. */
export function clampedSentence(lines: readonly IterationMetrics[]): string {
  const clamped = sum(lines.map(clampedOf));
  if (clamped === 0) return "";
  const valid = sum(lines.map(({ validFraction, samples }) => Math.round(validFraction * samples)));
  const mostly = lines.filter(({ mostlyClamped }) => mostlyClamped).length;
  const said = `${count(clamped)} of ${count(valid)} valid rewards were raised to the grader's rewardFloor.`;
  if (mostly === 0) return said;
  const iterations = mostly === 1 ? "1 iteration" : `${count(mostly)} iterations`;
  return `${said} In ${iterations} they were more than half of the valid ones, so the policy could not tell good scores from bad ones: give grader.rewardRange in a new run.`;
}
