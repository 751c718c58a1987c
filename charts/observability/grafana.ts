/**
 * Converts a table of panels to a Grafana dashboard (schema version 39, Grafana 10.4 and later).
 *
 * In a query `{@}` stands for the dashboard's variables, so that `longrun_iteration{@}` is read as
 * `longrun_iteration{namespace="$namespace", run="$run"}`, and `{@, state="queued"}` likewise.
 */

export interface Panel {
  title: string;
  /**
   * A unit of Grafana: https://github.com/grafana/grafana/blob/main/packages/grafana-data/src/valueFormats/categories.ts. Counts: `short`.
   * A unit that Grafana lacks: `suffix:UNIT`, with a space before UNIT. `none`: names, and numbers without a unit.
   */
  unit: string;
  /** For readers who do not know reinforcement learning: the meaning, and which values are good. */
  description: string;
  /** Query and legend; for a table, query and column. */
  queries: readonly (readonly [query: string, legend: string])[];
  /** `byFirst`: the first query is the x axis of the others. [time] */
  as?: "time" | "number" | "name" | "table" | "byFirst";
  stacked?: boolean;
  min?: number;
  max?: number;
  logarithmic?: boolean;
  /** Width in 24ths. [8, for a number 4, for a table 24] */
  width?: number;
}

export interface Row {
  title: string;
  panels: readonly Panel[];
}

export interface Dashboard {
  uid: string;
  title: string;
  description: string;
  /** Variables by name, with the query for their values. `several`: any number of values can be chosen. */
  variables: readonly { name: string; label: string; query: string; several?: boolean }[];
  from: string;
  rows: readonly Row[];
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's, which puts the dashboard's variable there
const SOURCE = { type: "prometheus", uid: "${datasource}" };
const COLUMNS = 24;
const HEIGHTS = { time: 8, byFirst: 8, table: 9, number: 4, name: 4 };
const WIDTHS = { time: 8, byFirst: 8, table: COLUMNS, number: 4, name: 4 };

/** Returns the query in Grafana's form. */
export function expand(query: string, variables: Dashboard["variables"]): string {
  const selectors = variables.map(({ name, several }) => `${name}${several ? "=~" : "="}"$${name}"`).join(", ");
  return query.replaceAll("{@", `{${selectors}`);
}

export function grafana({ uid, title, description, variables, from, rows }: Dashboard): object {
  const panels: object[] = [];
  let y = 0;
  for (const row of rows) {
    panels.push({
      id: panels.length + 1,
      type: "row",
      title: row.title,
      collapsed: false,
      panels: [],
      gridPos: at(0, y, COLUMNS, 1),
    });
    y += 1;
    let x = 0;
    let tallest = 0;
    for (const panel of row.panels) {
      const kind = panel.as ?? "time";
      const width = panel.width ?? WIDTHS[kind];
      if (x + width > COLUMNS) {
        x = 0;
        y += tallest;
        tallest = 0;
      }
      const position = at(x, y, width, HEIGHTS[kind]);
      panels.push({ id: panels.length + 1, gridPos: position, ...panelOf(panel, variables) });
      x += width;
      tallest = Math.max(tallest, HEIGHTS[kind]);
    }
    y += tallest;
  }
  return {
    uid,
    title,
    description,
    tags: ["longrun"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    timezone: "browser",
    graphTooltip: 1,
    refresh: "30s",
    time: { from, to: "now" },
    links: [
      { type: "dashboards", tags: ["longrun"], title: "longrun", asDropdown: true, keepTime: true, includeVars: true },
    ],
    annotations: { list: [] },
    templating: {
      list: [
        { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" },
        ...variables.map((variable, index) => variableOf(variable, variables.slice(0, index))),
      ],
    },
    panels,
  };
}

const at = (x: number, y: number, w: number, h: number) => ({ x, y, w, h });

/** The query for each variable's values depends on the variables before it. */
function variableOf({ name, label, query, several }: Dashboard["variables"][number], before: Dashboard["variables"]) {
  return {
    name,
    label,
    type: "query",
    datasource: SOURCE,
    refresh: 2,
    sort: 1,
    query: { query: expand(query, before), refId: name },
    ...(several && { multi: true, includeAll: true, current: { text: "All", value: "$__all" } }),
  };
}

function panelOf(panel: Panel, variables: Dashboard["variables"]) {
  const kind = panel.as ?? "time";
  const { title, description } = panel;
  // With a range, a number would be the last one of every series that existed at some time in the range.
  const instant = kind === "table" || kind === "number" || kind === "name";
  const targets = panel.queries.map(([query, legend], index) => ({
    refId: refId(index),
    datasource: SOURCE,
    editorMode: "code",
    expr: expand(query, variables),
    ...(instant ? { instant: true, range: false } : { range: true }),
    ...(kind === "table" ? { format: "table" } : { legendFormat: legend }),
  }));
  const defaults = {
    unit: panel.unit,
    ...(panel.min !== undefined && { min: panel.min }),
    ...(panel.max !== undefined && { max: panel.max }),
  };
  return { title, description, datasource: SOURCE, targets, ...LOOKS[kind](panel, defaults) };
}

const refId = (index: number): string => String.fromCharCode(65 + index);

/** Settings that differ between kinds of panels. */
const LOOKS: Record<NonNullable<Panel["as"]>, (panel: Panel, defaults: object) => object> = {
  time: ({ stacked, logarithmic }, defaults) => ({
    type: "timeseries",
    fieldConfig: {
      defaults: {
        ...defaults,
        custom: {
          lineWidth: 1,
          showPoints: "auto",
          pointSize: 4,
          lineInterpolation: stacked ? "stepAfter" : "linear",
          fillOpacity: stacked ? 40 : 0,
          stacking: { mode: stacked ? "normal" : "none", group: "A" },
          ...(logarithmic && { scaleDistribution: { type: "log", log: 10 } }),
        },
      },
      overrides: [],
    },
    options: {
      legend: { displayMode: "list", placement: "bottom", showLegend: true },
      tooltip: { mode: "multi", sort: "desc" },
    },
  }),
  number: (_, defaults) => ({
    type: "stat",
    fieldConfig: { defaults, overrides: [] },
    options: { reduceOptions: { calcs: ["lastNotNull"] }, colorMode: "none", graphMode: "none", textMode: "auto" },
  }),
  name: (_, defaults) => ({
    type: "stat",
    fieldConfig: { defaults, overrides: [] },
    options: { reduceOptions: { calcs: ["lastNotNull"] }, colorMode: "none", graphMode: "none", textMode: "name" },
  }),
  table: ({ queries }, defaults) => {
    const columns = queries.map(([, column], index) => [`Value #${refId(index)}`, column] as const);
    const shown = columns.filter(([, column]) => column !== "");
    return {
      type: "table",
      fieldConfig: { defaults, overrides: [] },
      options: { showHeader: true, cellHeight: "sm" },
      transformations: [
        { id: "merge", options: {} },
        {
          id: "organize",
          options: {
            // A query without a column is only there for its labels.
            excludeByName: Object.fromEntries([
              ["Time", true],
              ...columns.filter(([, column]) => column === "").map(([value]) => [value, true]),
            ]),
            renameByName: Object.fromEntries(shown),
          },
        },
      ],
    };
  },
  byFirst: (_, defaults) => ({
    type: "xychart",
    fieldConfig: {
      defaults: { ...defaults, custom: { show: "points+lines", pointSize: { fixed: 4 }, lineWidth: 1 } },
      overrides: [],
    },
    options: {
      mapping: "auto",
      series: [],
      legend: { displayMode: "list", placement: "bottom", showLegend: true },
      tooltip: { mode: "single" },
    },
    transformations: [
      { id: "joinByField", options: { byField: "Time", mode: "outer" } },
      { id: "organize", options: { excludeByName: { Time: true } } },
    ],
  }),
};
