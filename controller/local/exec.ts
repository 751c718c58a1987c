/**
 * `longrun exec`: runs one program through the instrumenter, the actors' sandbox and the grader, each in a process of its own part.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { MLE_BENCH_TASKS } from "../../crds/mlebench.ts";
import { parseTask, type Task } from "../../crds/trainingrun.ts";
import type { Values } from "../../proto/command-line.ts";
import { limitsOfTask } from "../../proto/execution.ts";
import { ControllerError, EXIT } from "../errors.ts";
import { harmless } from "../harmless.ts";
import { askPart } from "../part-process.ts";
import type { Parts } from "../parts.ts";
import { readInput } from "../read-input.ts";
import { preparePython, taskFolder } from "./inputs/prepare.ts";
import { ANSWERS } from "./inputs/resolve.ts";
import type { EXEC } from "./options.ts";
import type { Screen } from "./terminal/terminal.ts";

/** Output of `longrun exec --json`. */
export interface ExecResult {
  outcome: string;
  exitStatus: number;
  /** Why the program failed, or which files a program without a submission left. */
  detail: string;
  durationSeconds: number;
  cpuSeconds: number;
  peakMemoryBytes: number;
  markers: string[];
  output: string;
  valid: boolean;
  /** null if there are no answers, or if the submission is invalid. */
  score: number | null;
  reward: number | null;
  /** The reward was raised to the grader's rewardFloor; worse scores would earn the same. */
  clamped: boolean;
  reason: string;
  /** Guards that flagged a valid submission (learner/grading/README.md). */
  guards: string[];
  /** The last lines of the output of a program that did not complete: usually the error. */
  lastLines: string[];
}

interface Instrumented {
  program: string;
  markers: string[];
  instrumenter: string;
}

type Grade = Pick<ExecResult, "valid" | "score" | "reward" | "clamped" | "reason" | "guards">;

const NOT_GRADED: Grade = { valid: false, score: null, reward: null, clamped: false, reason: "", guards: [] };

/** The used part of actor/exec.ts's output. */
interface Executed {
  outcome: string;
  exitStatus: number;
  durationSeconds: number;
  cpuSeconds: number;
  peakMemoryBytes: number;
  markers: string[];
  forgedMarkers: number;
  output: string;
  submission: string | null;
  detail: string;
  isolation: string;
}

const LAST_LINES = 3;
const LONGEST_LINE = 300;

/** Placeholder for the nonce in an instrumented program. */
const NONCE = "@@NONCE@@";

/** @returns the exit status: 0 even if the program failed, because a failure is a result */
export async function executeProgram(
  file: string,
  options: Values<typeof EXEC.options>,
  parts: Parts,
  signal: AbortSignal,
): Promise<number> {
  const program = readInput(file);
  const say = (text: string): void => void (options.json || process.stderr.write(`${text}\n`));
  const steps = { parts, signal, env: process.env, step: () => {}, progress: say };
  const task = resolve(await taskFolder(options.task, options.python, steps));
  const spec = readTask(task, options.task);
  const python = await preparePython(options.python, options.packages, steps);

  const temporary = mkdtempSync(join(tmpdir(), "longrun-exec-"));
  const cleanUp = (): void => rmSync(temporary, { recursive: true, force: true });
  process.on("exit", cleanUp);
  try {
    const instrumented = await askPart<Instrumented>(parts.instrument, [], { stdin: program, signal });
    const executed = await runInSandbox(instrumented.program, task, spec, python.directory, temporary, parts, signal);
    if (!options.json) process.stderr.write(`${harmless(executed.isolation)}\n`);
    const graded = await gradeIfPossible(task, instrumented, executed, parts, signal);
    const { outcome, exitStatus, detail, durationSeconds, cpuSeconds, peakMemoryBytes, output, markers } = executed;
    const measured = {
      outcome,
      exitStatus,
      detail,
      durationSeconds,
      cpuSeconds,
      peakMemoryBytes,
      markers,
    };
    const lastLines = outcome === "completed" ? [] : lastLinesOf(output);
    showResult({ ...measured, output, ...graded, lastLines }, options.json, process.stdout);
    return EXIT.done;
  } finally {
    process.off("exit", cleanUp);
    cleanUp();
  }
}

/** Returns up to LAST_LINES lines that are not blank, each cut. */
export function lastLinesOf(output: string): string[] {
  const lines = output.split(/\r\n|\n|\r/).filter((line) => line.trim() !== "");
  return lines.slice(-LAST_LINES).map((line) => line.slice(0, LONGEST_LINE));
}

function runInSandbox(
  instrumented: string,
  task: string,
  spec: Task,
  python: string,
  temporary: string,
  parts: Parts,
  signal: AbortSignal,
): Promise<Executed> {
  const program = join(temporary, "program.py");
  const nonce = randomBytes(16).toString("hex");
  writeFileSync(program, instrumented.replaceAll(NONCE, nonce));
  const limits = { ...limitsOfTask(spec), submissionBytes: spec.submissionBytes };
  const args = ["--task", task, "--program", program, "--python", python, "--nonce", nonce];
  return askPart<Executed>(parts.execute, [...args, "--limits", JSON.stringify(limits), "--out", temporary], {
    signal,
  });
}

async function gradeIfPossible(
  task: string,
  instrumented: Instrumented,
  executed: Executed,
  parts: Parts,
  signal: AbortSignal,
): Promise<Grade> {
  if (!ANSWERS.some((file) => existsSync(join(task, "prepared", "private", file))))
    return { ...NOT_GRADED, reason: "there are no answers, so the submission was not graded" };
  const { outcome, exitStatus, markers, forgedMarkers, submission } = executed;
  const answer = await askPart<Partial<Grade>>(
    parts.grade,
    [
      ...["--task", task, "--outcome", outcome, "--exit-status", String(exitStatus)],
      ...["--inserted", instrumented.markers.join(), "--seen", markers.join()],
      ...["--forged", String(forgedMarkers), ...(submission === null ? [] : ["--submission", submission])],
    ],
    { signal },
  );
  const { valid, score, reward, clamped, reason, guards } = { ...NOT_GRADED, ...answer };
  return { valid, score, reward, clamped, reason, guards };
}

/** Prints the program's output (made harmless on a terminal, unchanged into a pipe) and its result, or everything as JSON. */
export function showResult(result: ExecResult, json: boolean, screen: Screen): void {
  if (json) return void screen.write(`${JSON.stringify(result)}\n`);
  const { output, lastLines, ...facts } = result;
  const shown = screen.isTTY ? harmless(output) : output;
  screen.write(shown.endsWith("\n") || shown === "" ? shown : `${shown}\n`);
  for (const [name, value] of Object.entries(facts)) {
    const text =
      typeof value === "number" ? Number(value.toPrecision(6)) : Array.isArray(value) ? value.join(", ") : value;
    screen.write(`${name.padEnd(16)}${harmless(String(text ?? "-")).replaceAll("\n", " ")}\n`);
  }
  for (const [index, line] of lastLines.entries())
    screen.write(`${(index === 0 ? "last lines" : "").padEnd(16)}${harmless(line)}\n`);
}

/** Returns the task with the limits of its task.yaml, or the defaults for a folder that `mlebench prepare` made. */
export function readTask(directory: string, given: string): Task {
  const path = join(directory, "task.yaml");
  if (existsSync(path)) return parseTask(readFileSync(path, "utf8"), path);
  const name = basename(directory);
  if (MLE_BENCH_TASKS.includes(name) && existsSync(join(directory, "prepared")))
    return parseTask(`name: ${name}`, name);
  const make = "longrun task init DIR --from";
  const isFile = existsSync(directory) && !statSync(directory).isDirectory();
  const what = isFile
    ? `is a file; make a task folder with: ${make} ${given}`
    : `holds no task.yaml; make the folder with: ${make} FILE.csv`;
  throw new ControllerError("input", `--task ${given}: ${what}`);
}
