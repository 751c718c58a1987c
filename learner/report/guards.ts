/** Reports valid submissions that guards flagged, because no model produced them (learner/grading/guards.ts). */
import type { Guard } from "../grading/guards.ts";
import type { Reach } from "../grading/reaches.ts";
import { count, percent } from "../metrics/format.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { sum } from "../metrics/statistics.ts";

const GUARD_WORDS: Readonly<Record<Guard, string>> = {
  sampleSubmission: "copy of the sample submission",
  constant: "one prediction throughout",
  perfect: "perfect score",
};

export const guardWords = (guard: unknown): string => GUARD_WORDS[guard as Guard] ?? String(guard);

/** Returns the count; lines of an earlier longrun have none. */
export const flaggedOf = (line: Partial<Pick<IterationMetrics, "flagged">>): number => line.flagged ?? 0;

/** Returns one paragraph for the report; empty if nothing was flagged. */
export function guardSentence(lines: readonly IterationMetrics[]): string {
  const total = (pick: (line: IterationMetrics) => number) => sum(lines.map(pick));
  const flagged = total(flaggedOf);
  const last = lines.at(-1);
  if (flagged === 0 || !last) return "";
  const valid = total(validOf);
  const kinds = (Object.keys(GUARD_WORDS) as Guard[])
    .map((guard) => ({ guard, found: total((line) => line.guards?.[guard] ?? 0) }))
    .filter(({ found }) => found > 0)
    .map(({ guard, found }) => `${GUARD_WORDS[guard]} ${count(found)}`);
  const capped = total((line) => line.cappedRewards ?? 0);
  return [
    `Guards flagged ${count(flagged)} of ${count(valid)} valid submissions (${percent(flagged / valid)}), in the last iteration`,
    `${count(flaggedOf(last))} of ${count(validOf(last))}, because they look as if no model had made them: ${kinds.join(", ")}.`,
    capped > 0
      ? `guardedRewardCap lowered the reward of ${count(capped)}.`
      : "No reward was lowered; tasks[].guardedRewardCap would lower them.",
    ...(kinds.some((kind) => kind.startsWith(GUARD_WORDS.perfect))
      ? ["A perfect score on real data means that answers were found, not predicted: read those programs."]
      : []),
  ].join(" ");
}

const REACH_WORDS: Readonly<Record<Reach, string>> = {
  answers: "names the answers or a grader",
  paths: "names a path outside its folder",
  refused: "was refused by the sandbox",
};

/** Returns one paragraph on programs that reached for what they are not given; empty if none did. Lines of an earlier longrun have none. */
export function reachSentence(
  lines: readonly Partial<Pick<IterationMetrics, "reaching" | "reaches" | "samples">>[],
): string {
  const total = (pick: (line: (typeof lines)[number]) => number | undefined) =>
    sum(lines.map((line) => pick(line) ?? 0));
  const reaching = total((line) => line.reaching);
  const last = lines.at(-1);
  if (reaching === 0 || !last) return "";
  const kinds = (Object.keys(REACH_WORDS) as Reach[])
    .map((reach) => ({ reach, found: total((line) => line.reaches?.[reach]) }))
    .filter(({ found }) => found > 0)
    .map(({ reach, found }) => `${REACH_WORDS[reach]} ${count(found)}`);
  const samples = total((line) => (line.reaching === undefined ? 0 : line.samples));
  return (
    `${count(reaching)} of ${count(samples)} programs (${percent(reaching / samples)}), in the last iteration ${count(last.reaching ?? 0)} of ` +
    `${count(last.samples ?? 0)}, reached for what they are not given: ${kinds.join(", ")}. Rewards do not depend on it. ` +
    "Texts that a program makes while it runs, and accesses that it hides, are not seen."
  );
}

const validOf = (line: IterationMetrics) => Math.round(line.validFraction * line.samples);
