/** Makes the table of an evaluation, for the report, Markdown and the terminal. */
import { change, count, duration, NONE, number, percent } from "../metrics/format.ts";
import {
  type Change,
  type Evaluation,
  type EvaluationSettings,
  type EvaluationSummary,
  type Figures,
  type Interval,
  privateShareOf,
  reportedMetric,
  type Statistics,
  type When,
} from "../metrics/summary.ts";

export const WHENS: readonly When[] = ["before", "after", "model"];

const afterIterations = (iteration: number) =>
  `after ${count(iteration)} ${iteration === 1 ? "iteration" : "iterations"}`;

const headOf: Record<When, (summary: EvaluationSummary) => string> = {
  // a task that was added later
  before: ({ iteration }) => (iteration > 0 ? `before the task, ${afterIterations(iteration)}` : "before training"),
  after: ({ iteration }) => afterIterations(iteration),
  model: () => "the model",
};

/** Shows evaluated policies side by side, with heads of all columns but the first; if there are improvements, also by kind of prompt. */
export function evaluationTable({ settings, change, tasks: _, ...evaluation }: Evaluation) {
  const policies = WHENS.flatMap((when) => (evaluation[when] ? [{ when, summary: evaluation[when] }] : []));
  const heads = [...policies.map(({ when, summary }) => headOf[when](summary)), ...(change ? ["change"] : [])];
  const kinds = policies.some(({ summary }) => summary.kinds);
  const group = (title: string, figures: (summary: EvaluationSummary) => Figures | undefined, change?: Change) => {
    const rows = rowsOf(
      policies.map(({ summary }) => figures(summary)),
      settings,
      change,
    );
    return { title, rows: rows.map((row) => ({ ...row, cells: heads.map((_, column) => row.cells[column] ?? "") })) };
  };
  const both = group(kinds ? "both kinds of prompt" : "", (summary) => summary, change);
  if (!kinds) return { heads, groups: [both] };
  const scratch = group("from scratch", ({ kinds }) => kinds?.scratch);
  return { heads, groups: [both, scratch, group("improve prompts", ({ kinds }) => kinds?.improve)] };
}

/** Returns the terminal's line about an evaluation between iterations. */
export function evaluationSentence(found: EvaluationSummary, settings?: EvaluationSettings): string {
  const { iteration, samples, validFraction, meanScore, bestScore } = found;
  return (
    `evaluation after iteration ${count(iteration)}: ${percent(validFraction)} of ${count(samples)} programs valid, ` +
    `mean ${reportedMetric(settings)} ${number(meanScore)}, best ${number(bestScore)}`
  );
}

/** Returns a row for each evaluation between iterations, with heads of all columns but the first; undefined if there is none. */
export function courseTable({ settings, during = [] }: Evaluation) {
  if (during.length === 0) return undefined;
  const metric = reportedMetric(settings);
  const columns: [string, keyof Statistics, Unit][] = [
    ["valid", "validFraction", percent],
    [`mean ${metric}`, "meanScore", number],
    ["mean, 0 to 1", "meanNormalizedScore", number],
    [`best ${metric}`, "bestScore", number],
  ];
  const shown = columns.filter(([, name]) => during.some((policy) => policy[name] !== null));
  const rows = during.map((policy) => ({
    label: headOf.after(policy),
    cells: [
      count(policy.samples),
      ...shown.map(([, name, unit]) => withInterval(policy[name], policy.intervals[name], unit)),
      duration(policy.meanDurationSeconds),
    ],
  }));
  return { heads: ["programs", ...shown.map(([head]) => head), "mean duration"], rows };
}

/** Returns one sentence or two about the protocol of the evaluation. */
export function describeSettings({ settings, ...evaluation }: Evaluation): string {
  if (!settings) return "";
  const { protocol, samples, seed, temperature, metric, direction, confidence } = settings;
  const share = privateShareOf(settings);
  const half = count(samples / 2);
  const asked = {
    Paper: `${count(samples)} programs from scratch and ${count(samples)} improvements of the valid ones, the better of the two counts`,
    Equal: `${half} programs from scratch and ${half} improvements of the valid ones, ${count(samples)} in all`,
    Scratch: `${count(samples)} programs from scratch, none improved`,
  }[protocol];
  const policies = [...WHENS.flatMap((when) => evaluation[when] ?? []), ...(evaluation.during ?? [])];
  const lost = policies.reduce((sum, policy) => sum + policy.lost, 0);
  const sentences = [
    `Protocol ${protocol.toLowerCase()}: ${asked}; seed ${seed}, temperature ${temperature}.`,
    `Score: ${metric}, ${direction.toLowerCase()} is better.`,
    ...(share === undefined
      ? []
      : [
          `The private score is on the ${percent(share)} of the answers that no reward has seen; the public score, on the others, chooses the best program.`,
        ]),
    `In brackets: ${count(confidence * 100)} % bootstrap intervals${share === undefined ? "; the interval of a best score ends at the best score that was seen" : ""}.`,
    ...(lost > 0 ? [`${count(lost)} executions were lost by the infrastructure and count nowhere.`] : []),
  ];
  return sentences.join(" ");
}

type Unit = (value: number) => string;

/** Returns rows with a cell for each policy. @param change adds a cell to the rows that it measures */
function rowsOf(policies: (Figures | undefined)[], settings: EvaluationSettings | undefined, change?: Change) {
  const metric = reportedMetric(settings);
  const plain = (label: string, text: (figures: Figures) => string) => ({
    label,
    cells: policies.map((figures) => (figures ? text(figures) : NONE)),
  });
  const measured = (label: string, name: keyof Statistics, unit: Unit) => {
    const { cells } = plain(label, (figures) => withInterval(figures[name], figures.intervals?.[name], unit));
    return { label, cells: [...cells, ...(change ? [changeCell(change, name, unit)] : [])] };
  };
  const isKnown = (name: keyof Statistics) => policies.some((figures) => figures?.[name] !== null);
  const rows = [
    plain("programs", ({ samples }) => count(samples)),
    measured("valid", "validFraction", percent),
    measured(`best ${metric}`, "bestScore", number),
    measured(`mean ${metric}`, "meanScore", number),
  ];
  if (policies.some((figures) => figures?.publicBestScore !== undefined)) {
    const shared = settings?.metric ?? "score";
    rows.splice(
      3,
      0,
      plain(`its public ${shared}`, ({ publicBestScore }) => number(publicBestScore)),
    );
    rows.push(plain(`mean public ${shared}`, ({ publicMeanScore }) => number(publicMeanScore)));
  }
  if (isKnown("meanNormalizedScore")) rows.push(measured("mean, 0 to 1", "meanNormalizedScore", number));
  if (policies.some((figures) => figures?.medals))
    rows.push(
      plain("medal of the best", ({ bestMedal }) => bestMedal ?? "none"),
      plain("gold, silver, bronze", ({ medals }) =>
        medals ? `${medals.gold}, ${medals.silver}, ${medals.bronze}` : NONE,
      ),
      measured("any medal", "medalFraction", percent),
      measured("above median", "aboveMedianFraction", percent),
    );
  return [...rows, plain("mean duration", ({ meanDurationSeconds }) => duration(meanDurationSeconds))];
}

function withInterval(value: number | null | undefined, interval: Interval | null | undefined, unit: Unit): string {
  if (value === null || value === undefined) return NONE;
  return interval ? `${unit(value)} [${interval.map(unit).join(", ")}]` : unit(value);
}

/** A difference of shares is in percentage points. */
function changeCell({ intervals, ...changed }: Change, name: keyof Statistics, unit: Unit): string {
  const signed = (difference: number) => {
    const text = change(0, difference, unit);
    return unit === percent ? text.replace(" %", "") : text;
  };
  const text = withInterval(changed[name], intervals[name], signed);
  return unit === percent && text !== NONE ? `${text} points` : text;
}

/**
 * `evaluation.md`: the table, and where the best programs are. Columns are padded, so that it reads as plain text too.
 *
 * @param byTask the run has several tasks: best programs are in a folder of the task's name
 */
export function evaluationMarkdown(evaluation: Evaluation, byTask = false): string {
  const folder = byTask ? `programs/${evaluation.settings?.task}` : "programs";
  const { heads, groups } = evaluationTable(evaluation);
  const course = courseTable(evaluation);
  const rows = groups.flatMap(({ title, rows }) => [
    ...(title === "" ? [] : [[title, ...heads.map(() => "")]]),
    ...rows.map(({ label, cells }) => [title === "" ? label : `  ${label}`, ...cells]),
  ]);
  const programs = WHENS.flatMap((when) =>
    Object.entries(evaluation[when]?.kinds ?? { scratch: evaluation[when] })
      .filter(([, figures]) => typeof figures?.bestScore === "number")
      .map(([kind]) => `${folder}/${when}-${kind}/program.py`),
  );
  const anyValid = [...programs, ...(evaluation.during ?? []).filter(({ bestScore }) => bestScore !== null)].length > 0;
  const parts = [
    `# Evaluation on ${evaluation.settings?.task ?? "a task"}`,
    describeSettings(evaluation),
    ...(heads.length > 0 ? [markdownTable(["", ...heads], rows)] : []),
    ...(course
      ? [
          markdownTable(
            ["", ...course.heads],
            course.rows.map(({ label, cells }) => [label, ...cells]),
          ),
        ]
      : []),
    ...(programs.length > 0 ? [`Best programs: ${programs.join(", ")}`] : []),
    ...(anyValid ? [] : ["No program was valid."]),
  ];
  return `${parts.join("\n\n")}\n`;
}

/** @param rows cells; every row has as many as there are heads */
export function markdownTable(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = heads.map((head, column) => Math.max(3, head.length, ...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join(" | ")} |`;
  const rule = `| ${widths.map((width, column) => (column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [line(heads), rule, ...rows.map(line)].join("\n");
}
