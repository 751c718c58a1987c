/** Makes a task folder from one table: split, description, sample submission and `task.yaml`. */
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { Document, isMap } from "yaml";
import { type Grader, parseTask } from "../../crds/trainingrun.ts";
import { makeFolder } from "../../proto/folders.ts";
import { permutation, uniforms } from "../engine/index.ts";
import { type Column, isNumeric } from "../grading/column.ts";
import { repeatedId } from "../grading/ids.ts";
import { metrics } from "../grading/metrics.ts";
import { TaskError } from "./errors.ts";
import { columnNamed, type InputTable, notNumbers, readTable } from "./read-table.ts";
import { openTask } from "./task.ts";

export interface InitOptions {
  /** The table, text with a header; `readTable` says in which forms. */
  from: string;
  /** The file's encoding, see `readTableFile`. Absent: UTF-8 or UTF-16. */
  encoding?: string | undefined;
  /** The column that programs predict. */
  target: string;
  metric: Grader["metric"];
  /** Column that identifies rows. Absent: `id`, which is added if the table has none. */
  id?: string | undefined;
  /** The task's name. Absent: the folder's. */
  name?: string | undefined;
  /** Share of the rows that become the test set: a number, or the text that a person typed for it. */
  testShare: number | string;
  /** Keeps rows whose label is a text that pandas reads as missing, such as None or NA; only for metrics of labels. */
  keepMissingLabels?: boolean | undefined;
  /** Seed of the split: the same seed gives the same rows. */
  seed: number;
}

/** Most classes if the metric takes probabilities, because each class gets a column. */
const maxClasses = 512;
/** Most different numbers that count as labels even if they are more than half as many as the rows. */
const maxFewNumbers = 20;

/** Seconds that a program may run; the owner can change it. Less than the default, because a first run is short. */
const executionTimeoutSeconds = 60;

const refused = (message: string, cause?: unknown) => new TaskError("folder", message, cause as Error);

/**
 * Writes the folder. Rows without a target are left out.
 *
 * @param directory a folder that does not exist or is empty
 * @returns a line for each file that was made @throws TaskError or FolderError in one line
 */
export function initTask(directory: string, options: InitOptions): string[] {
  if (existsSync(directory) && readdirSync(directory).length > 0)
    throw refused(`${directory}: the folder is not empty; choose another one`);
  const name =
    options.name ??
    basename(resolve(directory))
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .replaceAll(/^-|-$/g, "");
  const { testShare, target, metric } = options;
  if (!(Number(testShare) > 0 && Number(testShare) < 1))
    throw refused(`--test-share ${testShare}: give a share between 0 and 1, for example 0.3`);

  const input = readTable(options.from, target, options.encoding);
  const table = tableOf(input, options);
  const { header, rows, idColumn } = table;
  const testRows = Math.round(Number(testShare) * rows.length);
  if (testRows < 2 || rows.length - testRows < 2)
    throw refused(
      `${options.from}: ${rows.length} rows with a ${target} are too few to split; give more, or another --test-share`,
    );
  const [test, train] = [rows.slice(0, testRows), rows.slice(testRows)];
  const answers = answersOf(table, input, options);
  const at = (column: string) => header.indexOf(column);
  const [id, label] = [at(idColumn), at(target)];

  const publicFolder = join(directory, "prepared", "public");
  const privateFolder = join(directory, "prepared", "private");
  const existed = existsSync(directory);
  makeFolder(publicFolder);
  makeFolder(privateFolder, undefined, 0o700);
  const isFeature = (_: unknown, column: number) => column !== label;
  const write = (path: string, columns: readonly string[], lines: readonly (readonly string[])[], mode?: number) =>
    writeFileSync(path, csv([columns, ...lines]), { mode });
  write(join(publicFolder, "train.csv"), header, train);
  write(
    join(publicFolder, "test.csv"),
    header.filter(isFeature),
    test.map((row) => row.filter(isFeature)),
  );
  const submitted = [idColumn, ...answers.columns];
  write(
    join(publicFolder, "sample_submission.csv"),
    submitted,
    test.map((row) => [row[id]!, ...answers.sample]),
  );
  const graded = test.map((row) => [row[id]!, ...answers.of(row[label]!)]);
  write(join(privateFolder, "answers.csv"), submitted, graded, 0o600);
  writeFileSync(join(publicFolder, "description.md"), descriptionOf(name, table, options, answers.columns));
  try {
    writeTaskYaml(directory, { name, idColumn, targetColumns: answers.columns, metric });
  } catch (error) {
    rmSync(existed ? join(directory, "prepared") : directory, { recursive: true });
    rmSync(join(directory, "task.yaml"), { force: true });
    throw error;
  }
  return [
    `${rows.length} rows: ${train.length} to train on, ${test.length} to test on (seed ${options.seed})`,
    ...table.notes,
    ...(table.lost === undefined
      ? []
      : [
          `warning   ${table.lost}; they were left out. If it is a label, make the folder again with --keep-missing-labels`,
        ]),
    ...(table.isNewId
      ? [`the column ${idColumn} was added, since the table has none: it numbers the rows after they were shuffled`]
      : []),
    `${join(publicFolder, "description.md")}: a skeleton; say there what the columns mean`,
  ];
}

interface Table {
  header: string[];
  /** Shuffled; each row has a target. */
  rows: string[][];
  idColumn: string;
  isNewId: boolean;
  labels: Column;
  /** The target column's texts that pandas reads as missing and the task keeps as labels. */
  kept: string[];
  /** How many rows were left out because of such texts. */
  lost: string | undefined;
  notes: string[];
}

function tableOf(input: InputTable, options: InitOptions): Table {
  const { from, columns } = input;
  const { target, id, seed } = options;
  const labels = columnNamed(input, target, "--target");
  if (id !== undefined) columnNamed(input, id, "--id");
  const idColumn = id ?? "id";
  if (idColumn === target) throw refused(`--id ${idColumn}: this column is predicted; give another one`);
  const ids = columns.find(({ name }) => name === idColumn);
  const isNewId = ids === undefined;
  if (ids) checkIds(ids, from);

  const { labelled, kept, lost, notes } = labelledRows(labels, input, options);
  const cells = (row: number) => columns.map((column) => column.cell(row));
  const shuffled = permutation(labelled.length, uniforms(seed, "task")).map((place) => labelled[place]!);
  const rows = shuffled.map((row, number) => [...(isNewId ? [String(number)] : []), ...cells(row)]);
  const header = [...(isNewId ? [idColumn] : []), ...columns.map(({ name }) => name)];
  return { header, rows, idColumn, isNewId, labels, kept, lost, notes: [...input.notes, ...notes] };
}

function checkIds(ids: Column, from: string): void {
  const isMissing = (row: number) => (isNumeric(ids) ? Number.isNaN(ids.values[row]) : ids.cell(row) === "");
  const missing = Array.from({ length: ids.rows }, (_, row) => row).find(isMissing);
  const repeated = missing === undefined ? repeatedId(ids) : undefined;
  if (missing === undefined && repeated === undefined) return;
  const why = repeated ? `${repeated.value} is in rows ${repeated.rows.join(" and ")}` : `row ${missing! + 1} has none`;
  throw refused(
    `${from}: column ${ids.name} does not tell rows apart, ${why}; name another one with --id, or rename it`,
  );
}

/** Returns the rows with a target, and a line about the rows without one. */
function labelledRows(labels: Column, { from, rows }: InputTable, { target, metric, keepMissingLabels }: InitOptions) {
  const areLabels = isOfLabels(metric);
  if (keepMissingLabels && (!areLabels || isNumeric(labels)))
    throw refused(
      `--keep-missing-labels is for labels of text, but ${areLabels ? `column ${target} of ${from} has numbers` : `--metric ${metric} is none of labels`}; leave it out`,
    );
  const isMissing = (row: number) => (isNumeric(labels) ? Number.isNaN(labels.values[row]) : labels.isMissing(row));
  const missing = Array.from({ length: rows }, (_, row) => row).filter(isMissing);
  const texts = countsOf(missing.map((row) => labels.cell(row)).filter((text) => text !== ""));
  const dropped = new Set(keepMissingLabels ? missing.filter((row) => labels.cell(row) === "") : missing);
  const labelled = Array.from({ length: rows }, (_, row) => row).filter((row) => !dropped.has(row));
  const shown = texts.map(([text, count]) => `${text} ${count} times`).join(", ");
  const isLost = areLabels && !isNumeric(labels) && !keepMissingLabels && texts.length > 0;
  return {
    labelled,
    kept: keepMissingLabels ? texts.map(([text]) => text) : [],
    lost: isLost
      ? `${dropped.size} of ${rows} rows have no label for pandas, which reads ${target} ${shown} as missing`
      : undefined,
    notes:
      dropped.size === 0 || isLost
        ? []
        : [`${dropped.size} rows without a ${target} were left out${shown && !keepMissingLabels ? ` (${shown})` : ""}`],
  };
}

const isOfLabels = (metric: Grader["metric"]) =>
  metrics[metric].input === "labels" || metrics[metric].probabilities === true;

/** Returns each text with its count, the most frequent first. */
function countsOf(texts: readonly string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a);
}

/** Returns a submission's columns, the sample submission's values and a row's answers. */
function answersOf({ labels, header, rows, lost }: Table, input: InputTable, { metric, target, from }: InitOptions) {
  const { input: kind, probabilities } = metrics[metric];
  const place = header.indexOf(target);
  const values = rows.map((row) => row[place]!);
  const counts = countsOf(values);
  if (counts.length === 1)
    throw refused(
      lost === undefined
        ? `--target ${target}: every row of ${from} has ${counts[0]![0]}, so there is nothing to predict; choose another column`
        : `--target ${target}: ${lost}, and every other row has ${counts[0]![0]}; if it is a label, give --keep-missing-labels`,
    );
  const isBinary = counts.every(([text]) => Number(text) === 0 || Number(text) === 1);
  const one = (sample: string) => ({ columns: [target], sample: [sample], of: (text: string) => [text] });
  if (probabilities && !(isBinary && metric !== "RocAucOneVsOne")) {
    const classes = counts.map(([text]) => text).sort();
    if (classes.length > maxClasses)
      throw refused(
        `--metric ${metric}: ${from} has ${classes.length} values of ${target}, and ${metric} wants a column for each; give a metric of numbers`,
      );
    const share = String(1 / classes.length);
    return {
      columns: classes,
      sample: classes.map(() => share),
      of: (text: string) => classes.map((name) => (name === text ? "1" : "0")),
    };
  }
  if (kind !== "labels" && kind !== "texts" && !isNumeric(labels)) throw refused(notNumbers(labels, input, metric));
  if (kind === "numbers" || kind === "aboveMinusOne") return one(probabilities || metric === "RocAuc" ? "0.5" : "0");
  if (kind === "labels" && isNumeric(labels) && counts.length > Math.max(maxFewNumbers, values.length / 2))
    throw refused(
      `--metric ${metric} compares labels, but column ${target} of ${from} has ${counts.length} different numbers; give a metric of numbers, for example RMSE`,
    );
  return one(counts[0]![0]);
}

function descriptionOf(
  name: string,
  { header, idColumn, kept }: Table,
  { target, metric }: InitOptions,
  columns: string[],
): string {
  const better = metrics[metric].direction === "Lower" ? "lower" : "higher";
  const features = header.filter((column) => column !== target && column !== idColumn);
  const predicted =
    columns.length === 1
      ? `\`${target}\``
      : `the probability of each \`${target}\` (${columns.map((column) => `\`${column}\``).join(", ")})`;
  return `# ${name}

Predict ${predicted} for each row of \`test.csv\`.

## Evaluation

Submissions are graded by ${metric}; ${better} is better.

## Data

\`train.csv\` has the column \`${target}\`, \`test.csv\` does not. \`${idColumn}\` tells rows apart.
${kept.length === 0 ? "" : `\nThe label ${kept.join(", ")} is no missing value: read \`train.csv\` with \`keep_default_na=False\`.\n`}
${features.map((column) => `- \`${column}\``).join("\n")}
`;
}

/** Writes task.yaml with the range of rewards that the answers suggest; the owner can change it. */
function writeTaskYaml(
  directory: string,
  o: { name: string } & Pick<Grader, "idColumn" | "targetColumns" | "metric">,
): void {
  const { name, ...columns } = o;
  const grader = { ...columns, direction: metrics[o.metric].direction, rewardFloor: -9 };
  const path = join(directory, "task.yaml");
  const document = new Document({ name, grader, executionTimeoutSeconds });
  parseTask(document.toString(), path);
  writeFileSync(path, document.toString());
  const { rewardRange, rewardFloor } = openTask(directory).grader;
  if (!rewardRange) return;
  const short = (score: number) => Number((Math.abs(score) < 1e-9 ? 0 : score).toPrecision(4));
  const [worst, best] = [short(rewardRange.worst), short(rewardRange.best)];
  document.setIn(["grader", "rewardRange"], document.createNode({ worst, best }));
  document.deleteIn(["grader", "rewardFloor"]);
  document.setIn(["grader", "rewardFloor"], rewardFloor);
  const range = document.getIn(["grader", "rewardRange"]);
  if (isMap(range))
    range.commentBefore = " estimated: the best constant prediction earns 0, perfect predictions earn 1";
  writeFileSync(path, document.toString());
}

function csv(rows: readonly (readonly string[])[]): string {
  const cell = (text: string) => (/[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return rows.map((row) => `${row.map(cell).join()}\n`).join("");
}
