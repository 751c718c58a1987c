/** Checks dashboards, alerts and runbooks as far as possible without Prometheus; `npm run test:observability` checks the rest. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { CHART, DASHBOARDS } from "./generate.ts";
import { expand, grafana } from "./grafana.ts";
import { seriesNames } from "./registries.ts";

interface Rule {
  alert: string;
  expr: string;
  annotations: Record<string, string>;
}

const rules = readdirSync(`${CHART}alerts`).flatMap((file): Rule[] =>
  parse(readFileSync(`${CHART}alerts/${file}`, "utf8")).groups.flatMap((group: { rules: Rule[] }) => group.rules),
);
const panels = Object.entries(DASHBOARDS).flatMap(([name, { variables, rows }]) =>
  rows.flatMap((row) => row.panels.map((panel) => ({ where: `${name}: ${panel.title}`, variables, panel }))),
);

/** Metric names before a selector, a range or an operator; functions and labels do not begin like this. */
const METRIC = /\b(?:longrun|controller_runtime|workqueue|rest_client|leader_election|process|nodejs)_\w+/g;

test("Some part serves every metric of each panel, variable and alert", async () => {
  const served = await seriesNames();
  const queries = [
    ...panels.flatMap(({ where, panel }) => panel.queries.map(([query]) => [where, query] as const)),
    ...Object.values(DASHBOARDS).flatMap(({ variables }) =>
      variables.map(({ name, query }) => [`variable ${name}`, query] as const),
    ),
    ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ];
  assert.ok(queries.length > 100);
  for (const [where, query] of queries) {
    const names = query.match(METRIC) ?? [];
    assert.ok(names.length > 0, `${where}: ${query}`);
    for (const name of names) assert.ok(served.has(name), `${where}: no part serves ${name}`);
  }
});

/** Names, scores in the task's own unit, and numbers that must be exact (`short` shows 1.23 K). */
const WITHOUT_UNIT = [
  ...["training: Doing", "training: Best score", "training: Score by time", "training: Score by iteration"],
  ...[
    "training: Iteration",
    "training: Reward",
    "training: Gradient norm",
    "training: Sampling and training",
    "fleet: Every run",
    "operator: Leader",
  ],
];

test("Every panel has a unit, except the ones that need none", () => {
  const without = panels.filter(({ panel }) => ["", "none"].includes(panel.unit)).map(({ where }) => where);
  assert.deepEqual(without.sort(), WITHOUT_UNIT.sort());
});

test("every panel has a description for people, and a legend for each query", () => {
  for (const { where, panel } of panels) {
    assert.match(panel.description, /^[A-Z0-9].{15,}\.$/s, where);
    if (panel.as !== "table") for (const [, legend] of panel.queries) assert.notEqual(legend, "", where);
  }
  const titles = panels.map(({ where }) => where);
  assert.deepEqual(
    titles.filter((title, index) => titles.indexOf(title) !== index),
    [],
  );
});

test("Each query has the dashboard's variables where it can, and only once", () => {
  for (const { where, variables, panel } of panels)
    for (const [query] of panel.queries) {
      const expanded = expand(query, variables);
      assert.doesNotMatch(expanded, /\{@|\{,/, where);
      for (const { name } of variables) assert.ok(expanded.includes(`"$${name}"`), `${where}: ${expanded}`);
    }
});

test("panels do not overlap, and none is wider than the dashboard", () => {
  for (const dashboard of Object.values(DASHBOARDS)) {
    const taken = new Set<string>();
    for (const { title, gridPos } of (
      grafana(dashboard) as { panels: { title: string; gridPos: Record<string, number> }[] }
    ).panels)
      for (let x = gridPos.x!; x < gridPos.x! + gridPos.w!; x++)
        for (let y = gridPos.y!; y < gridPos.y! + gridPos.h!; y++) {
          assert.ok(x < 24 && !taken.has(`${x} ${y}`), title);
          taken.add(`${x} ${y}`);
        }
  }
});

test("Each alert has a runbook, and each runbook has an alert", () => {
  const runbooks = readdirSync(`${CHART}runbooks`).sort();
  assert.deepEqual(runbooks, rules.map(({ alert }) => `${alert}.md`).sort());
  for (const file of runbooks) {
    const text = readFileSync(`${CHART}runbooks/${file}`, "utf8");
    const headings = text.match(/^#+ .*$/gm);
    assert.deepEqual(headings, [`# ${file.slice(0, -3)}`, "## What it means", "## Look at", "## Do"], file);
    for (const [, link] of text.matchAll(/\]\(([^)#]+)/g)) assert.ok(runbooks.includes(link!), `${file}: ${link}`);
    for (const [name] of text.matchAll(/\*[A-Z][^*\n]*\*(?!\*)/g)) {
      const title = name.slice(1, -1).replaceAll("\n", " ");
      assert.ok(
        panels.some(({ panel }) => panel.title === title),
        `${file}: there is no panel ${title}`,
      );
    }
  }
});
