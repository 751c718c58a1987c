import type { ColumnFacts } from "../tasks/profile.ts";

/** The content of prompts about a task; `readPromptTask` of snippet.ts makes it from the task's public folder. */
export interface PromptTask {
  name: string;
  /** The task in a sentence or two. Absent: the first paragraph of the description. Never cut. */
  statement?: string;
  /** Markdown. */
  description: string;
  /** Absent if only the description says how submissions are evaluated. */
  metric?: { name: string; direction: "Higher" | "Lower" };
  /** Column names of the training table; empty if there is no table. */
  columns: readonly string[];
  /** The files as a program sees them, relative to `./input/`. */
  files: readonly string[];
  /** Facts by file name: a file's size and rows, a folder's content. */
  fileFacts?: Readonly<Record<string, string>>;
  /** Types and missing cells of the training table, and differences of the test table. */
  profile?: DataProfile;
  /** The first records of some files. `head` is a table's header. */
  snippet: readonly { file: string; head?: string; records: readonly string[] }[];
  /** First lines of the sample submission, header included; empty if there is none. */
  submissionFormat: readonly string[];
  packages: readonly string[];
}

export interface DataProfile {
  /** The training table. The facts come from its first `profiledRows` rows, or from all if `complete`. */
  file: string;
  columns: readonly ColumnFacts[];
  profiledRows: number;
  complete: boolean;
  /** The test table, if there is one: its missing and its additional columns. */
  test?: { file: string; lacks: readonly string[]; adds: readonly string[] };
}
