/** The outcome of a warm start for people. */
import type { WarmStartSummary } from "../metrics/summary.ts";

/** Returns the outcome in a sentence, for terminal and report. */
export function sentenceOf({ examples, steps, firstLoss, loss, before, newest }: WarmStartSummary): string {
  const number = (value: number | null) => (value === null ? "-" : value.toFixed(3));
  const percent = (value: number) => `${(100 * value).toFixed(1)} %`;
  const held =
    before && newest
      ? `; held out: loss ${number(before.loss)} to ${number(newest.loss)}, accuracy ${percent(before.accuracy)} to ${percent(newest.accuracy)}`
      : "";
  return `Warm start: ${steps} steps on ${examples} examples, loss ${number(firstLoss)} to ${number(loss)}${held}`;
}
