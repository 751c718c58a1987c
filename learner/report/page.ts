/** The whole page: one file without scripts, fonts or pictures from elsewhere. */
import { readFileSync } from "node:fs";
import { courseTable, describeSettings, evaluationTable } from "../evaluation/rows.ts";
import type { CommonError } from "../metrics/common-errors.ts";
import { count, duration, number, percent, span, time } from "../metrics/format.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { sum } from "../metrics/statistics.ts";
import type { RunSummary, WarmStartSummary } from "../metrics/summary.ts";
import { durationWeighting } from "../rl/durations.ts";
import { sentenceOf } from "../sft/sentence.ts";
import { type Chart, chartsOf } from "./charts.ts";
import { clampedSentence } from "./clamped.ts";
import { durationSentence } from "./durations.ts";
import { engineSentence } from "./engine.ts";
import { generatorSentence } from "./generators.ts";
import { guardSentence, guardWords, reachSentence } from "./guards.ts";
import { CONTENT_SECURITY_POLICY, type Html, heads, html, row, table, terminalText, trusted } from "./html.ts";
import { debuggingSentence, improvementSentence } from "./improvements.ts";
import { privateScore } from "./private-score.ts";
import { highlightPython } from "./python.ts";
import type { BestProgram, RunFolder } from "./run-folder.ts";
import { searchSections } from "./search.ts";
import { renderSvg } from "./svg.ts";
import { beforeAfter, byTask, iterations, settings, versions } from "./tables.ts";

const STYLE = readFileSync(new URL("./report.css", import.meta.url), "utf8");

export async function renderPage(run: RunFolder): Promise<string> {
  const { summary } = run;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${CONTENT_SECURITY_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${run.name} – longrun report</title>
<style>
${trusted(STYLE)}</style>
</head>
<body>
<main>
${heading(run)}
${run.trains && (await training(run))}
${run.search && (await search(run, run.search))}
${!run.trains && !run.search && (run.evaluation ? evaluationSections(run.evaluation) : html`<p class="empty">Nothing is evaluated yet.</p>`)}
<h2>Settings and versions</h2>
${summary && versions(summary.versions)}
${settings(run.manifestText, run.search?.settings.endpoint ? ["model.policy"] : [])}
<footer>Made by longrun from ${run.directory}. The numbers are in metrics.jsonl, the samples in store.sqlite.</footer>
</main>
</body>
</html>
`;
  return page.html;
}

/** Renders the sections that only a search has. */
async function search(run: RunFolder, found: NonNullable<RunFolder["search"]>): Promise<Html> {
  return html`${await searchSections(found, run.summary?.solve)}
${bestPrograms(run)}`;
}

/** Renders the sections that only a run has. */
async function training(run: RunFolder): Promise<Html> {
  const { lines, summary } = run;
  return html`${tiles(run)}
${summary?.warmStart && warmStart(summary.warmStart)}
${run.evaluation ? evaluationSections(run.evaluation) : html`<h2>Before and after</h2>${beforeAfter(run)}`}
${byTask(run)}
${lines.length > 0 ? await plots(run) : html`<p class="empty">Plots appear when the first iteration has ended.</p>`}
${bestPrograms(run)}
${run.best.length === 0 && summary?.commonErrors && errorsSection(summary.commonErrors)}
${corpus(summary, lines)}
<h2>Every iteration</h2>
<p class="soft">Launched and trained: mean duration of the programs that ended, and of those in the batch. ESS: effective sample size. KL: estimate, from the batch, of how far the policy has moved from the starting policy; if it has hardly moved, the estimate can be negative. Lag: iterations between the writing of a sample and its training.</p>
${lines.length > 0 ? iterations(lines) : html`<p class="empty">No iteration has ended yet.</p>`}`;
}

/** Renders what the policy learned from given answers before the first iteration. */
function warmStart(done: WarmStartSummary): Html {
  const { tooLong, repeated, taken, steps, isOver, seconds } = done;
  const left = [
    ...(tooLong > 0 ? [`${tooLong} with too many tokens`] : []),
    ...(repeated > 0 ? [`${repeated} equal to another one`] : []),
  ];
  return html`<h2>Warm start</h2>
<p>${sentenceOf(done)}; ${duration(seconds)}.${isOver ? "" : ` ${taken} of ${steps} steps are taken.`}</p>
${left.length > 0 && html`<p class="soft">Examples that were left out: ${left.join(", ")}.</p>`}`;
}

async function plots(run: RunFolder): Promise<Html> {
  const { learning, programs, durations, optimisation, time: clock } = chartsOf(run);
  const { durationWeighting: weighting = "Auto", collection = "CarryOver" } = run.manifest.spec?.algorithm ?? {};
  const flagged = guardSentence(run.lines);
  const reached = reachSentence(run.lines);
  const clamped = clampedSentence(run.lines);
  const improvements = improvementSentence(run.lines);
  const debugging = debuggingSentence(run.lines);
  const engine = engineSentence(run.lines);
  const generators = generatorSentence(run.lines);
  return html`<h2>Learning</h2>
${await figures(learning)}
<h2>Programs</h2>
${flagged && html`<p>${flagged}</p>`}
${reached && html`<p>${reached}</p>`}
${clamped && html`<p>${clamped}</p>`}
${improvements && html`<p>${improvements}</p>`}
${debugging && html`<p>${debugging}</p>`}
${await figures(programs)}
<h2>Durations</h2>
<p>${durationSentence(run.lines, durationWeighting({ durationWeighting: weighting, collection }), collection) || "No program has run yet."}</p>
${await figures(durations)}
<h2>Optimisation</h2>
${await figures(optimisation)}
<h2>Time</h2>
${engine && html`<p>${engine}</p>`}
${generators && html`<p>${generators}</p>`}
${await figures(clock)}`;
}

function heading({ name, manifest, tasks, lines, summary, trains, search }: RunFolder): Html {
  const total = manifest.spec?.stopping?.iterations;
  const done = lines.at(-1)?.iteration ?? 0;
  const state = summary?.state ?? (done > 0 && done === total ? "succeeded" : "running");
  const evaluated = { running: "being evaluated", succeeded: "evaluated", failed: "failed", stopped: "stopped" }[state];
  const searched = { running: "searching", succeeded: "searched", failed: "failed", stopped: "stopped" }[state];
  const trained = {
    running: `running, iteration ${Math.min(done + 1, total ?? done + 1)} of ${count(total)} (stopping.iterations)`,
    succeeded: `done, ${done} ${done === 1 ? "iteration" : "iterations"}${done === total ? " (stopping.iterations)" : ""}`,
    failed: `failed in iteration ${done + 1} of ${count(total)} (stopping.iterations)`,
    stopped: `stopped after ${done} of ${count(total)} iterations (stopping.iterations)`,
  }[state];
  const described = tasks.map(({ name: task, metric, better }) =>
    better ? `${task} (${metric}, ${better} is better)` : task,
  );
  const facts = [
    `${tasks.length === 1 ? "Task" : "Tasks"} ${described.join(", ")}`,
    summary?.isolationLevel && `isolation ${summary.isolationLevel}`,
    summary && `started ${time(summary.startedAt)}`,
    lines.length > 0 && `newest iteration ${time(lines.at(-1)!.wallTime)}`,
  ].filter(Boolean);
  return html`<header><div class="top"><h1>${name}</h1><span class="state ${state}">${trains ? trained : search ? searched : evaluated}</span></div>
<p class="soft">${facts.join(" · ")}</p>${summary?.message && html`<p class="soft">${summary.message}</p>`}</header>`;
}

function tiles({ lines, summary, tasks }: RunFolder): Html {
  const first = lines[0];
  const last = lines.at(-1);
  const from = (value: string) => (lines.length > 1 ? `first iteration ${value}` : "");
  const executed = sum(lines.map((line) => line.executed));
  const running = sum(lines.map((line) => line.executed * (line.trainedMeanDurationSeconds ?? 0)));
  const spent = sum(lines.map((line) => line.seconds));
  // Scores of different tasks have no common unit; rewards do.
  const scores =
    tasks.length > 1
      ? [tile("Mean reward", number(last?.meanReward), from(number(first?.meanReward)))]
      : [
          tile("Mean score", number(last?.meanScore), from(number(first?.meanScore))),
          tile("Best score", number(last?.bestScoreSoFar), from(number(first?.bestScore))),
        ];
  return html`<dl class="tiles">
${tile("Valid programs", percent(last?.validFraction), from(percent(first?.validFraction)))}
${scores}
${tile("Programs executed", count(executed), executed > 0 ? `they ran ${span(running)}` : "")}
${tile("Time", span(last?.elapsedSeconds ?? summary?.elapsedSeconds), last ? `${span(spent / lines.length)} per iteration` : "")}
</dl>`;
}

function tile(title: string, value: string, note: string): Html {
  return html`<div class="tile"><dt>${title}</dt><dd><div class="value">${value}</div><div class="note">${note || trusted("&nbsp;")}</div></dd></div>`;
}

/** Renders the plots with data. One sentence names the others and the reason. */
async function figures(charts: Chart[]): Promise<Html> {
  const parts: Html[] = [];
  const empty = Map.groupBy(
    charts.filter(({ spec }) => !spec),
    (chart) => chart.empty,
  );
  for (const chart of charts) {
    if (!chart.spec) continue;
    const description = chart.caption ? `${chart.title}. ${chart.caption}` : chart.title;
    const plot = trusted(await renderSvg(chart.spec, description));
    const legend = chart.legend.map(
      ({ label, color, dashed }) =>
        html`<li>${trusted(dashed ? `<i class="dashed" style="border-color:${color}"></i>` : `<i style="background:${color}"></i>`)}${label}</li>`,
    );
    parts.push(html`<figure class="${chart.size}"><h3>${chart.title}</h3>
<ul class="legend">${legend}</ul>
${chart.size === "wide" ? html`<div class="plot scroll" tabindex="0">${plot}</div>` : html`<div class="plot">${plot}</div>`}
<figcaption>${chart.caption}</figcaption></figure>
`);
  }
  const sentences = [...empty].map(
    ([why, left]) => html`<p class="empty">${left.map(({ title }) => title).join(", ")}: ${why}</p>`,
  );
  return html`${sentences}<div class="charts">${parts}</div>`;
}

/** Renders the numbers of each task's evaluation, and the best programs. */
function evaluationSections({ tasks, unfinished }: NonNullable<RunFolder["evaluation"]>): Html {
  const sections = tasks.map((task) => {
    const heading = tasks.length > 1 && html`<h3>${task.evaluation.settings?.task}</h3>`;
    return html`${heading}${evaluationSection(task)}`;
  });
  return html`<h2>Evaluation</h2>${unfinished && html`<p>It is not finished.</p>`}${sections}`;
}

type EvaluatedTask = NonNullable<RunFolder["evaluation"]>["tasks"][number];

function evaluationSection({ evaluation, programs }: EvaluatedTask): Html {
  const evaluated = evaluationTable(evaluation);
  const course = courseTable(evaluation);
  const body = evaluated.groups.map(
    ({ title, rows }) =>
      html`${title && html`<tr class="group"><th scope="rowgroup" colspan="${evaluated.heads.length + 1}">${title}</th></tr>`}${rows.map(
        ({ label, cells }) => row(label, cells),
      )}`,
  );
  return html`<p>${describeSettings(evaluation)}</p>
${evaluated.heads.length > 0 && table("comparison evaluation", heads(["", ...evaluated.heads]), body)}
${
  course &&
  html`<h3>While training</h3>${table(
    "comparison evaluation",
    heads(["", ...course.heads]),
    course.rows.map(({ label, cells }) => row(label, cells)),
  )}`
}
${programs.map(({ title, best }) => html`<details><summary>Best program ${title}</summary>${bestProgram(best)}</details>`)}`;
}

/** Renders the best program of each task, or a line that there is none. */
function bestPrograms({ best: found, tasks, lines }: RunFolder): Html {
  if (tasks.length < 2) return html`<h2>Best program</h2>${bestProgram(found[0]?.best, lines)}`;
  const sections = tasks.map(({ name }) => {
    const best = found.find(({ task }) => task === name)?.best;
    return html`<h3>${name}</h3>${bestProgram(best, lines, name)}`;
  });
  return html`<h2>Best programs</h2>${sections}`;
}

/** @param task set in a run with several tasks @param lines the run's lines; the first line with the program's score gives its iteration */
function bestProgram(best: BestProgram | undefined, lines: readonly IterationMetrics[] = [], task?: string): Html {
  if (!best)
    return html`<p class="empty">No valid program yet. The first one will stand here with its terminal output.</p>`;
  const { score, metric = "score", iteration, durationSeconds, family, guards = [], plan } = best.facts;
  const row = lines.find((line) => {
    const { bestScore = null } = task === undefined ? line : (line.tasks[task] ?? {});
    return bestScore !== null && bestScore === score;
  });
  const facts = [
    score !== undefined && `${metric} ${number(score)}`,
    row
      ? `iteration ${row.iteration}`
      : iteration !== undefined &&
        `written by the ${iteration === 0 ? "starting policy" : `policy of iteration ${iteration}`}`,
    durationSeconds !== undefined && `ran ${duration(durationSeconds)}`,
    family,
    guards.length > 0 && `flagged: ${guards.map(guardWords).join(", ")}`,
  ].filter(Boolean);
  return html`<p>${facts.join(" · ")}</p>
${privateScore(best.facts)}
${plan && html`<p class="soft">${plan}</p>`}
<div class="best"><div><h3>program.py</h3><pre>${highlightPython(best.program)}</pre></div>
<div><h3>Terminal output</h3><pre>${terminalText(best.output) || "(it printed nothing)"}</pre></div></div>`;
}

/** Renders the commonest errors, with one program of each kind. */
function errorsSection(errors: readonly CommonError[]): Html {
  const sections = errors.map(({ error, samples, example }) => {
    const times = samples === 1 ? "1 program" : `${count(samples)} programs`;
    return html`<details><summary>${times}: ${terminalText(error)}</summary><p class="soft">for example ${example.id}</p><pre>${highlightPython(example.program)}</pre></details>`;
  });
  return html`<h3>The commonest errors</h3>${sections}`;
}

/** Renders how many valid programs are copies from the starting policy's corpus. */
function corpus(summary: RunSummary | undefined, lines: readonly IterationMetrics[]): Html | undefined {
  const known = summary?.corpus;
  const judged = lines.filter((line) => line.verbatimValidShare !== null);
  if (!known && judged.length === 0) return undefined;
  const valid = sum(judged.map((line) => line.validFraction * line.samples));
  const verbatim = sum(judged.map((line) => (line.verbatimValidShare ?? 0) * line.validFraction * line.samples));
  const last = judged.at(-1)?.verbatimValidShare;
  return html`<h2>What the policy had seen before</h2>
${valid > 0 && html`<p>${percent(1 - verbatim / valid)} of the ${count(valid)} valid programs are new: the starting policy was not pretrained on them word for word. In the last iteration ${percent(1 - (last ?? 0))} are new.</p>`}
${
  known &&
  html`<p>The starting policy was pretrained on a corpus of ${count(known.programs)} programs.${
    known.bestScore === undefined
      ? " How well they would score was not measured."
      : ` The best of them scores ${number(known.bestScore)} on this task${known.bestProgram ? ` (${known.bestProgram})` : ""}, so a policy that copies programs from the corpus can reach this score.`
  }</p>`
}`;
}
