/** The report of a search for solutions (`longrun solve`): what was found, when, and the tree. */
import { budgetText, type SolveSettings } from "../../proto/solve.ts";
import { count, duration, number, span } from "../metrics/format.ts";
import type { SolveSummary } from "../metrics/summary.ts";
import { type RecordedNode, type SearchRecord, scoreColumns } from "../solve/record.ts";
import { secondsAt } from "../solve/sessions.ts";
import type { Operator } from "../solve/tree.ts";
import { type Html, heads, html, table, trusted } from "./html.ts";
import { linePlot, type Point, pointPlot, type Series } from "./plots.ts";
import { renderSvg } from "./svg.ts";
import { color } from "./theme.ts";

/** Rows of the tree that the page shows; the store has all. */
const SHOWN_ROWS = 1000;
/** Share of the valid solutions, the worst, that the plot of scores may leave out: one wild score would hide the others. */
const LEFT_OUT = 0.1;

const SERIES: Record<Operator, Series> = {
  draft: { label: "draft", color: color("grey") },
  improve: { label: "improve", color: color("blue") },
  debug: { label: "debug", color: color("orange") },
};
const BEST: Series = { label: "best so far", color: color("green"), step: true };

type Direction = SolveSummary["direction"] | undefined;

/** @param summary undefined: the search has just begun */
export async function searchSections(
  { settings, nodes }: SearchRecord,
  summary: SolveSummary | undefined,
): Promise<Html> {
  const { metric = "score", direction } = summary ?? {};
  const best = bestOf(nodes, direction);
  return html`<p>${sentenceOf(settings)}</p>
${tiles(nodes, summary, best, metric)}
<h2>Scores</h2>
${best ? await plots(nodes, metric, direction) : html`<p class="empty">No valid program yet, so there is no score.</p>`}
<h2>The tree of solutions</h2>
${nodes.length > 0 ? treeTable(nodes, metric, best) : html`<p class="empty">No solution is written yet.</p>`}`;
}

/** Returns how solutions are searched for. */
export function sentenceOf(settings: SolveSettings): string {
  const { search, drafts, debugProbability, debugDepth, exploration, budget, slots, policy, endpoint } = settings;
  const rule = {
    "best-of-n": "every solution from scratch",
    greedy: `${drafts} drafts, then with probability ${debugProbability} a failed leaf is debugged (at most ${debugDepth} times in a row), else the best is improved`,
    tree: `UCT over ranks, exploration ${exploration}, at most ${debugDepth} repairs in a row`,
  }[search];
  const writer = endpoint
    ? `${endpoint.model} at ${endpoint.url}`
    : policy!.iteration === 0
      ? "the policy of settings below"
      : `the run's policy after iteration ${policy!.iteration}`;
  return `Search ${search}: ${rule}. Written by ${writer}; budget ${budgetText(budget)}; ${slots} at a time.`;
}

function bestOf(nodes: readonly RecordedNode[], direction: Direction): RecordedNode | undefined {
  const sign = direction === "Higher" ? 1 : -1;
  return nodes.reduce<RecordedNode | undefined>((best, node) => {
    if (node.state !== "valid") return best;
    return best === undefined || sign * node.score! > sign * best.score! ? node : best;
  }, undefined);
}

function tiles(
  nodes: readonly RecordedNode[],
  summary: SolveSummary | undefined,
  best: RecordedNode | undefined,
  metric: string,
): Html {
  const valid = nodes.filter(({ state }) => state === "valid").length;
  const ran = nodes.reduce((sum, { durationSeconds }) => sum + (durationSeconds ?? 0), 0);
  const seconds = secondsAt(summary?.sessions ?? [], Number.POSITIVE_INFINITY);
  const { promptTokens = 0, answerTokens = 0, faults = 0, cost } = summary?.usage ?? {};
  const parts = [
    [
      `Best ${metric}`,
      number(best?.score),
      best ? `${best.id}, ${best.operator}, after ${span(best.finishedSeconds)}` : "",
    ],
    ["Solutions", count(nodes.length), `${count(valid)} valid`],
    ["Time", span(seconds), `programs ran ${span(ran)}`],
    ...(summary?.usage
      ? [
          [
            "Tokens",
            count(promptTokens + answerTokens),
            `${count(promptTokens)} of prompts, ${count(answerTokens)} of answers`,
          ],
          [
            "Cost",
            cost === undefined ? "–" : `${cost.toFixed(cost < 1 ? 4 : 2)} USD`,
            `${count(faults)} failed requests`,
          ],
        ]
      : []),
  ];
  const shown = parts.map(
    ([title, value, note]) =>
      html`<div class="tile"><dt>${title}</dt><dd><div class="value">${value}</div><div class="note">${note}</div></dd></div>`,
  );
  return html`<dl class="tiles">${shown}</dl>`;
}

async function plots(nodes: readonly RecordedNode[], metric: string, direction: Direction): Promise<Html> {
  const valid = nodes.filter(({ state }) => state === "valid");
  const sign = direction === "Higher" ? 1 : -1;
  const scores = valid.map(({ score }) => score!).sort((a, b) => sign * (b - a));
  const worst = scores[Math.max(0, Math.ceil(scores.length * (1 - LEFT_OUT)) - 1)]!;
  const isShown = ({ score }: RecordedNode) => sign * score! >= sign * worst;
  const numberOf = new Map(nodes.map(({ id }, index) => [id, index + 1]));
  const points = valid
    .filter(isShown)
    .map((node) => ({ x: numberOf.get(node.id)!, y: node.score!, series: node.operator }));
  const known = new Map(valid.filter(isShown).map((node) => [node.id, node]));
  const edges = [...known.values()].flatMap((node) => {
    const parent = node.parent === undefined ? undefined : known.get(node.parent);
    if (!parent) return [];
    return [{ x: numberOf.get(parent.id)!, y: parent.score!, x2: numberOf.get(node.id)!, y2: node.score! }];
  });
  const y = { title: metric };
  const left = valid.length - points.length;
  const which = `${direction === "Higher" ? "Higher" : "Lower"} is better.`;
  const edgesSaid = "A line leads from a solution to one that was made from it.";
  const operators = Object.values(SERIES);
  const all = pointPlot(points, edges, operators, { title: "solution", whole: true }, y);
  const bySolutions = bestSoFar(nodes, sign, (_, index) => index + 1);
  const byTime = bestSoFar(nodes, sign, ({ finishedSeconds }) => finishedSeconds! / 60);
  const ended = linePlot(bySolutions, [BEST], { title: "solutions that have ended", whole: true }, y, "half");
  const minutes = linePlot(byTime, [BEST], { title: "minutes of search", zero: true }, y, "half");
  const omitted = left > 0 ? ` ${count(left)} worse ones are left out.` : "";
  return html`<div class="charts">
${await figure("wide", ["Scores by solution", `${which} ${edgesSaid}${omitted}`], operators, all)}
${await figure("half", ["Best score by solutions", which], [BEST], ended)}
${await figure("half", ["Best score by time", which], [BEST], minutes)}
</div>`;
}

/** Returns the best score after each solution that ended, in the order of their ends. */
function bestSoFar(
  nodes: readonly RecordedNode[],
  sign: number,
  at: (node: RecordedNode, index: number) => number,
): Point[] {
  let best: number | undefined;
  return nodes
    .filter(({ finishedSeconds }) => finishedSeconds !== null)
    .sort((a, b) => a.finishedSeconds! - b.finishedSeconds!)
    .flatMap((node, index) => {
      if (node.state === "valid" && (best === undefined || sign * node.score! > sign * best)) best = node.score!;
      return best === undefined ? [] : [{ x: at(node, index), y: best, series: BEST.label }];
    });
}

async function figure(
  size: "wide" | "half",
  [title, caption]: [string, string],
  legend: readonly Series[],
  spec: Parameters<typeof renderSvg>[0],
): Promise<Html> {
  const items = legend.map(
    ({ label, color: shade }) => html`<li>${trusted(`<i style="background:${shade}"></i>`)}${label}</li>`,
  );
  return html`<figure class="${size}"><h3>${title}</h3><ul class="legend">${items}</ul><div class="plot">${trusted(await renderSvg(spec, `${title}. ${caption}`))}</div><figcaption>${caption}</figcaption></figure>`;
}

/** Rows in the tree's order: each solution below the one that its prompt showed. */
function treeTable(nodes: readonly RecordedNode[], metric: string, best: RecordedNode | undefined): Html {
  const children = Map.groupBy(nodes, ({ parent }) => parent);
  const ids = new Set(nodes.map(({ id }) => id));
  const rows: { node: RecordedNode; level: number }[] = [];
  // A solution whose parent the infrastructure lost stands at the top.
  const open = nodes
    .filter(({ parent }) => parent === undefined || !ids.has(parent))
    .map((node) => ({ node, level: 0 }))
    .reverse();
  for (let next = open.pop(); next; next = open.pop()) {
    rows.push(next);
    const { level } = next;
    open.push(...(children.get(next.node.id) ?? []).map((node) => ({ node, level: level + 1 })).reverse());
  }
  const line = new Set<string>();
  const byId = new Map(nodes.map((node) => [node.id, node]));
  for (let at = best; at; at = at.parent === undefined ? undefined : byId.get(at.parent)) line.add(at.id);
  const columns = scoreColumns(metric);
  const body = rows.slice(0, SHOWN_ROWS).map(({ node, level }) => {
    const result =
      node.state === "valid" ? (node.id === best?.id ? "the best" : "valid") : (node.reason ?? "not ended");
    const cells = [
      ...columns.map(({ of }) => number(of(node))),
      ...[result, node.family ?? "", duration(node.durationSeconds), span(node.finishedSeconds)],
    ];
    const name = `${"\u2003".repeat(level)}${level > 0 ? "└ " : ""}${node.id} ${node.operator}`;
    return html`<tr${line.has(node.id) && trusted(' class="best-line"')}><th scope="row">${name}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`;
  });
  const titles = ["", ...columns.map(({ title }) => title), "result", "kind of model", "ran", "ended after"];
  const left = rows.length - body.length;
  return html`<p class="soft">Below each solution stand those that were made from it. The line to the best one is marked.${left > 0 ? ` ${count(left)} further solutions: longrun samples.` : ""}</p>
${table("solutions", heads(titles), body)}`;
}
