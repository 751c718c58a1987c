/**
 * `longrun exec`: one program through instrumentation, the sandbox that actors use, and the grader. Each is a program
 * of the part that owns it.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ControllerError, describeFileError, EXIT } from "./errors.ts";
import { preparePython } from "./local/prepare.ts";
import { askPart } from "./part-process.ts";
import type { Parts } from "./parts.ts";

export interface ExecOptions {
  /** Task folder with task.yaml and prepared/. */
  task: string;
  json: boolean;
  python?: string | undefined;
}

/** What `longrun exec --json` prints. */
export interface ExecResult {
  outcome: string;
  durationSeconds: number;
  cpuSeconds: number;
  peakMemoryBytes: number;
  markers: string[];
  output: string;
  valid: boolean;
  /** null where the answers are not at hand, or the submission is not valid. */
  score: number | null;
  reward: number | null;
  reason: string;
}

interface Instrumented {
  program: string;
  markers: string[];
  instrumenter: string;
}

interface Grade {
  valid: boolean;
  score: number | null;
  reward: number | null;
  reason: string;
}

type Executed = Pick<
  ExecResult,
  "outcome" | "durationSeconds" | "cpuSeconds" | "peakMemoryBytes" | "markers" | "output"
>;

/** @returns the exit status: 0 whatever became of the program, since its failure is a result */
export async function executeProgram(
  file: string,
  options: ExecOptions,
  parts: Parts,
  signal: AbortSignal,
): Promise<number> {
  const program = readProgram(file);
  const task = resolve(options.task);
  if (!existsSync(join(task, "task.yaml")))
    throw new ControllerError(
      "input",
      `--task ${options.task}: holds no task.yaml; make the folder with: longrun prepare TASK`,
    );
  const progress = (text: string): void => void process.stderr.write(`${text}\n`);
  const python = await preparePython(options.python, { parts, signal, progress: options.json ? () => {} : progress });

  const temporary = mkdtempSync(join(tmpdir(), "longrun-exec-"));
  const cleanUp = (): void => rmSync(temporary, { recursive: true, force: true });
  process.on("exit", cleanUp);
  try {
    const instrumented = await askPart<Instrumented>(parts.instrument, [], { stdin: program, signal });
    const programFile = join(temporary, "program.py");
    const resultFile = join(temporary, "result.json");
    writeFileSync(programFile, instrumented.program);
    const executed = await askPart<Executed>(
      parts.execute,
      ["--task-dir", task, "--python", python.directory, "--program", programFile, "--scratch", temporary],
      { signal },
    );
    writeFileSync(resultFile, JSON.stringify({ ...executed, instrumented }));
    const graded = await gradeIfPossible(task, resultFile, parts, signal);
    show({ ...executed, ...graded }, options.json);
    return EXIT.done;
  } finally {
    process.off("exit", cleanUp);
    cleanUp();
  }
}

async function gradeIfPossible(task: string, resultFile: string, parts: Parts, signal: AbortSignal): Promise<Grade> {
  if (!existsSync(join(task, "prepared", "private", "answers.csv")))
    return { valid: false, score: null, reward: null, reason: "the answers are not at hand, so nothing was graded" };
  const { valid, score, reward, reason } = await askPart<Grade>(parts.grade, ["--task", task, "--result", resultFile], {
    signal,
  });
  return { valid, score, reward, reason };
}

function show(result: ExecResult, json: boolean): void {
  if (json) {
    process.stdout.write(`${JSON.stringify(result)}\n`);
    return;
  }
  const { output, ...facts } = result;
  process.stdout.write(output.endsWith("\n") || output === "" ? output : `${output}\n`);
  for (const [name, value] of Object.entries(facts))
    process.stdout.write(`${name.padEnd(16)}${Array.isArray(value) ? value.join(", ") : (value ?? "-")}\n`);
}

function readProgram(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new ControllerError("input", describeFileError(file, cause), { cause });
  }
}
