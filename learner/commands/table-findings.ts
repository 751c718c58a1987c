/** What `task check` finds in the tables of a task folder. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Column, exactValue, isNumeric } from "../grading/column.ts";
import { type Frame, readFrame } from "../grading/frame.ts";
import { metrics } from "../grading/metrics.ts";
import { shownName } from "../grading/name-twins.ts";
import type { PublicFile } from "../tasks/public-files.ts";
import type { Task } from "../tasks/task.ts";
import { error, type Finding, warning } from "./finding.ts";
import { labelCopies } from "./label-copies.ts";

/** Larger tables are not read. */
export const maxComparedBytes = 2 ** 28;

const rowsOf = (column: Column) => Array.from({ length: column.rows }, (_, row) => row);

/** Finds tables that programs would read otherwise than they are meant. */
export function* shapeFindings({ name, table }: Pick<PublicFile, "name" | "table">): Generator<Finding> {
  if (!table || !("columns" in table)) return;
  const { columns, unnamed } = table;
  if (unnamed !== undefined)
    yield warning(
      `${name}: the header has ${columns.length} names, but rows have ${columns.length + unnamed} cells: pandas takes the first cells as an index`,
      "remove the delimiters at the ends of the rows, or add the missing names",
    );
  const [only] = columns;
  const delimiter = columns.length === 1 ? /[;\t|]/.exec(only!.name)?.[0] : undefined;
  if (delimiter !== undefined)
    yield warning(
      `${name} has one column, ${shownName(only!.name)}: it seems to be delimited by ${JSON.stringify(delimiter)}`,
      "write it with commas, or tell programs in description.md",
    );
}

/** Returns each constant target's value if all target columns of the answers are constant: every constant is a perfect prediction. */
export function constantAnswers({ grader, answersPath, rows }: Task): string[] | undefined {
  const frame = rows > 1 ? smallTable(answersPath) : undefined;
  if (!frame) return undefined;
  const columns = grader.targetColumns.map((name) => frame.column(name)!);
  const isConstant = (column: Column) =>
    rowsOf(column).every((row) =>
      isNumeric(column) ? exactValue(column, row) === exactValue(column, 0) : column.cell(row) === column.cell(0),
    );
  return columns.every(isConstant) ? columns.map((column) => column.cell(0)) : undefined;
}

/** Finds features of train.csv that reveal the label, and labels that mean a missing value to pandas. */
export function* trainFindings(task: Task, files: readonly PublicFile[]): Generator<Finding> {
  const [train, test] = ["train.csv", "test.csv"].map((wanted) => files.find(({ name }) => name === wanted));
  if (!train || !test?.table || !("columns" in test.table)) return;
  const frame = smallTable(join(task.publicDirectory, train.name));
  if (!frame) return;
  const testColumns = test.table.columns.map(({ name }) => name);
  yield* copyFindings(task, frame, testColumns);
  const { input, probabilities } = metrics[task.grader.metric];
  if (task.mleBench || (input !== "labels" && !probabilities)) return;
  for (const name of frame.names.filter((it) => !testColumns.includes(it)))
    yield* missingLabels(task, frame.column(name)!);
}

function* copyFindings({ grader }: Task, frame: Frame, testColumns: readonly string[]): Generator<Finding> {
  for (const { feature, label, how } of labelCopies(frame, testColumns)) {
    const remedy =
      feature === grader.idColumn
        ? `leave ${feature} out of the table and make the folder again: longrun task init then numbers the shuffled rows`
        : `leave ${feature} out of train.csv and test.csv, unless it is known before the label is`;
    if (how === "equal") yield error(`${feature} equals the label ${label} in every row of train.csv`, remedy);
    else
      yield warning(`${feature} is one-to-one with the label ${label} in train.csv: it gives the label away`, remedy);
  }
}

function* missingLabels({ description }: Task, label: Column): Generator<Finding> {
  if (isNumeric(label) || description.includes("keep_default_na")) return;
  const rows = rowsOf(label).filter((row) => label.isMissing(row) && label.cell(row) !== "");
  if (rows.length === 0) return;
  yield warning(
    `${label.name} is ${JSON.stringify(label.cell(rows[0]!))} in ${rows.length} of ${label.rows} rows of train.csv, which pandas reads as missing`,
    "if it is a label, say in description.md to read the tables with keep_default_na=False, or give the label another name",
  );
}

function smallTable(path: string): Frame | undefined {
  const frame = readFrame(readFileSync(path), { bytes: maxComparedBytes, rows: maxComparedBytes, wholeColumns: true });
  return "reason" in frame ? undefined : frame;
}
