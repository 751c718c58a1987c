/** The page of `longrun compare`: curves of the best score against executions and time, with intervals, and the tables. */
import { readFileSync } from "node:fs";
import { count, number } from "../metrics/format.ts";
import { type ArmResult, AXES, type Axis, type TaskResult } from "../solve/compare.ts";
import { CONTENT_SECURITY_POLICY, type Html, heads, html, row, table, trusted } from "./html.ts";
import { bandPlot, type Series } from "./plots.ts";
import { renderSvg } from "./svg.ts";
import { color, PALETTE } from "./theme.ts";

const STYLE = readFileSync(new URL("./report.css", import.meta.url), "utf8");
const SECONDS_PER_MINUTE = 60;
/** Most points of a curve. */
const POINTS = 100;

/** Returns the places of a drawn curve: whole numbers of executions, or equal steps of time. */
export function plotPlaces(axis: Axis, most: number): number[] {
  const steps = axis === "executions" ? Math.min(most, POINTS) : POINTS;
  const places = Array.from({ length: steps }, (_, i) => (most * (i + 1)) / steps);
  return axis === "executions" ? [...new Set(places.map(Math.round))] : places.filter((place) => place > 0);
}

/** @param results of `compare` with `plotPlaces` */
export async function comparePage(results: readonly TaskResult[]): Promise<string> {
  const sections: Html[] = [];
  for (const result of results) sections.push(await taskSection(result));
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${CONTENT_SECURITY_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>longrun compare</title>
<style>
${trusted(STYLE)}</style>
</head>
<body>
<main>
<header><h1>Searches and runs compared</h1>
<p class="soft">Best score so far, mean over the folders of an arm that came so far. Bands: 95 % bootstrap intervals over folders; of a single folder over its drafts with their descendants, which says nothing of other seeds.</p></header>
${sections}
</main>
</body>
</html>
`.html;
}

async function taskSection({ task, metric, direction, arms }: TaskResult): Promise<Html> {
  const series = arms.map(
    ({ arm }, index): Series => ({ label: arm, color: color(PALETTE[index % PALETTE.length]!), step: true }),
  );
  const legend = series.map(
    ({ label, color: shade }) => html`<li>${trusted(`<i style="background:${shade}"></i>`)}${label}</li>`,
  );
  const figures: Html[] = [];
  for (const axis of AXES) {
    const title = axis === "executions" ? "Best score by executions" : "Best score by minutes";
    const caption = `${direction} is better.`;
    const points = arms.flatMap((arm) => pointsOf(arm, axis));
    if (points.length === 0) continue;
    const svg = await renderSvg(
      bandPlot(points, series, { title: axis === "executions" ? "executions" : "minutes" }, { title: metric }),
      `${title}. ${caption}`,
    );
    figures.push(
      html`<figure class="half"><h3>${title}</h3><ul class="legend">${legend}</ul><div class="plot">${trusted(svg)}</div><figcaption>${caption}</figcaption></figure>`,
    );
  }
  const rows = arms.map(({ arm, folders, end, executions, seconds, tokens, cost }) =>
    row(arm, [
      ...[
        number(end.best),
        end.interval ? `${number(end.interval[0])} to ${number(end.interval[1])}` : "–",
        count(folders.length),
      ],
      ...[
        count(executions),
        (seconds / SECONDS_PER_MINUTE).toFixed(1),
        count(tokens),
        cost === null ? "–" : cost.toFixed(2),
      ],
    ]),
  );
  const titles = ["", "best score at the end", "95 % interval", "folders", "executions", "minutes", "tokens", "USD"];
  return html`<h2>${task} (${metric}, ${direction.toLowerCase()} is better)</h2>
<div class="charts">${figures}</div>
${table("comparison", heads(titles), rows)}`;
}

function pointsOf({ arm, curves }: ArmResult, axis: Axis) {
  const unit = axis === "executions" ? 1 : SECONDS_PER_MINUTE;
  return curves[axis].flatMap(({ at, best, interval }) => {
    if (best === null) return [];
    const [low, high] = interval ?? [best, best];
    return [{ x: at / unit, y: best, low, high, series: arm }];
  });
}
