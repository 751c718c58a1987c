/** Tables of a comparison. */
import { markdownTable } from "../evaluation/rows.ts";
import { count, number, span } from "../metrics/format.ts";
import { type ArmResult, AXES, type Axis, type Point, type TaskResult } from "./compare.ts";

const TITLES: Record<Axis, string> = { executions: "executions", seconds: "time" };
export const placeText = (axis: Axis, at: number): string =>
  axis === "executions" ? count(at) : span(at).replace(/(?<=min|h|d) 0 \w+$/, "");

/** Returns the comparison in Markdown. */
export function compareMarkdown(results: readonly TaskResult[]): string {
  const note =
    "Best score so far, mean over the folders of an arm that came so far, in brackets its 95 % bootstrap interval: over folders, or, of a " +
    "single folder, over its drafts with their descendants, which says nothing of other seeds. N/A: no valid program. –: not so far.";
  return `${[note, ...results.flatMap(taskTables)].join("\n\n")}\n`;
}

function taskTables({ task, metric, direction, arms }: TaskResult): string[] {
  const tables = AXES.map((axis) => {
    const places = placesOf(arms, axis);
    const body = arms.map(({ arm, curves }) => [
      arm,
      ...places.map((place) => cellOf(curves[axis].find(({ at }) => at === place))),
    ]);
    return `By ${TITLES[axis]}:\n\n${markdownTable(["", ...places.map((place) => placeText(axis, place))], body)}`;
  });
  return [`## ${task} (${metric}, ${direction.toLowerCase()} is better)`, ...tables, endTable(arms)];
}

export const placesOf = (arms: readonly ArmResult[], axis: Axis): number[] =>
  [...new Set(arms.flatMap(({ curves }) => curves[axis].map(({ at }) => at)))].sort((a, b) => a - b);

function cellOf(point: Point | undefined): string {
  if (point === undefined) return "–";
  if (point.best === null) return "N/A";
  const { interval, folders, valid } = point;
  const range = interval ? ` [${number(interval[0])}, ${number(interval[1])}]` : "";
  return `${number(point.best)}${range}${valid < folders ? ` (${valid} of ${folders})` : ""}`;
}

function endTable(arms: readonly ArmResult[]): string {
  const heads = ["At the end", "best score", "folders", "executions", "time", "tokens", "cost"];
  const body = arms.map(({ arm, folders, end, executions, seconds, tokens, cost }) => [
    arm,
    end.best === null
      ? "N/A"
      : `${number(end.best)}${end.standardError === null ? "" : ` +/- ${number(end.standardError)}`}`,
    end.valid < folders.length ? `${end.valid} of ${folders.length}` : String(folders.length),
    ...[count(executions), span(seconds), count(tokens), cost === null ? "–" : `${cost.toFixed(2)} USD`],
  ]);
  return `At the end, with the standard error over the folders; the other columns are sums:\n\n${markdownTable(heads, body)}`;
}

/** Returns a CSV row for each arm, axis and place; numbers are not rounded, times are seconds. */
export function compareCsv(results: readonly TaskResult[]): string {
  const rows = results.flatMap(({ task, metric, direction, arms }) =>
    arms.flatMap(({ arm, curves }) =>
      AXES.flatMap((axis) =>
        curves[axis].map(({ at, best, interval, folders, valid }) => [
          ...[task, metric, direction, arm, axis, at, best ?? "", interval?.[0] ?? "", interval?.[1] ?? ""],
          ...[folders, valid],
        ]),
      ),
    ),
  );
  const head = ["task", "metric", "direction", "arm", "axis", "at", "best", "low", "high", "folders", "valid"];
  return [head, ...rows].map((cells) => `${cells.map((cell) => quoted(String(cell))).join(",")}\n`).join("");
}

const quoted = (text: string): string => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
