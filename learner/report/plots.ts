/** The shapes of plot that the report uses, as Vega-Lite specifications. Colours are CSS variables. */
import type { TopLevelSpec } from "vega-lite";

export interface Series {
  label: string;
  color: string;
  dashed?: boolean;
  /** Whether the line holds its value until the next point, as the best score so far does. */
  step?: boolean;
}

export interface Axis {
  title: string;
  /** A d3 format. */
  format?: string;
  zero?: boolean;
  domain?: [number, number];
  whole?: boolean;
}

export interface Point {
  x: number;
  y: number;
  series: string;
}

export type Size = "wide" | "half" | "third";

const SIZES = {
  wide: { width: 1000, height: 240 },
  half: { width: 485, height: 230 },
  third: { width: 313, height: 170 },
};

export function linePlot(points: Point[], series: readonly Series[], x: Axis, y: Axis, size: Size): TopLevelSpec {
  const xs = points.map((point) => point.x);
  const [from, to] = [x.zero ? 0 : Math.min(...xs), Math.max(...xs)];
  const ys = points.map((point) => point.y);
  const flat = Math.min(...ys) === Math.max(...ys);
  const room = (Math.abs(ys[0]!) || 1) / 4;
  const domain = y.domain ?? (flat ? [y.zero ? 0 : ys[0]! - room, ys[0]! + room] : undefined);
  const encoding = {
    x: {
      field: "x",
      type: "quantitative" as const,
      title: x.title,
      scale: { zero: false, nice: false, domain: from === to ? [from - 0.5, to + 0.5] : [from, to], padding: 8 },
      axis: x.whole ? { values: wholeTicks(xs, from), format: "d" } : { tickCount: 7 },
    },
    y: { ...height(y), scale: { zero: y.zero ?? false, ...(domain && { domain }) } },
    color: colors(series),
  };
  // Dashed lines are drawn last, because an equal solid line would hide them.
  const order = [...series].sort((a, b) => Number(a.dashed ?? false) - Number(b.dashed ?? false));
  const layer = order.map((line) => ({
    transform: [{ filter: { field: "series", equal: line.label } }],
    mark: {
      type: "line" as const,
      ...(line.dashed && { strokeDash: [5, 4] }),
      ...(line.step && { interpolate: "step-after" as const }),
      point: !line.step && xs.length <= 30 * series.length,
    },
    encoding,
  }));
  return { ...frame(size), data: { values: points }, layer };
}

/** Lines that hold their value until the next point, each within a band from `low` to `high`. */
export function bandPlot(
  points: (Point & { low: number; high: number })[],
  series: readonly Series[],
  x: Axis,
  y: Axis,
): TopLevelSpec {
  const encoding = {
    x: { field: "x", type: "quantitative" as const, title: x.title, scale: { nice: false }, axis: { tickCount: 7 } },
    y: { ...height(y), scale: { zero: false } },
    color: colors(series),
  };
  const band = {
    mark: { type: "area" as const, opacity: 0.15, interpolate: "step-after" as const },
    encoding: { ...encoding, y: { ...encoding.y, field: "low" }, y2: { field: "high" } },
  };
  const line = { mark: { type: "line" as const, interpolate: "step-after" as const }, encoding };
  return { ...frame("half"), data: { values: points }, layer: [band, line] };
}

/** Points, and lines that connect some of them. */
export function pointPlot(
  points: Point[],
  lines: { x: number; y: number; x2: number; y2: number }[],
  series: readonly Series[],
  x: Axis,
  y: Axis,
): TopLevelSpec {
  const axis = { values: wholeTicks(points.map((point) => point.x)), format: "d" };
  const at = {
    x: { field: "x", type: "quantitative" as const, title: x.title, scale: { zero: false, padding: 8 }, axis },
    y: { ...height(y), scale: { zero: false } },
  };
  const edges = {
    data: { values: lines },
    mark: { type: "rule" as const, color: "var(--line)" },
    encoding: { ...at, x2: { field: "x2" }, y2: { field: "y2" } },
  };
  const dots = {
    data: { values: points },
    mark: { type: "point" as const },
    encoding: { ...at, color: colors(series) },
  };
  return { ...frame("wide"), layer: [edges, dots] };
}

/** Stacked bars, one per iteration; the first of `series` is at the bottom. @param shares scales every bar to 1 */
export function stackPlot(
  bars: Point[],
  series: readonly Series[],
  { x, y, size, shares }: { x: Axis; y: Axis; size: Size; shares: boolean },
): TopLevelSpec {
  const order = new Map(series.map(({ label }, index) => [label, index]));
  const xs = bars.map((bar) => bar.x);
  return {
    ...frame(size),
    data: { values: bars.map((bar) => ({ ...bar, order: order.get(bar.series) })) },
    mark: { type: "bar", stroke: "var(--paper)", strokeWidth: xs.length > 60 * series.length ? 0 : 0.5 },
    encoding: {
      x: {
        field: "x",
        type: "ordinal",
        title: x.title,
        scale: { paddingInner: 0.15, paddingOuter: new Set(xs).size < 4 ? 1.5 : 0.1 },
        axis: { labelAngle: 0, values: wholeTicks(xs) },
      },
      y: { ...height(y), stack: shares ? "normalize" : "zero" },
      color: colors(series),
      order: { field: "order" },
    },
  };
}

export function groupedPlot(
  bars: { group: string; y: number; series: string }[],
  series: readonly Series[],
  text: { x: Axis; y: Axis },
  size: Size,
): TopLevelSpec {
  return {
    ...frame(size),
    data: { values: bars },
    mark: { type: "bar" },
    encoding: {
      x: { field: "group", type: "nominal", sort: null, title: text.x.title, axis: { labelAngle: 0 } },
      xOffset: { field: "series", sort: series.map(({ label }) => label) },
      y: height(text.y),
      color: colors(series),
    },
  };
}

/** A grid of shares from 0 to 1: rows keep their order, and a stronger colour is a larger share. Small grids show the numbers too. */
export function heatPlot(cells: { x: number; row: string; share: number }[], x: Axis, fill: string): TopLevelSpec {
  const xs = cells.map((cell) => cell.x);
  const columns = new Set(xs).size;
  const position = {
    x: {
      field: "x",
      type: "ordinal" as const,
      title: x.title,
      axis: { labelAngle: 0, domain: false, ticks: false, values: wholeTicks(xs) },
    },
    y: { field: "row", type: "nominal" as const, sort: null, title: null, axis: { labelLimit: 150 } },
  };
  const share = { field: "share", type: "quantitative" as const };
  const squares = {
    mark: { type: "rect" as const, color: fill, stroke: "var(--paper)", strokeWidth: columns > 40 ? 0 : 1.5 },
    encoding: { ...position, opacity: { ...share, scale: { domain: [0, 1], range: [0.04, 1] } } },
  };
  const numbers = {
    mark: { type: "text" as const, fontSize: 10 },
    encoding: {
      ...position,
      text: { ...share, format: ".0%" },
      // Dark text on light squares and the other way round, on light pages and on dark ones.
      color: {
        condition: [
          { test: "datum.share > 0.86", value: "var(--paper)" },
          { test: "datum.share > 0.62", value: "var(--on-middle)" },
        ],
        value: "var(--ink)",
      },
    },
  };
  return { ...frame("wide"), data: { values: cells }, layer: columns <= 12 ? [squares, numbers] : [squares] };
}

const colors = (series: readonly Series[]) => ({
  field: "series",
  scale: { domain: series.map(({ label }) => label), range: series.map(({ color }) => color) },
});

const height = ({ title, format }: Axis) => ({
  field: "y",
  type: "quantitative" as const,
  title,
  axis: { ...(format && { format }) },
});

function frame(size: Size) {
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    ...SIZES[size],
    autosize: { type: "fit" as const, contains: "padding" as const },
  };
}

/** At most about ten whole numbers, evenly apart, up to the largest of `xs`. */
function wholeTicks(xs: readonly number[], from = Math.min(...xs)): number[] {
  const to = Math.max(...xs);
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  const step = steps.find((candidate) => (to - from) / candidate <= 12) ?? 2000;
  const ticks: number[] = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) ticks.push(tick);
  return ticks;
}
