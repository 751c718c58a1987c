/** Prints the best program of a run folder, for `longrun best` (local folder) and `kubectl longrun best` (folder on the volume). */
import { ControllerError } from "../errors.ts";
import { harmless } from "../harmless.ts";
import { iterationOf, linesOf } from "../local/terminal/metrics-lines.ts";
import { type Best, privateWords } from "../local/terminal/summary.ts";
import type { Screen } from "../local/terminal/terminal.ts";
import type { BestOptions } from "./run-folder-options.ts";

/** The part of `score.json` that is shown. */
interface BestFacts extends Best {
  /** Version of the policy that wrote the program. */
  iteration: number;
  durationSeconds: number;
  family?: string;
  guards?: string[];
}

/** Returns the text of a file below the run folder; undefined if it is not there. */
type Read = (path: string) => Promise<string | undefined>;

/**
 * Writes the best program below one comment line with its score.
 *
 * @param name the run, in errors
 * @param tasks of its manifest
 * @throws ControllerError `input` if a task must be named or the run has no such task, `failed` if no program was valid
 */
export async function printBest(
  name: string,
  tasks: readonly string[],
  { task, json }: BestOptions,
  read: Read,
  screen: Screen,
): Promise<void> {
  for (const folder of foldersOf(name, tasks, task)) {
    const [score, program] = [await read(`${folder}/score.json`), await read(`${folder}/program.py`)];
    if (score === undefined || program === undefined) continue;
    const facts = JSON.parse(score) as BestFacts;
    const lines = linesOf((await read("metrics.jsonl")) ?? "").map(({ line }) => line);
    const ofTask = tasks.length > 1 ? task : undefined;
    return show(facts, iterationOf(facts.score, lines, ofTask), program, json, screen);
  }
  if (task !== undefined && !tasks.includes(task))
    throw new ControllerError("input", `--task ${task}: ${name} has no such task; it has ${tasks.join(", ")}`);
  const where = task === undefined ? name : `${name} for task ${task}`;
  throw new ControllerError("failed", `no program of ${where} was valid yet`);
}

/** The only task's program is in `best/` itself, unless the run had other tasks. A removed task keeps its folder. */
function foldersOf(name: string, tasks: readonly string[], task: string | undefined): string[] {
  const several = tasks.length > 1;
  if (task === undefined && several)
    throw new ControllerError("input", `${name} has several tasks; name one with --task: ${tasks.join(", ")}`);
  if (task !== undefined && !/^[a-z0-9][-a-z0-9]*$/.test(task))
    throw new ControllerError("input", `--task ${task}: this is no name of a task; ${name} has ${tasks.join(", ")}`);
  const own = `best/${task ?? tasks[0]}`;
  return several || (task !== undefined && task !== tasks[0]) ? [own] : ["best", own];
}

/** @param iteration the program's, as the rows of `longrun run` count; undefined: an evaluation ran the program */
function show(facts: BestFacts, iteration: number | undefined, program: string, json: boolean, screen: Screen): void {
  if (json) return void screen.write(`${JSON.stringify({ ...facts, program })}\n`);
  const { metric, iteration: version, durationSeconds, family, guards = [] } = facts;
  const policy = version === 0 ? "starting policy" : `policy of iteration ${version}`;
  const words = [
    `${metric} ${facts.score}${privateWords(facts)}`,
    iteration === undefined ? `written by the ${policy}` : `iteration ${iteration}`,
    `ran ${durationSeconds.toFixed(2)} s`,
    family,
    guards.length > 0 && `flagged: ${guards.join(", ")}`,
  ];
  const comment = harmless(`# ${words.filter(Boolean).join(" · ")}`).replaceAll("\n", " ");
  screen.write(`${comment}\n${screen.isTTY ? harmless(program) : program}`);
}
