/** The experiments' two plots: courses of runs, and differences between arms with their intervals. */
import type { TopLevelSpec } from "vega-lite";
import { color } from "../../learner/report/theme.ts";
import { mean } from "./statistics.ts";

export interface Series {
  label: string;
  color: string;
}

export const COLORS = [color("grey"), color("orange"), color("blue"), color("green"), color("purple"), color("red")];

export interface CoursePoint {
  x: number;
  y: number | null;
  series: string;
  seed: number;
  /** Points of different seeds with the same step are averaged, x and y alike. */
  step: number;
}

export interface Panel {
  title: string;
  x: string;
  y: string;
  points: CoursePoint[];
  /** Holds its value until the next point, for a best-so-far; then no mean is drawn. */
  steps?: boolean;
  /** Lower end of the y axis; points below are not drawn. Absent: the lowest point. */
  from?: number;
}

/**
 * Draws every run as a thin line, and the mean over seeds, where all have a value, as a thick one.
 *
 * @param rows panels from top to bottom, left to right
 */
export function coursesPlot(rows: Panel[][], series: Series[]): TopLevelSpec | undefined {
  if (rows.flat().every(({ points }) => points.length === 0)) return undefined;
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    vconcat: rows.map((panels) => ({ hconcat: panels.map((panel) => course(panel, series)) })),
    // biome-ignore lint/suspicious/noExplicitAny: vega-lite's types of nested concatenations are not inferred
  } as any;
}

function course({ title, x, y, points, steps, from }: Panel, series: Series[]) {
  const drawn = points.filter((point) => point.y !== null && Number.isFinite(point.y));
  const groups = Map.groupBy(drawn, (point) => JSON.stringify([point.series, point.step]));
  const seedsOf = (label: string) => new Set(drawn.filter((one) => one.series === label).map(({ seed }) => seed)).size;
  // A mean over only the longer seeds would not be comparable with the mean before.
  const whole = [...groups.values()].filter((group) => group.length === seedsOf(group[0]!.series));
  const means = whole.map((group) => ({
    ...group[0]!,
    x: mean(group.map((point) => point.x)),
    y: mean(group.map((point) => point.y!)),
  }));
  const encoding = {
    x: { field: "x", type: "quantitative", title: x, axis: { tickCount: 6 } },
    y: {
      field: "y",
      type: "quantitative",
      title: y,
      scale: { zero: false, ...(from !== undefined && { domainMin: from }) },
    },
    color: {
      field: "series",
      type: "nominal",
      scale: { domain: series.map(({ label }) => label), range: series.map((one) => one.color) },
      legend: legend(series.length),
    },
    order: { field: "step" },
  };
  const interpolate = { ...(steps && { interpolate: "step-after" }), clip: from !== undefined };
  const each = {
    data: { values: drawn },
    mark: { type: "line", strokeWidth: 1, opacity: steps ? 0.7 : 0.35, ...interpolate },
    encoding: { ...encoding, detail: { field: "seed" } },
  };
  const average = { data: { values: means }, mark: { type: "line", strokeWidth: 2.5 }, encoding };
  const layer = steps ? [each] : [each, average];
  return { title: titled(title), width: 270, height: 170, layer };
}

export interface DifferenceRow {
  label: string;
  each: number[];
  mean: number;
  interval: [number, number] | null;
  /** Colour of the row; absent: the text's colour. */
  series?: string;
}

/** Draws differences between arms: a tick per seed, a dot for the mean, a bar for its 95 % interval, and a rule at 0. */
export function differencesPlot(all: { title: string; x: string; rows: DifferenceRow[] }[]): TopLevelSpec | undefined {
  const panels = all.filter(({ rows }) => rows.length > 0);
  if (panels.length === 0) return undefined;
  const longest = Math.max(...panels.flatMap(({ rows }) => rows.map(({ label }) => label.length)));
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    hconcat: panels.map(({ title, x, rows }) => {
      const y = {
        field: "label",
        type: "nominal",
        sort: rows.map(({ label }) => label),
        title: null,
        axis: { labelLimit: 8 * longest, grid: true },
      };
      const at = { field: "value", type: "quantitative", title: x, scale: { padding: 12 }, axis: { tickCount: 5 } };
      const bars = rows.flatMap(({ label, interval }) =>
        interval === null ? [] : [{ label, value: interval[0], high: interval[1] }],
      );
      return {
        title: titled(title),
        width: 260,
        height: { step: 22 },
        layer: [
          {
            data: { values: [{ value: 0 }] },
            mark: { type: "rule", color: "var(--soft)", strokeDash: [3, 3] },
            encoding: { x: at },
          },
          {
            data: { values: bars },
            mark: { type: "rule", strokeWidth: 2.5, color: color("blue") },
            encoding: { x: at, x2: { field: "high" }, y },
          },
          {
            data: { values: rows.flatMap(({ label, each }) => each.map((value) => ({ label, value }))) },
            mark: { type: "tick", thickness: 1.5, size: 10, color: "var(--soft)" },
            encoding: { x: at, y },
          },
          {
            data: { values: rows.map(({ label, mean: value }) => ({ label, value })) },
            mark: { type: "circle", size: 55, opacity: 1, color: "var(--ink)" },
            encoding: { x: at, y },
          },
        ],
      };
    }),
    // biome-ignore lint/suspicious/noExplicitAny: as above
  } as any;
}

function legend(count: number) {
  return {
    disable: false,
    title: null,
    symbolStrokeWidth: 3,
    symbolOpacity: 1,
    labelFontSize: 11,
    orient: "top",
    columns: Math.min(count, 4),
    labelLimit: 300,
  };
}

function titled(text: string) {
  return { text, fontSize: 12, fontWeight: "normal", anchor: "start", color: "var(--ink)" };
}
