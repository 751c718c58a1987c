/** Makes a task folder from one table: split, description, sample submission and `task.yaml`. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { Document, isMap } from "yaml";
import { type Grader, parseTask } from "../../crds/trainingrun.ts";
import { makeFolder } from "../../proto/folders.ts";
import { permutation, uniforms } from "../engine/index.ts";
import { isNumeric } from "../grading/column.ts";
import { type Frame, readFrame } from "../grading/frame.ts";
import { metrics } from "../grading/metrics.ts";
import { TaskError } from "./errors.ts";
import { openTask } from "./task.ts";

export interface InitOptions {
  /** The table, CSV with a header. */
  from: string;
  /** The column that programs predict. */
  target: string;
  metric: Grader["metric"];
  /** Column that identifies rows. Absent: `id`, which is added if the table has none. */
  id?: string | undefined;
  /** The task's name. Absent: the folder's. */
  name?: string | undefined;
  /** Share of the rows that become the test set: a number, or the text that a person typed for it. */
  testShare: number | string;
  /** Seed of the split: the same seed gives the same rows. */
  seed: number;
}

/** The largest table that is read. */
const maxTableBytes = 2 ** 31;
const maxTableRows = 50_000_000;
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

  const table = readTable(options);
  const { header, rows, idColumn, dropped } = table;
  const testRows = Math.round(Number(testShare) * rows.length);
  if (testRows < 2 || rows.length - testRows < 2)
    throw refused(
      `${options.from}: ${rows.length} rows with a ${target} are too few to split; give more, or another --test-share`,
    );
  const [test, train] = [rows.slice(0, testRows), rows.slice(testRows)];
  const answers = answersOf(table, options);
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
    ...(dropped > 0 ? [`${dropped} rows without a ${target} were left out`] : []),
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
  dropped: number;
  frame: Frame;
}

function readTable({ from, target, id, seed }: InitOptions): Table {
  let bytes: Buffer;
  try {
    bytes = readFileSync(from);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why =
      code === "ENOENT"
        ? "there is no such file; check the path"
        : code === "EISDIR"
          ? "is a folder; give a .csv file"
          : message;
    throw refused(`--from ${from}: ${why}`, cause);
  }
  const frame = readFrame(bytes, { bytes: maxTableBytes, rows: maxTableRows, wholeColumns: true });
  if ("reason" in frame) throw refused(`--from ${from}: ${frame.reason.message}`);
  const { names } = frame;
  const known = names.slice(0, 50).join(", ");
  const labels = frame.column(target);
  if (!labels) throw refused(`--target ${target}: ${from} has no such column; it has ${known}`);
  if (id !== undefined && !names.includes(id)) throw refused(`--id ${id}: ${from} has no such column; it has ${known}`);
  const idColumn = id ?? "id";
  if (idColumn === target) throw refused(`--id ${idColumn}: this column is predicted; give another one`);
  const isNewId = !names.includes(idColumn);
  if (!isNewId) checkIds(frame, idColumn, from);

  const columns = names.map((name) => frame.column(name)!);
  const isMissing = (row: number) => (isNumeric(labels) ? Number.isNaN(labels.values[row]!) : labels.isMissing(row));
  const labelled = Array.from({ length: frame.rows }, (_, row) => row).filter((row) => !isMissing(row));
  const cells = (row: number) => columns.map((column) => column.cell(row));
  const shuffled = permutation(labelled.length, uniforms(seed, "task")).map((place) => labelled[place]!);
  const rows = shuffled.map((row, number) => [...(isNewId ? [String(number)] : []), ...cells(row)]);
  const header = [...(isNewId ? [idColumn] : []), ...names];
  return { header, rows, idColumn, isNewId, dropped: frame.rows - rows.length, frame };
}

function checkIds(frame: Frame, idColumn: string, from: string): void {
  const column = frame.column(idColumn)!;
  const seen = new Set(Array.from({ length: column.rows }, (_, row) => column.cell(row)));
  if (seen.size === column.rows && !seen.has("")) return;
  throw refused(
    `${from}: column ${idColumn} does not tell rows apart, since values are missing or repeated; name another one with --id, or rename it`,
  );
}

/** Returns a submission's columns, the sample submission's values and a row's answers. */
function answersOf({ frame }: Table, { metric, target, from }: InitOptions) {
  const { input, probabilities } = metrics[metric];
  const labels = frame.column(target)!;
  const values = Array.from({ length: labels.rows }, (_, row) => labels.cell(row)).filter((text) => text.trim() !== "");
  const isBinary = values.every((text) => Number(text) === 0 || Number(text) === 1);
  const one = (sample: string) => ({ columns: [target], sample: [sample], of: (text: string) => [text] });
  if (probabilities && !(isBinary && metric !== "RocAucOneVsOne")) {
    const classes = [...new Set(values)].sort();
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
  if (input !== "labels" && input !== "texts" && !isNumeric(labels))
    throw refused(
      `--metric ${metric} takes numbers, but column ${target} of ${from} has ${JSON.stringify(labels.cell(labels.firstText))}; give a metric of labels, for example Accuracy`,
    );
  if (input === "numbers" || input === "aboveMinusOne") return one(probabilities || metric === "RocAuc" ? "0.5" : "0");
  const counts = new Map<string, number>();
  for (const text of values) counts.set(text, (counts.get(text) ?? 0) + 1);
  if (input === "labels" && isNumeric(labels) && counts.size > Math.max(maxFewNumbers, values.length / 2))
    throw refused(
      `--metric ${metric} compares labels, but column ${target} of ${from} has ${counts.size} different numbers; give a metric of numbers, for example RMSE`,
    );
  return one([...counts].sort(([, a], [, b]) => b - a)[0]![0]);
}

function descriptionOf(
  name: string,
  { header, idColumn }: Table,
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
