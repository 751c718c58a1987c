/** What stands in a finished run folder, for the last lines of `longrun run`. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { readMetrics } from "./metrics-lines.ts";
import { comparison, type EvaluationFigures, type IterationLine, runNotes, type Terminal } from "./terminal.ts";

const SUMMARY = "summary.json";

/** What is read of `summary.json`; the learner writes it. */
export interface Summary {
  /** For a person: what blocks or failed, and how to mend it. */
  message?: string;
  state?: "running" | "succeeded" | "failed" | "stopped";
  /** ISO 8601. */
  startedAt?: string;
  updatedAt?: string;
  evaluation?: { before?: EvaluationFigures; after?: EvaluationFigures };
}

/** `best/score.json` */
interface Best {
  score: number;
  metric: string;
}

export function readSummary(directory: string): Summary | undefined {
  return read<Summary>(join(directory, SUMMARY));
}

/** @returns the summary if it was written at `since` (Unix milliseconds) or later: what an older one says is past */
export function readSummarySince(directory: string, since: number): Summary | undefined {
  const written = statSync(join(directory, SUMMARY), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return written >= since ? readSummary(directory) : undefined;
}

/** Shows the before/after table, what the engine did, the best program and the report. */
export function showEnd(terminal: Terminal, directory: string): void {
  const { evaluation } = readSummary(directory) ?? {};
  const best = read<Best>(join(directory, "best", "score.json"));
  const table = comparison(evaluation?.before, evaluation?.after, best?.metric ?? "score");
  if (table.length > 0) terminal.line("");
  for (const line of table) terminal.line(line);
  terminal.line("");
  const lines = readMetrics(directory).map(({ line }) => line);
  for (const note of runNotes(lines)) terminal.line(note);
  if (best) terminal.line(`Best program: ${join(directory, "best", "program.py")} (${bestFacts(best, lines)})`);
  else terminal.line("No program was valid.");
  const report = join(directory, "report.html");
  if (existsSync(report)) terminal.line(`Report: ${report}`);
}

/** A program is trained on in a later iteration than it was written in, where it was carried over: the row counts. */
function bestFacts({ metric, score }: Best, lines: readonly IterationLine[]): string {
  const row = lines.find(({ bestScore }) => bestScore === score);
  return `${metric} ${score}${row ? `, iteration ${row.iteration}` : ""}`;
}

function read<Value>(path: string): Value | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    // Evaluation can be switched off, and a run can end without a valid program.
    return undefined;
  }
}
