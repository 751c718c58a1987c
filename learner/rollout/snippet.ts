import { join } from "node:path";
import type { TrainingRun } from "../../crds/trainingrun.ts";
import { PACKAGES } from "../../proto/packages.ts";
import { largeAsWritten } from "../tasks/exact-json.ts";
import { readHead, type TableFacts } from "../tasks/profile.ts";
import { describeFile, isSampleSubmission, listPublicFiles, type PublicFile } from "../tasks/public-files.ts";
import type { Task } from "../tasks/task.ts";
import { RolloutError } from "./errors.ts";
import type { DataProfile, PromptTask } from "./prompt-task.ts";
import { clip } from "./shorten.ts";

/** Bytes that are read of a file for its first records. */
const headBytes = 1 << 16;
/** Longest record. A JSON record has room for the parts that `shorten.ts` then removes. */
const recordCharacters = 1000;
const jsonCharacters = 8000;

type SnippetSource = Pick<Task, "name" | "publicDirectory" | "description" | "grader" | "mleBench">;

/** Returns the packages that prompts list as importable. */
export function packagesOf({ prompts, actors }: TrainingRun["spec"]): readonly string[] {
  return prompts.packages ?? PACKAGES[actors.packages ?? "Basic"];
}

/**
 * Returns the content of prompts about a task, from its public folder alone, with the first `rows` records of each table, JSON or text
 * file.
 * @param packages packages that programs can import
 * @param listed the public folder's files, if they are known
 * @throws RolloutError `task` if the public folder cannot be read
 */
export function readPromptTask(
  task: SnippetSource,
  rows: number,
  packages = PACKAGES.Basic,
  listed?: readonly PublicFile[],
): PromptTask {
  const folder = task.publicDirectory;
  const headOf = (name: string) =>
    readHead(join(folder, name), headBytes)
      .toString("utf8")
      .replace(/^\uFEFF/, "");
  try {
    const files = listed ?? listPublicFiles(folder);
    const sample = files.find(({ name }) => isSampleSubmission(name));
    const profile = dataProfile(files);
    return {
      name: task.name,
      ...(task.mleBench && { statement: task.mleBench.statement }),
      description: task.description,
      metric: { name: task.grader.metric, direction: task.grader.direction },
      columns: profile?.columns.map(({ name }) => name) ?? [],
      files: files.map(({ name }) => name),
      fileFacts: Object.fromEntries(files.map((file) => [file.name, describeFile(file)])),
      ...(profile && { profile }),
      snippet: files
        .filter(({ name }) => !isSampleSubmission(name) && !name.endsWith("/"))
        .flatMap(({ name }) => fileSnippet(name, headOf(name), rows)),
      submissionFormat: sample === undefined ? [] : tableRecords(headOf(sample.name)).slice(0, 3),
      packages,
    };
  } catch (cause) {
    const why = (cause as Error).message;
    throw new RolloutError("task", `task ${task.name}: cannot show ${folder} in a prompt: ${why}`, cause);
  }
}

/** Compares the first table whose name begins with `train` with the first one that begins with `test`. */
function dataProfile(files: readonly PublicFile[]): DataProfile | undefined {
  const tables = files.flatMap(({ name, table }) => (table && "columns" in table ? [{ file: name, ...table }] : []));
  const train = tables.find(({ file }) => file.startsWith("train"));
  if (!train) return undefined;
  const test = tables.find(({ file }) => file.startsWith("test"));
  return {
    file: train.file,
    columns: train.columns,
    profiledRows: train.profiledRows,
    complete: train.rows === train.profiledRows,
    ...(test && { test: { file: test.file, lacks: lacking(train, test), adds: lacking(test, train) } }),
  };
}

/** Returns the names of columns of `a` that `b` lacks. */
function lacking(a: TableFacts, b: TableFacts): string[] {
  const names = new Set(b.columns.map(({ name }) => name));
  return a.columns.map(({ name }) => name).filter((name) => !names.has(name));
}

/** Returns the first records of one file; nothing for a file that is not text. */
export function fileSnippet(file: string, head: string, rows: number): PromptTask["snippet"] {
  const first = (records: string[]) => records.slice(0, rows).map((record) => clip(record, recordCharacters));
  const extension = /\.[a-z0-9]+$/.exec(file.toLowerCase())?.[0];
  switch (extension) {
    case ".csv":
    case ".tsv": {
      const [header, ...records] = tableRecords(head);
      return header === undefined ? [] : [{ file, head: clip(header, recordCharacters), records: first(records) }];
    }
    case ".json":
      return [{ file, records: jsonRecords(head).slice(0, rows).map(oneLine) }];
    case ".jsonl":
    case ".txt":
      return [{ file, records: first(wholeLines(head)) }];
    default:
      return [];
  }
}

/** Returns lines, without the last line of a full head, which may be incomplete. */
function wholeLines(head: string): string[] {
  const lines = head.split(/\r?\n/);
  if (Buffer.byteLength(head) >= headBytes || lines.at(-1) === "") lines.pop();
  return lines;
}

/** Returns the records of a CSV table as text: a line break between quotes does not end a record. */
function tableRecords(head: string): string[] {
  const records: string[] = [];
  let open: string | undefined;
  for (const line of wholeLines(head)) {
    const record: string = open === undefined ? line : `${open}\n${line}`;
    const quotes = record.split('"').length - 1;
    open = quotes % 2 === 1 ? record : undefined;
    if (open === undefined && record !== "") records.push(record);
  }
  return records;
}

/** Returns the elements of a JSON array, or the file's single value. */
function jsonRecords(head: string): string[] {
  const text = head.trimStart();
  if (!text.startsWith("[")) return [text];
  const records: string[] = [];
  let [depth, start] = [0, 1];
  for (const { 0: token, index } of text.matchAll(/"(?:\\.|[^"\\])*"?|[[\]{},]/gs)) {
    if (token === "[" || token === "{") depth += 1;
    else if (token === "]" || token === "}") depth -= 1;
    if (!((token === "," && depth === 1) || (token === "]" && depth === 0))) continue;
    const record = text.slice(start, index).trim();
    if (record !== "") records.push(record);
    start = index + 1;
    if (depth === 0) return records;
  }
  if (records.length === 0) records.push(text.slice(1).trim()); // one record fills the head
  return records;
}

/** Returns multi-line JSON on one line. */
function oneLine(record: string): string {
  if (!record.includes("\n")) return clip(record, recordCharacters);
  try {
    return clip(JSON.stringify(JSON.parse(record, largeAsWritten)), jsonCharacters);
  } catch {
    return clip(record, recordCharacters); // its end is beyond the head
  }
}
