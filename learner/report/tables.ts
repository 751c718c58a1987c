/** The report's tables. */
import { parse } from "yaml";
import { change, count, duration, NONE, number, percent, span } from "../metrics/format.ts";
import type { IterationMetrics, TaskMetrics } from "../metrics/iteration.ts";
import type { EvaluationSummary } from "../metrics/summary.ts";
import { clampedOf } from "./clamped.ts";
import { flaggedOf } from "./guards.ts";
import { type Html, heads, html, row, table } from "./html.ts";
import type { RunFolder } from "./run-folder.ts";

type Unit = (value: number | null | undefined) => string;

/** First and last iteration task by task, where there are several. */
export function byTask({ tasks, lines }: RunFolder): Html | undefined {
  const [first, last] = [lines[0], lines.at(-1)];
  if (tasks.length < 2 || !first || !last) return undefined;
  const pair = (name: string, value: (task: TaskMetrics) => string) =>
    [first, last].map((line) => (line.tasks[name] ? value(line.tasks[name]) : NONE)).join(" → ");
  const rows = tasks.map(({ name, metric }) => {
    const valid = pair(name, (task) => percent(task.validFraction));
    const mean = pair(name, (task) => number(task.meanScore));
    return row(name, [metric, valid, mean, pair(name, (task) => number(task.bestScoreSoFar))]);
  });
  const titles = [`iteration ${first.iteration} → ${last.iteration}`, "metric", "valid", "mean score", "best so far"];
  return table("comparison", heads(titles), rows);
}

/** Before/after of the run's own evaluations in short, or, without them, of the first iterations and the last. */
export function beforeAfter({ summary, lines, tasks }: RunFolder): Html {
  // Scores of several tasks have no common unit; `byTask` has them.
  const compared = COMPARED.filter(([label]) => tasks.length < 2 || !label.includes("score"));
  const { before, after } = summary?.evaluation ?? {}; // absent in runs with several tasks
  if (before) {
    const titles = [
      `before (${count(before.samples)} samples)`,
      after ? `after (${count(after.samples)} samples)` : "after",
    ];
    return comparison(titles, compared, before, after);
  }
  const [first, last] = [lines[0], lines.at(-1)];
  if (!first || !last) return html`<p class="empty">Nothing to compare yet: no iteration has ended.</p>`;
  if (first === last) return comparison(["iteration 1", "next"], compared, first);
  return comparison([`iteration ${first.iteration}`, `iteration ${last.iteration}`], compared, first, last);
}

/** A column of the tables: an evaluation or a line of metrics. */
type Compared = EvaluationSummary | IterationMetrics;

const COMPARED = [
  ["Valid programs", "validFraction", percent],
  ["Mean score", "meanScore", number],
  ["Mean score, 0 to 1", "meanNormalizedScore", number],
  ["Best score", "bestScore", number],
  ["Mean reward", "meanReward", number],
  ["Mean duration", "meanDurationSeconds", duration],
] as const satisfies [string, keyof EvaluationSummary & keyof IterationMetrics, Unit][];

function comparison(titles: string[], rows: readonly (typeof COMPARED)[number][], from: Compared, to?: Compared): Html {
  const body = rows.map(([label, name, unit]) => {
    const [before, after] = [from[name], to?.[name]];
    const changed = unit === percent ? points(before, after) : change(before, after, unit);
    return row(label, [unit(before), unit(after), changed]);
  });
  return table("comparison", heads(["", ...titles, "change"]), body);
}

function points(before: number | null | undefined, after: number | null | undefined): string {
  const text = change(before, after, percent);
  return text.endsWith("%") ? text.replace("%", "points") : text;
}

const COLUMNS: readonly [string, (line: IterationMetrics) => string][] = [
  ["iteration", (line) => count(line.iteration)],
  ["samples", (line) => count(line.samples)],
  ["valid", (line) => percent(line.validFraction)],
  ["mean score", (line) => number(line.meanScore)],
  ["0 to 1", (line) => number(line.meanNormalizedScore)],
  ["best score", (line) => number(line.bestScore)],
  ["reward", (line) => number(line.meanReward)],
  ["launched", (line) => duration(line.launchedMeanDurationSeconds)],
  ["trained", (line) => duration(line.trainedMeanDurationSeconds)],
  ["ESS", (line) => number(line.effectiveSampleSize)],
  ["KL", (line) => number(line.kl)],
  ["entropy", (line) => number(line.entropy)],
  ["lag", (line) => number(line.meanLag)],
  ["time", (line) => span(line.seconds)],
];

/** Shown only if a submission was flagged. */
const FLAGGED: (typeof COLUMNS)[number] = ["flagged", (line) => count(flaggedOf(line))];

/** Shown only if a reward was raised to rewardFloor. */
const CLAMPED: (typeof COLUMNS)[number] = ["clamped", (line) => count(clampedOf(line))];

export function iterations(lines: readonly IterationMetrics[]): Html {
  const further = [
    ...(lines.some((line) => flaggedOf(line) > 0) ? [FLAGGED] : []),
    ...(lines.some((line) => clampedOf(line) > 0) ? [CLAMPED] : []),
  ];
  const columns = COLUMNS.toSpliced(3, 0, ...further);
  const head = heads(columns.map(([title]) => title));
  const body = lines.map((line) => html`<tr>${columns.map(([, cell]) => html`<td>${cell(line)}</td>`)}</tr>`);
  return table("numbers", head, body);
}

/** Every setting of the resolved manifest, one list per part of `spec`. */
/** @param without paths of fields that have no meaning here */
export function settings(manifestText: string, without: readonly string[] = []): Html {
  const { spec: all = {} } = (parse(manifestText) ?? {}) as { spec?: Record<string, unknown> };
  // The address of a webhook may be a secret, and a report is shared.
  const { notifications: _, ...spec } = all;
  const isPart = ([, value]: [string, unknown]) => typeof value === "object" && value !== null;
  const parts = Object.entries(spec).filter(isPart);
  const scalars = Object.entries(spec).filter((entry) => !isPart(entry));
  return html`<div class="settings">${scalars.length > 0 && list("spec", scalars)}${parts.map(([title, value]) =>
    list(
      title,
      leaves(value).filter(([path]) => !without.includes(`${title}.${path}`)),
    ),
  )}</div>`;
}

export const versions = (found: Record<string, string>): Html =>
  html`<div class="settings">${list("versions", Object.entries(found))}</div>`;

function list(title: string, rows: [string, unknown][]): Html {
  const items = rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${shown(value)}</dd></div>`);
  return html`<section><h3>${title}</h3><dl>${items}</dl></section>`;
}

function leaves(value: unknown, path = ""): [string, unknown][] {
  const isPlain = (item: unknown) => typeof item !== "object" || item === null;
  if (isPlain(value) || (Array.isArray(value) && value.every(isPlain))) return [[path, value]];
  return Object.entries(value as object).flatMap(([key, inner]) => {
    const step = Array.isArray(value) ? `[${key}]` : path ? `.${key}` : key;
    return leaves(inner, path + step);
  });
}

function shown(value: unknown): string {
  const text = Array.isArray(value) ? value.join(", ") : String(value ?? NONE);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text || NONE;
}
