import type { ColumnFacts } from "../tasks/profile.ts";

/** What prompts say of a task; `readPromptTask` of snippet.ts makes it from the task's public folder. */
export interface PromptTask {
  name: string;
  /** What is to be predicted, in a sentence or two; absent: the first paragraph of the description. Never cut. */
  statement?: string;
  /** Markdown. */
  description: string;
  /** Absent where the description alone says how submissions are evaluated. */
  metric?: { name: string; direction: "Higher" | "Lower" };
  /** Column names of the training table; empty if it is no table. */
  columns: readonly string[];
  /** The files as a program sees them, relative to `./input/`. */
  files: readonly string[];
  /** Of a file its size and rows, of a folder what is in it; by the file's name. */
  fileFacts?: Readonly<Record<string, string>>;
  /** Types and missing cells of the training table, and how the test table differs from it. */
  profile?: DataProfile;
  /** The first records of some files. `head` is a table's header. */
  snippet: readonly { file: string; head?: string; records: readonly string[] }[];
  /** First lines of the sample submission, header included; empty if there is none. */
  submissionFormat: readonly string[];
  packages: readonly string[];
}

export interface DataProfile {
  /** The training table; its first `profiledRows` rows make the facts, all of them if `complete`. */
  file: string;
  columns: readonly ColumnFacts[];
  profiledRows: number;
  complete: boolean;
  /** The test table, if there is one: which of the columns it lacks, and which it has besides. */
  test?: { file: string; lacks: readonly string[]; adds: readonly string[] };
}
