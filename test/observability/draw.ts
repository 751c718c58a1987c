/** Draws panels' data, so that people can look at them without Grafana. Not the same as Grafana's drawing. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, View } from "vega";
import { compile, type TopLevelSpec } from "vega-lite";
import type { Series } from "./prometheus.ts";

export interface Drawing {
  /** Grafana's type: `timeseries`, `stat`, `table`, `xychart`; `row` starts a new picture. */
  type: string;
  title: string;
  unit: string;
  answers: { legend: string; series: Series[] }[];
}

const COLUMNS = 3;

/** Writes one SVG for each row of the dashboard to LONGRUN_PICTURES; does nothing without it. */
export async function draw(dashboard: string, drawings: readonly Drawing[]): Promise<void> {
  const folder = process.env.LONGRUN_PICTURES;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  let row: Drawing[] = [];
  let title = "";
  const finish = async () => {
    if (row.length > 0)
      writeFileSync(join(folder, `${dashboard}-${title}.svg`), await svg(`${dashboard}: ${title}`, row));
    row = [];
  };
  for (const drawing of drawings) {
    if (drawing.type === "row") {
      await finish();
      title = drawing.title;
    } else row.push(drawing);
  }
  await finish();
}

function svg(title: string, row: readonly Drawing[]): Promise<string> {
  const spec: TopLevelSpec = {
    ...{ $schema: "https://vega.github.io/schema/vega-lite/v6.json", title, columns: COLUMNS },
    resolve: { scale: { color: "independent", x: "independent", y: "independent" } },
    concat: row.map(chart),
  } as TopLevelSpec;
  return new View(parse(compile(spec).spec), { renderer: "none" }).toSVG();
}

interface Point {
  x: number | string;
  y: number;
  series: string;
}

function chart({ type, title, unit, answers }: Drawing): object {
  const size = { width: 300, height: 150, title: `${title} [${unit}]` };
  if (type === "stat" || type === "table") {
    const rows = answers.flatMap(({ legend, series }) =>
      series.map((it) => ({ text: `${name(legend, it.metric)}: ${(it.values?.at(-1) ?? it.value)![1]}` })),
    );
    return {
      ...size,
      height: Math.max(30, 14 * rows.length),
      data: { values: rows.map((row, index) => ({ ...row, index })) },
      mark: { type: "text", align: "left", fontSize: 11 },
      encoding: { text: { field: "text" }, y: { field: "index", type: "ordinal", axis: null }, x: { value: 0 } },
    };
  }
  const points = type === "xychart" ? byFirst(answers) : byTime(answers);
  return {
    ...size,
    data: { values: points },
    mark: { type: "line", point: type === "xychart" ? true : { size: 4 } },
    encoding: {
      x: { field: "x", type: type === "xychart" ? "quantitative" : "temporal", title: null },
      y: { field: "y", type: "quantitative", title: null, scale: { zero: false } },
      color: {
        field: "series",
        type: "nominal",
        title: null,
        legend: { orient: "bottom", columns: 2, labelLimit: 140 },
      },
    },
  };
}

const byTime = (answers: Drawing["answers"]): Point[] =>
  answers.flatMap(({ legend, series }) =>
    series.flatMap(({ metric, values }) =>
      (values ?? []).map(([at, value]) => ({ x: at * 1000, y: Number(value), series: name(legend, metric) })),
    ),
  );

/** The first query's value at the same time is x. */
function byFirst([first, ...others]: Drawing["answers"]): Point[] {
  const x = new Map(first!.series[0]?.values?.map(([at, value]) => [at, Number(value)]));
  return byTime(others).flatMap((point) => {
    const at = x.get(Number(point.x) / 1000);
    return at === undefined ? [] : [{ ...point, x: at }];
  });
}

/** Returns the legend with its labels filled in. */
function name(legend: string, metric: Record<string, string>): string {
  const labels = Object.entries(metric).map(([label, value]) => `${label}=${value}`);
  return legend === ""
    ? labels.join(" ")
    : legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? "");
}
