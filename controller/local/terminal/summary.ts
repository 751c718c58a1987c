/** Reads a finished run folder for the last lines of `longrun run`. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { SolveFigures } from "../../../proto/solve.ts";
import { iterationOf, readMetrics } from "./metrics-lines.ts";
import { comparison, type EvaluationFigures, type IterationLine, runNotes, type Terminal } from "./terminal.ts";

const SUMMARY = "summary.json";

/** The fields of `summary.json` that are read here; the learner writes the file. */
export interface Summary {
  /** For a person: the fault and the remedy. */
  message?: string;
  state?: "running" | "succeeded" | "failed" | "stopped";
  /** ISO 8601. */
  startedAt?: string;
  updatedAt?: string;
  /** Why no program was valid; absent after a valid one. */
  commonErrors?: CommonError[];
  /** With several tasks, `tasks` has the evaluation of each task. */
  evaluation?: Evaluated & { tasks?: Record<string, Evaluated> };
  solve?: SolveFigures;
}

interface Evaluated {
  before?: EvaluationFigures;
  after?: EvaluationFigures;
}

interface CommonError {
  error: string;
  samples: number;
  example: { id: string; program: string };
}

/** Number of errors, and of program lines for each, that the terminal shows; the report has all. */
const SHOWN_ERRORS = 3;
const SHOWN_LINES = 25;

/** `best/score.json` */
export interface Best {
  /** The public score, if the answers have a private part. */
  score: number;
  privateScore?: number;
  /** Why there is no private score. */
  noPrivateScore?: string;
  metric: string;
}

export function readSummary(directory: string): Summary | undefined {
  return read<Summary>(join(directory, SUMMARY));
}

/** @returns the summary if it was written at `since` (Unix milliseconds) or later; an older one is outdated */
export function readSummarySince(directory: string, since: number): Summary | undefined {
  const written = statSync(join(directory, SUMMARY), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return written >= since ? readSummary(directory) : undefined;
}

/** Shows the before/after table of each task, what the engine did, the best programs and the report. */
export function showEnd(terminal: Terminal, directory: string): void {
  const { evaluation, commonErrors = [] } = readSummary(directory) ?? {};
  const lines = readMetrics(directory).map(({ line }) => line);
  const tasks = Object.keys(evaluation?.tasks ?? lines.at(-1)?.tasks ?? {});
  const found: { title: string; folder: string; best: Best; task?: string }[] = [];
  for (const task of tasks.length > 1 ? tasks : [undefined]) {
    const folder = join(directory, "best", ...(task === undefined ? [] : [task]));
    const best = read<Best>(join(folder, "score.json"));
    const { before, after } = (task === undefined ? evaluation : evaluation?.tasks?.[task]) ?? {};
    const table = comparison(before, after, best?.metric ?? "score");
    if (table.length > 0) terminal.line("");
    for (const [index, line] of table.entries()) terminal.line(index === 0 && task ? titled(task, line) : line);
    if (best)
      found.push({ title: task ? `Best program of ${task}` : "Best program", folder, best, ...(task && { task }) });
  }
  terminal.line("");
  for (const note of runNotes(lines)) terminal.line(note);
  if (found.length > 0) for (const line of invalidLines(lines, directory)) terminal.line(line);
  for (const { title, folder, best, task } of found)
    terminal.line(`${title}: ${join(folder, "program.py")} (${bestFacts(best, lines, task)})`);
  if (found.length === 0) for (const line of errorLines(commonErrors, directory)) terminal.line(line);
  const report = join(directory, "report.html");
  if (existsSync(report)) terminal.line(`Report: ${report}`);
}

/** Returns the head of a table with the task's name over its first column. */
const titled = (task: string, head: string): string => `${task}${head.slice(Math.min(task.length, head.search(/\S/)))}`;

function bestFacts(best: Best, lines: readonly IterationLine[], task: string | undefined): string {
  const { metric, score } = best;
  const iteration = iterationOf(score, lines, task);
  return `${metric} ${score}${privateWords(best)}${iteration === undefined ? "" : `, iteration ${iteration}`}`;
}

/** Returns what follows the public score of a program; empty without a private part. */
export function privateWords({ privateScore, noPrivateScore }: Pick<Best, "privateScore" | "noPrivateScore">): string {
  if (privateScore !== undefined) return ` (private ${privateScore})`;
  return noPrivateScore === undefined ? "" : ` (no private score: ${noPrivateScore})`;
}

/** Returns a line that says where to find the errors, if most programs of the iterations were invalid. */
export function invalidLines(
  lines: readonly Pick<IterationLine, "samples" | "validFraction">[],
  directory: string,
): string[] {
  const programs = lines.reduce((sum, { samples }) => sum + samples, 0);
  const invalid = lines.reduce((sum, line) => sum + Math.round(line.samples * (1 - line.validFraction)), 0);
  if (2 * invalid <= programs) return [];
  return [`Not valid: ${invalid} of ${programs} programs; longrun samples ${directory} --failed shows their errors`];
}

/** Returns why no program was valid: the commonest errors with one program each. */
export function errorLines(errors: readonly CommonError[], directory: string): string[] {
  if (errors.length === 0) return ["No program was valid."];
  const shown = errors.slice(0, SHOWN_ERRORS).flatMap(({ error, samples, example }) => {
    const lines = example.program.trimEnd().split("\n");
    const left = lines.length - SHOWN_LINES;
    const program = [...lines.slice(0, SHOWN_LINES), ...(left > 0 ? [`… ${left} more lines`] : [])];
    const times = samples === 1 ? "1 program" : `${samples} programs`;
    return ["", `${times}: ${error} (for example ${example.id})`, ...program.map((line) => `    ${line}`)];
  });
  return [
    "No program was valid. The commonest errors:",
    ...shown,
    "",
    `All of them: longrun samples ${directory} --failed`,
  ];
}

function read<Value>(path: string): Value | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    // Evaluation can be switched off, and a run can end without a valid program.
    return undefined;
  }
}
