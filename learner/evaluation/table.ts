/** `longrun evaluate --table`: shows evaluations of several runs (seeds) by task, like the paper's Tables 1, 2 and 4. Pure. */
import { mleBenchTasks } from "../grading/mlebench-tasks.ts";
import { percent } from "../metrics/format.ts";
import {
  type Evaluation,
  type EvaluationSettings,
  type Figures,
  privateShareOf,
  type When,
} from "../metrics/summary.ts";
import { mean, standardError } from "./bootstrap.ts";
import { markdownTable, WHENS } from "./rows.ts";

export interface Evaluated {
  folder: string;
  evaluation: Evaluation & { settings: EvaluationSettings };
}

interface Column {
  /** Column name in CSV. */
  key: string;
  head: string;
  figures: (evaluation: Evaluation) => Figures | undefined;
}

const STATISTICS = [
  { key: "best", title: "Best score", of: (figures: Figures) => figures.bestScore },
  { key: "mean", title: "Mean score of the valid programs", of: (figures: Figures) => figures.meanScore },
  { key: "valid", title: "Valid programs, as a share", of: (figures: Figures) => figures.validFraction },
] as const;

export type Table = ReturnType<typeof tableOf>;

const PLACES: Record<When, string> = { before: "before", after: "after RL", model: "model" };

/** Returns a row for each statistic and task. @throws Error in one line if the evaluations are not comparable */
export function tableOf(found: readonly Evaluated[]) {
  const [first] = found;
  if (!first) throw new Error("no run is given");
  for (const other of found) refuseUnlike(first, other);
  const columns = columnsOf(found);
  const tasks = [...Map.groupBy(found, ({ evaluation }) => evaluation.settings.task)].sort(
    ([a], [b]) => placeOf(a) - placeOf(b) || a.localeCompare(b),
  );
  const rows = STATISTICS.flatMap(({ key, of }) =>
    tasks.map(([task, group]) => {
      const { direction, metric } = group[0]!.evaluation.settings;
      const cells = columns.map(({ figures }) =>
        cellOf(group.flatMap(({ evaluation }) => figures(evaluation) ?? []).map(of)),
      );
      return { task, direction, metric, runs: group.length, statistic: key, cells };
    }),
  );
  return { columns, rows, settings: first.evaluation.settings, runs: found.length };
}

/** @throws Error if two evaluations were measured in different ways */
function refuseUnlike(a: Evaluated, b: Evaluated): void {
  const [x, y] = [a.evaluation.settings, b.evaluation.settings];
  for (const field of ["protocol", "samples", "temperature", "rewardSplit", "privateShare"] as const)
    if ((x[field] ?? 0) !== (y[field] ?? 0))
      throw new Error(
        `${b.folder} was evaluated with ${field} ${y[field] ?? 0}, ${a.folder} with ${x[field] ?? 0}: such numbers do not compare; evaluate one of them again`,
      );
  if (x.task === y.task && (x.metric !== y.metric || x.direction !== y.direction))
    throw new Error(
      `${b.folder} has task ${y.task} by ${y.metric}, ${a.folder} by ${x.metric}: such scores do not compare`,
    );
}

/** Returns the columns that have values: before, after from scratch, after with improve prompts, after with the better of the two. */
function columnsOf(found: readonly Evaluated[]): Column[] {
  return WHENS.flatMap((when): Column[] => {
    const summaries = found.flatMap(({ evaluation }) => evaluation[when] ?? []);
    if (summaries.length === 0) return [];
    const place = PLACES[when];
    const all = { key: when, head: place, figures: (it: Evaluation) => it[when] };
    if (!summaries.some(({ kinds }) => kinds)) return [all];
    const scratch = (it: Evaluation) => it[when]?.kinds?.scratch ?? it[when];
    return [
      { key: `${when}_scratch`, head: `${place}, from scratch`, figures: scratch },
      { key: `${when}_improve`, head: `${place}, improve previous`, figures: (it) => it[when]?.kinds?.improve },
      { ...all, head: `${place}, both` },
    ];
  });
}

/** Returns the mean over the runs that have a value, and its standard error, null for fewer than two. */
function cellOf(values: readonly (number | null)[]) {
  const known = values.filter((value) => value !== null);
  const error = standardError(known) ?? null;
  return { mean: known.length > 0 ? mean(known) : null, standardError: error, runs: known.length };
}

/** Order of tasks: the paper's, then the others. */
const placeOf = (task: string): number => [...Object.keys(mleBenchTasks()), task].indexOf(task);

export function tableMarkdown(table: Table): string {
  const { columns, rows, settings, runs } = table;
  const parts = STATISTICS.map(({ key, title }) => {
    const body = rows
      .filter(({ statistic }) => statistic === key)
      .map((row) => [
        `${row.task} (${row.direction === "Higher" ? "↑" : "↓"})`,
        ...row.cells.map((cell) => shown(cell, row.runs)),
      ]);
    return `${title}:\n\n${markdownTable(["Tasks", ...columns.map(({ head }) => head)], body)}`;
  });
  const share = privateShareOf(settings);
  const split =
    share === undefined ? "" : ` Scores are private: of the ${percent(share)} of the answers that no reward has seen.`;
  const note =
    `Mean +/- standard error over the runs of a task (${runs} in all); N/A: no valid program. ` +
    `${settings.samples} samples, protocol ${settings.protocol.toLowerCase()}, temperature ${settings.temperature}.${split}`;
  return `${[note, ...parts].join("\n\n")}\n`;
}

function shown({ mean: value, standardError: error, runs }: ReturnType<typeof cellOf>, of: number): string {
  if (value === null) return "N/A";
  const some = runs < of ? ` (${runs} of ${of})` : "";
  return `${value.toFixed(3)}${error === null ? "" : ` +/- ${error.toFixed(3)}`}${some}`;
}

/** Returns a CSV row for each task and statistic; numbers are not rounded. */
export function tableCsv({ columns, rows }: Table): string {
  const head = columns.flatMap(({ key }) => [`${key}`, `${key}_standard_error`, `${key}_runs`]);
  const lines = rows.map(({ task, direction, metric, runs, statistic, cells }) => [
    ...[task, direction, metric, statistic, runs],
    ...cells.flatMap(({ mean: value, standardError: error, runs: known }) => [value ?? "", error ?? "", known]),
  ]);
  return [["task", "direction", "metric", "statistic", "runs", ...head], ...lines]
    .map((cells) => `${cells.map((cell) => quoted(String(cell))).join(",")}\n`)
    .join("");
}

const quoted = (text: string): string => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
