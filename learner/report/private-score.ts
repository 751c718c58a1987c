/** The best program's private score beside its public one. */
import type { PrivateFacts } from "../evaluation/private-score.ts";
import { change, count, NONE, number } from "../metrics/format.ts";
import type { Interval } from "../metrics/summary.ts";
import { type Html, heads, html, row, table } from "./html.ts";

type Facts = Partial<PrivateFacts> & { score?: number | undefined; metric?: string | undefined };

/**
 * Renders both scores with their intervals and a sentence about the gap; undefined without a private part.
 *
 * @param programs number of valid programs among which this one has the best public score; 0: not known
 */
export function privateScore(facts: Facts, programs: number): Html | undefined {
  const { score, metric = "score", privateScore, noPrivateScore, gap, publicRows, privateRows, rowIntervals } = facts;
  if (rowIntervals === undefined) return undefined;
  if (privateScore === undefined) return html`<p class="soft">It has no private score: ${noPrivateScore}.</p>`;
  const signed = (difference: number) => change(0, difference, number);
  const between = (interval: Interval | null, unit: (value: number) => string) =>
    interval ? interval.map(unit).join(" to ") : NONE;
  const rows = [
    row("public score", [number(score), between(rowIntervals.score, number), count(publicRows)]),
    row("private score", [number(privateScore), between(rowIntervals.privateScore, number), count(privateRows)]),
    row("gap", [signed(gap!), between(rowIntervals.gap, signed), ""]),
  ];
  return html`${table("comparison", heads(["", metric, "95 % interval", "rows of the answers"]), rows)}
<p class="soft">${gapSentence(facts, programs)} ${rowIntervals.gap ? "Intervals: bootstrap over rows." : "There are too many rows for intervals (bootstrap over rows)."}</p>`;
}

/** Returns the sentence that explains the gap of the best of several programs. */
function gapSentence({ direction, gap = 0, rowIntervals }: Facts, programs: number): string {
  const among = programs > 1 ? `the best of ${count(programs)} valid programs` : "the best of all valid programs";
  const worse = direction === "Lower" ? -gap : gap;
  const size = number(Math.abs(gap));
  const found = gap === 0 ? "exactly as good" : `${size} ${worse > 0 ? "worse" : "better"}`;
  const interval = rowIntervals?.gap;
  const isNoise = interval && interval[0] <= 0 && interval[1] >= 0;
  return (
    `This program is ${among} by the public score, which rewards are made of, and on the private rows, which no reward, prompt or choice has ` +
    `seen, it is ${found}${isNoise ? "; the interval of this gap includes 0" : ""}: the gap is the luck that choosing the best one added, and chance between the rows.`
  );
}
