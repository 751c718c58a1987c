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
import { answersOf, type LabelledRows, labelledRows, type TargetOptions } from "./init-target.ts";
import { columnNamed, type InputTable, readTable } from "./read-table.ts";
import { openTask, type Task } from "./task.ts";

export interface InitOptions extends TargetOptions {
  /** The file's encoding, see `readTableFile`. Absent: UTF-8 or UTF-16. */
  encoding?: string | undefined;
  /** Column that identifies rows. Absent: `id`, which is added if the table has none. */
  id?: string | undefined;
  /** The task's name. Absent: the folder's. */
  name?: string | undefined;
  /** Share of the rows that become the test set: a number, or the text that a person typed for it. */
  testShare: number | string;
  /** Seed of the split: the same seed gives the same rows. */
  seed: number;
}

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
  const { lost } = table.target;
  const testRows = Math.round(Number(testShare) * rows.length);
  if (testRows < 2 || rows.length - testRows < 2)
    throw refused(
      `${options.from}: ${rows.length} rows with a ${target} are too few to split; ${lost ?? "give more, or another --test-share"}`,
    );
  const [test, train] = [rows.slice(0, testRows), rows.slice(testRows)];
  const answers = answersOf(table.labels, table.target, input, options);
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
    test.map((row, i) => [row[id]!, ...answers.sampleAt(i)]),
  );
  const graded = test.map((row) => [row[id]!, ...answers.of(row[label]!)]);
  write(join(privateFolder, "answers.csv"), submitted, graded, 0o600);
  writeFileSync(join(publicFolder, "description.md"), descriptionOf(name, table, options, answers.columns));
  let notes: string[];
  try {
    notes = writeTaskYaml(directory, { name, idColumn, targetColumns: answers.columns, metric });
  } catch (error) {
    rmSync(existed ? join(directory, "prepared") : directory, { recursive: true });
    rmSync(join(directory, "task.yaml"), { force: true });
    throw error;
  }
  return [
    `${rows.length} rows: ${train.length} to train on, ${test.length} to test on (seed ${options.seed})`,
    ...input.notes,
    ...table.target.notes,
    ...notes,
    ...(lost === undefined ? [] : [`warning   ${lost}`]),
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
  target: LabelledRows;
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

  const targets = labelledRows(labels, input, options);
  const cells = (row: number) => columns.map((column) => column.cell(row));
  const { labelled } = targets;
  const shuffled = permutation(labelled.length, uniforms(seed, "task")).map((place) => labelled[place]!);
  const rows = shuffled.map((row, number) => [...(isNewId ? [String(number)] : []), ...cells(row)]);
  const header = [...(isNewId ? [idColumn] : []), ...columns.map(({ name }) => name)];
  return { header, rows, idColumn, isNewId, labels, target: targets };
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

function descriptionOf(
  name: string,
  { header, idColumn, target: { kept } }: Table,
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

/** Share of the answers that stay private, so that a run's report has a score that was not trained on. */
const PRIVATE_SHARE = 0.5;

/**
 * Writes task.yaml with a private part, and with the range of rewards that the other answers suggest; the owner can change both.
 * @returns lines about the private part
 */
function writeTaskYaml(
  directory: string,
  o: { name: string } & Pick<Grader, "idColumn" | "targetColumns" | "metric">,
): string[] {
  const { name, ...columns } = o;
  const grader = { ...columns, direction: metrics[o.metric].direction, rewardFloor: -9 };
  const path = join(directory, "task.yaml");
  const document = new Document({ name, grader, privateShare: 0, executionTimeoutSeconds });
  parseTask(document.toString(), path);
  writeFileSync(path, document.toString());
  const { task, note } = openSplit(openTask(directory));
  document.setIn(["privateShare"], task.spec.privateShare);
  const { rewardRange, rewardFloor } = task.grader;
  if (rewardRange) {
    const short = (score: number) => Number((Math.abs(score) < 1e-9 ? 0 : score).toPrecision(4));
    const [worst, best] = [short(rewardRange.worst), short(rewardRange.best)];
    document.setIn(["grader", "rewardRange"], document.createNode({ worst, best }));
    document.deleteIn(["grader", "rewardFloor"]);
    document.setIn(["grader", "rewardFloor"], rewardFloor);
    const range = document.getIn(["grader", "rewardRange"]);
    if (isMap(range))
      range.commentBefore = " estimated: the best constant prediction earns 0, perfect predictions earn 1";
  }
  writeFileSync(path, document.toString());
  return [note];
}

/** Opens a task with a private part, if its answers suffice. */
function openSplit(task: Task): { task: Task; note: string } {
  const { rewardRange: _, ...grader } = task.grader;
  try {
    const split = openTask(task.directory, { ...task.spec, grader, privateShare: PRIVATE_SHARE });
    const note = `${split.privateRows} of the ${split.rows} answers make the private score (privateShare ${PRIVATE_SHARE})`;
    return { task: split, note };
  } catch (error) {
    const why = (error as Error).message.replace(/^.*does not fit the grader: /, "");
    return { task, note: `there is no private score: ${why.replace(/;[^;]*$/, "")}` };
  }
}

export function csv(rows: readonly (readonly string[])[]): string {
  const cell = (text: string) => (/[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return rows.map((row) => `${row.map(cell).join()}\n`).join("");
}
