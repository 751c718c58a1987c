/** Reports prompts that showed no program although they were drawn to, and why; and what debug prompts gained. */
import { count, percent } from "../metrics/format.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { sum } from "../metrics/statistics.ts";

type Line = Partial<Pick<IterationMetrics, "improvePrompts" | "debugPrompts" | "debugging">>;

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
  const instead = sum(lines.map(({ debugPrompts }) => debugPrompts?.shown ?? 0)) > 0 ? "scratch or debug" : "scratch";
  return `${count(some)} of ${count(all)} improve prompts (${percent(some / all)}) became ${instead} prompts: ${reasons.join("; ")}.`;
}

/** Returns one paragraph on what became of the failed programs that prompts showed; empty without debug prompts. */
export function debuggingSentence(lines: readonly Line[]): string {
  const prompts = (name: keyof IterationMetrics["debugPrompts"]) =>
    sum(lines.map(({ debugPrompts }) => debugPrompts?.[name] ?? 0));
  const results = (name: keyof IterationMetrics["debugging"]) =>
    sum(lines.map(({ debugging }) => debugging?.[name] ?? 0));
  const [fixed, notFixed, broke] = [results("fixed"), results("notFixed"), results("broke")];
  const [noFailure, tooLong] = [prompts("noFailure"), prompts("tooLong")];
  const all = fixed + notFixed + broke;
  const trained =
    all === 0
      ? []
      : [
          `${count(all)} samples were trained on that mend a failed program: ${count(fixed)} (${percent(fixed / all)}) fixed it, ` +
            `${count(notFixed)} did not, ${count(broke)} came less far than before.`,
        ];
  const reasons = [
    ...(noFailure > 0 ? [`${count(noFailure)} because no program had failed yet`] : []),
    ...(tooLong > 0 ? [`${count(tooLong)} because the program did not fit in model.maxPromptTokens`] : []),
  ];
  const without = reasons.length === 0 ? [] : [`Other prompts took the place of debug prompts: ${reasons.join("; ")}.`];
  return [...trained, ...without].join(" ");
}
