/** The best program's private score beside its public one. */
import type { PrivateFacts } from "../evaluation/private-score.ts";
import { change, count, NONE, number } from "../metrics/format.ts";
import type { Interval } from "../metrics/summary.ts";
import { type Html, heads, html, row, table } from "./html.ts";

type Facts = Partial<PrivateFacts> & { score?: number | undefined; metric?: string | undefined };

/** Renders both scores with their intervals, and what the gap means; undefined without a private part. */
export function privateScore(facts: Facts): Html | undefined {
  const { score, metric = "score", privateScore, noPrivateScore, gap, publicRows, privateRows, rowIntervals } = facts;
  if (rowIntervals === undefined) return undefined;
  if (privateScore === undefined) return html`<p class="soft">It has no private score: ${noPrivateScore}.</p>`;
  const between = (interval: Interval | null, unit: (value: number) => string) =>
    interval ? interval.map(unit).join(" to ") : NONE;
  const rows = [
    row("public score", [number(score), between(rowIntervals.score, number), count(publicRows)]),
    row("private score", [number(privateScore), between(rowIntervals.privateScore, number), count(privateRows)]),
    row("gap", [signed(gap), between(rowIntervals.gap, signed), ""]),
  ];
  const intervals = rowIntervals.gap
    ? "Intervals: bootstrap over the rows."
    : "There are too many rows for intervals (bootstrap over the rows).";
  return html`${table("comparison", heads(["", metric, "95 % interval", "rows of the answers"]), rows)}
<p class="soft">Rewards, prompts and choices see the public rows alone. ${gapSentence(facts)} ${intervals}</p>`;
}

const signed = (difference: number | undefined) => change(0, difference, number);

/** Explains the gap of the best of several programs. */
export function gapSentence({ direction, gap = 0, medianGap, programs = 0 }: Facts): string {
  const meaning = "The gap is the public score minus the private score";
  if (programs < 2 || medianGap === undefined) return `${meaning}.`;
  const flattery = direction === "Lower" ? medianGap - gap : gap - medianGap;
  const found = flattery > 0 ? `flattered this one by ${number(flattery)}` : "did not flatter this one";
  return (
    `${meaning}; its median over the ${count(programs)} valid programs until then is ${signed(medianGap)}, because the two parts of the ` +
    `answers differ, and choosing the best of them by the public score ${found}.`
  );
}
