/** The target column of `task init`: the rows that have a label, and what a submission has for them. */
import type { Grader } from "../../crds/trainingrun.ts";
import { type Column, isNumeric } from "../grading/column.ts";
import { metrics } from "../grading/metrics.ts";
import { TaskError } from "./errors.ts";
import { type InputTable, notNumbers } from "./read-table.ts";

export interface TargetOptions {
  /** The table, text with a header; `readTable` says in which forms. */
  from: string;
  /** The column that programs predict. */
  target: string;
  metric: Grader["metric"];
  /** Keeps rows whose label is a text that pandas reads as missing, such as None or NA; only for metrics of labels. */
  keepMissingLabels?: boolean | undefined;
}

/** Most classes if the metric takes probabilities, because each class gets a column. */
const maxClasses = 512;
/** Most different numbers that count as labels even if they are more than half as many as the rows. */
const maxFewNumbers = 20;

const refused = (message: string) => new TaskError("folder", message);

/** The rows with a target. */
export interface LabelledRows {
  labelled: number[];
  /** Texts of the target column that pandas reads as missing and the task keeps as labels. */
  kept: string[];
  /** How many rows were left out because of such texts, and the remedy. */
  lost: string | undefined;
  notes: string[];
}

/** @throws TaskError if `keepMissingLabels` means nothing for the column or the metric */
export function labelledRows(
  labels: Column,
  { from, rows }: InputTable,
  { target, metric, keepMissingLabels }: TargetOptions,
): LabelledRows {
  const areLabels = isOfLabels(metric);
  if (keepMissingLabels && (!areLabels || isNumeric(labels)))
    throw refused(
      `--keep-missing-labels is for labels of text, but ${areLabels ? `column ${target} of ${from} has numbers` : `--metric ${metric} is none of labels`}; leave it out`,
    );
  const isMissing = (row: number) => (isNumeric(labels) ? Number.isNaN(labels.values[row]) : labels.isMissing(row));
  const missing = Array.from({ length: rows }, (_, row) => row).filter(isMissing);
  const texts = countsOf(missing.map((row) => labels.cell(row)).filter((text) => text !== ""));
  // An empty cell is no label anyway.
  const dropped = new Set(keepMissingLabels ? missing.filter((row) => labels.cell(row) === "") : missing);
  const labelled = Array.from({ length: rows }, (_, row) => row).filter((row) => !dropped.has(row));
  const shown = texts.map(([text, count]) => `${text} ${count} times`).join(", ");
  const kept = keepMissingLabels ? texts.map(([text]) => text) : [];
  if (areLabels && !isNumeric(labels) && !keepMissingLabels && texts.length > 0) {
    const lost =
      `${dropped.size} of ${rows} rows are left out, because pandas reads their ${target} as missing (${shown}); ` +
      "if it is a label, give --keep-missing-labels";
    return { labelled, kept, lost, notes: [] };
  }
  const found = shown === "" || keepMissingLabels ? "" : ` (${shown})`;
  const notes = dropped.size > 0 ? [`${dropped.size} rows without a ${target} were left out${found}`] : [];
  return { labelled, kept, lost: undefined, notes };
}

const isOfLabels = (metric: Grader["metric"]) =>
  metrics[metric].input === "labels" || metrics[metric].probabilities === true;

/** Returns each text with its count, the most frequent first. */
function countsOf(texts: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a);
}

/** Metrics without a score for a constant; their sample submission has 0 and 1 in turn. */
const CORRELATIONS: readonly Grader["metric"][] = ["Pearson", "Spearman"];

/** Returns a submission's columns, the sample submission's values of a row and a row's answers. */
export function answersOf(
  labels: Column,
  { labelled, lost }: LabelledRows,
  table: InputTable,
  { metric, target, from }: TargetOptions,
) {
  const { input, probabilities } = metrics[metric];
  const values = labelled.map((row) => labels.cell(row));
  const counts = countsOf(values);
  if (counts.length === 1)
    throw refused(
      lost === undefined
        ? `--target ${target}: every row of ${from} has ${counts[0]![0]}, so there is nothing to predict; choose another column`
        : `--target ${target}: every row with a label has ${counts[0]![0]}, and ${lost}`,
    );
  const isBinary = counts.every(([text]) => Number(text) === 0 || Number(text) === 1);
  const one = (sample: string) => ({
    columns: [target],
    sampleAt: (row: number) => [CORRELATIONS.includes(metric) ? String(row % 2) : sample],
    of: (text: string) => [text],
  });
  if (probabilities && !(isBinary && metric !== "RocAucOneVsOne")) {
    const classes = counts.map(([text]) => text).sort();
    if (classes.length > maxClasses)
      throw refused(
        `--metric ${metric}: ${from} has ${classes.length} values of ${target}, and ${metric} wants a column for each; give a metric of numbers`,
      );
    const share = String(1 / classes.length);
    return {
      columns: classes,
      sampleAt: () => classes.map(() => share),
      of: (text: string) => classes.map((name) => (name === text ? "1" : "0")),
    };
  }
  if (input !== "labels" && input !== "texts" && !isNumeric(labels)) throw refused(notNumbers(labels, table, metric));
  if (input === "numbers" || input === "aboveMinusOne") return one(probabilities || metric === "RocAuc" ? "0.5" : "0");
  if (input === "labels" && isNumeric(labels) && counts.length > Math.max(maxFewNumbers, values.length / 2))
    throw refused(
      `--metric ${metric} compares labels, but column ${target} of ${from} has ${counts.length} different numbers; give a metric of numbers, for example RMSE`,
    );
  return one(counts[0]![0]);
}
