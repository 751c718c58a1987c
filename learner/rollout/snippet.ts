import { closeSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import type { Task } from "../grading/task.ts";
import { RolloutError } from "./errors.ts";
import type { PromptTask } from "./prompts.ts";

/** As much of a file as is read for its first records. */
const headBytes = 1 << 16;
/** A record of more characters is shown up to here. */
const recordCharacters = 1000;

/** Packages of the programs' Python that a prompt names; the paper lists those of its sandbox. */
export const programPackages: readonly string[] = ["numpy", "pandas", "scipy", "scikit-learn"];

type SnippetSource = Pick<Task, "name" | "publicDirectory" | "description" | "grader" | "columns">;

/**
 * What prompts say of a task, from its public folder: the files, the first `rows` records of each table, JSON or text
 * file (training data first), and the first lines of the sample submission.
 * @throws RolloutError `task` if the public folder cannot be read
 */
export function readPromptTask(task: SnippetSource, rows: number, packages = programPackages): PromptTask {
  const folder = task.publicDirectory;
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
      .filter(({ name }) => name !== "description.md" && !name.startsWith("."))
      .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
      .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
    const sample = entries.find(isSample);
    return {
      name: task.name,
      description: task.description,
      metric: { name: task.grader.metric, direction: task.grader.direction },
      columns: task.columns,
      files: entries,
      snippet: entries
        .filter((name) => !isSample(name) && !name.endsWith("/"))
        .flatMap((name) => fileSnippet(name, readHead(join(folder, name)), rows)),
      submissionFormat: sample === undefined ? [] : wholeLines(readHead(join(folder, sample))).slice(0, 3),
      packages,
    };
  } catch (cause) {
    throw new RolloutError(
      "task",
      `task ${task.name}: cannot show ${folder} in a prompt: ${(cause as Error).message}`,
      cause,
    );
  }
}

/** The first records of one file; nothing of a file that is not text. */
export function fileSnippet(file: string, head: string, rows: number): PromptTask["snippet"] {
  const extension = /\.[a-z0-9]+$/.exec(file.toLowerCase())?.[0];
  switch (extension) {
    case ".csv":
    case ".tsv": {
      const [header, ...records] = tableRecords(head);
      return header === undefined ? [] : [{ file, head: clip(header), records: records.slice(0, rows).map(clip) }];
    }
    case ".json":
      return [{ file, records: jsonRecords(head, rows).map(clip) }];
    case ".jsonl":
    case ".txt":
      return [{ file, records: wholeLines(head).slice(0, rows).map(clip) }];
    default:
      return [];
  }
}

/** Training data first, then test data, then the rest. */
function rank(name: string): number {
  return name.startsWith("train") ? 0 : name.startsWith("test") ? 1 : 2;
}

function isSample(name: string): boolean {
  return /^sample_?submission.*\.csv$/i.test(name);
}

function readHead(path: string): string {
  const file = openSync(path, "r");
  try {
    const buffer = Buffer.alloc(headBytes);
    const text = buffer.subarray(0, readSync(file, buffer, 0, headBytes, 0)).toString("utf8");
    return text.replace(/^\uFEFF/, "");
  } finally {
    closeSync(file);
  }
}

/** Lines; the last one of a full head may be cut off and is left out. */
function wholeLines(head: string): string[] {
  const lines = head.split(/\r?\n/);
  if (Buffer.byteLength(head) >= headBytes || lines.at(-1) === "") lines.pop();
  return lines;
}

/** Records of a CSV table as text: a line break between quotes does not end a record. */
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

/** The first elements of a JSON array, or the one value that the file is. */
function jsonRecords(head: string, rows: number): string[] {
  const text = head.trimStart();
  if (!text.startsWith("[")) return [text];
  const records: string[] = [];
  let depth = 0;
  let inString = false;
  let start = 1;
  for (let at = 0; at < text.length && records.length < rows; at++) {
    const character = text[at];
    if (inString) {
      if (character === "\\") at += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === "[" || character === "{") depth += 1;
    else if (character === "]" || character === "}") depth -= 1;
    const ends = !inString && ((character === "," && depth === 1) || (character === "]" && depth === 0));
    if (ends) {
      const record = text.slice(start, at).trim();
      if (record !== "") records.push(record);
      start = at + 1;
      if (depth === 0) return records;
    }
  }
  if (records.length === 0) records.push(text.slice(1).trim()); // one record fills the head
  return records;
}

function clip(record: string): string {
  return record.length > recordCharacters ? `${record.slice(0, recordCharacters)}...` : record;
}
