/** The style of plots. Colours are CSS variables of report.css, so one SVG serves light and dark pages. */
import type { Config } from "vega-lite";

export const PALETTE = ["blue", "orange", "green", "red", "purple", "brown", "pink", "teal", "yellow"] as const;

export function color(name: (typeof PALETTE)[number] | "grey" | "pale"): string {
  return `var(--${name})`;
}

export const theme: Config = {
  aria: false,
  background: "transparent",
  font: "system-ui, sans-serif",
  padding: 2,
  view: { stroke: null },
  axis: {
    domainColor: "var(--line)",
    gridColor: "var(--line)",
    tickColor: "var(--line)",
    tickSize: 4,
    labelColor: "var(--soft)",
    labelFontSize: 11,
    labelPadding: 4,
    titleColor: "var(--soft)",
    titleFontSize: 11,
    titlePadding: 8,
    titleFontWeight: "normal",
  },
  axisX: { grid: false },
  axisY: { domain: false, ticks: false, tickCount: 5 },
  line: { strokeWidth: 2, strokeCap: "round", strokeJoin: "round" },
  point: { size: 22, filled: true, opacity: 1 },
  legend: { disable: true },
};
