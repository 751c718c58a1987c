/** Renders the report's section on generators (learner/generators/README.md). */
import { count } from "../metrics/format.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { sum } from "../metrics/statistics.ts";

const FAULTS: Readonly<Record<string, string>> = {
  lost: "did not answer",
  oldVersion: "had old weights",
  logProbs: "gave other log-probs than the learner's",
};

/** One paragraph for the report; empty if the learner wrote by itself. */
export function generatorSentence(lines: readonly IterationMetrics[]): string {
  const known = lines.flatMap(({ generation }) => generation ?? []);
  if (known.length === 0) return "";
  const total = (pick: (counts: (typeof known)[number]) => number) => sum(known.map(pick));
  const faults = Object.entries(FAULTS)
    .map(([fault, words]) => ({ words, times: total(({ faults }) => faults[fault] ?? 0) }))
    .filter(({ times }) => times > 0)
    .map(({ words, times }) => `${words} ${times === 1 ? "once" : `${count(times)} times`}`);
  const [moved, unchecked] = [total(({ movedRows }) => movedRows), total(({ uncheckedRows }) => uncheckedRows)];
  return [
    "Generators wrote the solutions.",
    faults.length > 0 ? `A generator ${faults.join(", ")}; it was not used until that was over.` : "None failed.",
    moved > 0 ? `${count(moved)} rows were written by another generator than the one that began them.` : "",
    unchecked > 0
      ? `The log-probs of ${count(unchecked)} rows could not be compared: the learner had newer weights.`
      : "",
  ]
    .filter((part) => part !== "")
    .join(" ");
}
