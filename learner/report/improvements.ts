/** Reports prompts that asked for a program from scratch instead of an improvement, and why. */
import { count, percent } from "../metrics/format.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { sum } from "../metrics/statistics.ts";

type Line = Partial<Pick<IterationMetrics, "improvePrompts">>;

/** Returns one paragraph for the report; empty if every prompt showed its program. Lines of an earlier longrun have no counts. */
export function improvementSentence(lines: readonly Line[]): string {
  const total = (name: keyof IterationMetrics["improvePrompts"]) =>
    sum(lines.map(({ improvePrompts }) => improvePrompts?.[name] ?? 0));
  const [shown, tooLong, noPrevious] = [total("shown"), total("tooLong"), total("noPrevious")];
  if (tooLong + noPrevious === 0) return "";
  const all = shown + tooLong + noPrevious;
  const reasons = [
    ...(noPrevious > 0 ? [`${count(noPrevious)} because no program was valid yet`] : []),
    ...(tooLong > 0
      ? [
          `${count(tooLong)} because the program did not fit: model.maxPromptTokens bounds which programs can be improved`,
        ]
      : []),
  ];
  const some = tooLong + noPrevious;
  return `${count(some)} of ${count(all)} improve prompts (${percent(some / all)}) became scratch prompts: ${reasons.join("; ")}.`;
}
