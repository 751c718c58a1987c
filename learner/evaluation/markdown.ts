import type { Evaluation, When } from "../metrics/summary.ts";
import { describeSettings, evaluationTable, WHENS } from "./rows.ts";

/** `evaluation.md`: the table, and where the best programs are. Columns are padded, so that it reads as plain text too. */
export function evaluationMarkdown(evaluation: Evaluation): string {
  const { heads, groups } = evaluationTable(evaluation);
  const rows = groups.flatMap(({ title, rows }) => [
    ...(title === "" ? [] : [[title, ...heads.map(() => "")]]),
    ...rows.map(({ label, cells }) => [title === "" ? label : `  ${label}`, ...cells]),
  ]);
  const programs = WHENS.flatMap((when) => programsOf(evaluation, when));
  return [
    `# Evaluation on ${evaluation.settings?.task ?? "a task"}`,
    describeSettings(evaluation),
    markdownTable(["", ...heads], rows),
    ...(programs.length > 0 ? [`Best programs: ${programs.join(", ")}`] : ["No program was valid."]),
  ]
    .join("\n\n")
    .concat("\n");
}

function programsOf(evaluation: Evaluation, when: When): string[] {
  const summary = evaluation[when];
  if (!summary) return [];
  const kinds = summary.kinds ?? { scratch: summary, improve: undefined };
  return (["scratch", "improve"] as const)
    .filter((kind) => kinds[kind]?.bestScore !== null && kinds[kind] !== undefined)
    .map((kind) => `programs/${when}-${kind}/program.py`);
}

/** @param rows cells; every row has as many as there are heads */
export function markdownTable(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = heads.map((head, column) => Math.max(3, head.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join(" | ")} |`;
  const rule = `| ${widths.map((width, column) => (column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [line(heads), rule, ...rows.map(line)].join("\n");
}
