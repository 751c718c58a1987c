/** What stands in a finished run folder, for the last lines of `longrun run`. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { comparison, type EvaluationFigures, type Terminal } from "./terminal.ts";

/** What is read of `summary.json`; the learner writes it. */
interface Summary {
  state?: "running" | "succeeded" | "failed" | "stopped";
  evaluation?: { before?: EvaluationFigures; after?: EvaluationFigures };
}

/** `best/score.json` */
interface Best {
  score: number;
  metric: string;
  iteration: number;
}

export function readSummary(directory: string): Summary | undefined {
  return read<Summary>(join(directory, "summary.json"));
}

/** Shows the before/after table, the best program and the report. */
export function showEnd(terminal: Terminal, directory: string): void {
  const { evaluation } = readSummary(directory) ?? {};
  const best = read<Best>(join(directory, "best", "score.json"));
  const table = comparison(evaluation?.before, evaluation?.after, best?.metric ?? "score");
  if (table.length > 0) terminal.line("");
  for (const line of table) terminal.line(line);
  terminal.line("");
  if (best) terminal.line(`Best program: ${join(directory, "best", "program.py")} (${best.metric} ${best.score})`);
  else terminal.line("No program was valid.");
  const report = join(directory, "report.html");
  if (existsSync(report)) terminal.line(`Report: ${report}`);
}

function read<Value>(path: string): Value | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    // Evaluation can be switched off, and a run can end without a valid program.
    return undefined;
  }
}
