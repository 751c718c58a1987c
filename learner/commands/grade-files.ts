/** Grades files: one submission against one file of answers, or a list of such pairs. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, extname, join, resolve } from "node:path";
import { type Grader, parseTask } from "../../crds/trainingrun.ts";
import { type Answers, type Graded, gradeSubmission, readAnswers } from "../grading/grade.ts";
import { type Rank, rankOf } from "../grading/leaderboard.ts";
import { type MleBenchTask, mleBenchTask, mleBenchTasks } from "../grading/mlebench-tasks.ts";
import { reasonOf } from "../grading/reasons.ts";
import { TaskError } from "../tasks/errors.ts";
import { readRegistry } from "../tasks/registry.ts";

/** The grade of one submission; `rank` for the twelve MLE-bench tasks. */
export interface FileGrade {
  valid: boolean;
  score: number | null;
  scoreRaw: number | null;
  code: string;
  message: string;
  rank?: Rank;
}

/** Graders by task, and answers by task and file, each opened once. */
export class FileGrader {
  readonly #answers = new Map<string, Answers | { unusable: string }>();

  /** @throws TaskError `input` if there is no such task */
  grade(task: string, answersPath: string, submissionPath: string): FileGrade {
    const answers = this.#open(task, answersPath);
    const graded =
      "unusable" in answers ? none("answersUnusable", answers.unusable) : gradeFile(submissionPath, answers);
    const { valid, score = null, scoreRaw = null, reason } = graded;
    const mleBench = mleBenchTask(task);
    const rank = mleBench && rankOf(score ?? undefined, mleBench.leaderboard);
    return { valid, score, scoreRaw, ...reason, ...(rank && { rank }) };
  }

  #open(task: string, path: string): Answers | { unusable: string } {
    const key = JSON.stringify([task, resolve(path)]);
    const opened = this.#answers.get(key) ?? openAnswers(findGrader(task), path);
    this.#answers.set(key, opened);
    return opened;
  }

  /**
   * Grades the lines `{"task","answers","submission"}` of a file, paths relative to it, in their order.
   * @throws TaskError `input` that names the line which is no such object
   */
  *batch(path: string): Generator<FileGrade> {
    const lines = readText(path).split("\n");
    for (const [i, line] of lines.entries()) {
      if (line.trim() === "") continue;
      const { task, answers, submission } = parseLine(line, `${path}:${i + 1}`);
      const at = (file: string) => resolve(dirname(path), file);
      yield this.grade(task, at(answers), at(submission));
    }
  }
}

function parseLine(line: string, where: string): { task: string; answers: string; submission: string } {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new TaskError("input", `${where} is not JSON: ${(error as Error).message}`, error);
  }
  const { task, answers, submission } = (value ?? {}) as Record<string, unknown>;
  if (typeof task !== "string" || typeof answers !== "string" || typeof submission !== "string")
    throw new TaskError("input", `${where}: give an object with the texts task, answers and submission`);
  return { task, answers, submission };
}

/** One of the twelve, a bundled task, or a task folder with a task.yaml that has a grader. */
function findGrader(task: string): MleBenchTask | Grader {
  const mleBench = mleBenchTask(task);
  if (mleBench) return mleBench;
  const registry = readRegistry();
  const bundled = Object.hasOwn(registry, task) ? registry[task] : undefined;
  if (bundled) return bundled.task.grader as Grader;
  const file = join(task, "task.yaml");
  const grader = existsSync(file) ? parseTask(readText(file), file).grader : undefined;
  if (grader) return grader;
  const names = [...Object.keys(mleBenchTasks()), ...Object.keys(registry)].join(", ");
  throw new TaskError("input", `--task ${task}: no folder with a task.yaml that has a grader, and none of ${names}`);
}

function openAnswers(grader: MleBenchTask | Grader, path: string): Answers | { unusable: string } {
  try {
    return readAnswers(readFileSync(path), grader);
  } catch (error) {
    return { unusable: (error as Error).message };
  }
}

/** A file that is too large is refused by its size, unread. */
function gradeFile(path: string, answers: Answers): Graded {
  const { maxBytes } = answers;
  try {
    const facts = statSync(path);
    if (!facts.isFile() || extname(path).toLowerCase() !== ".csv") return none("noSubmission", path);
    if (facts.size > maxBytes)
      return { valid: false, reason: reasonOf("fileTooLarge", { found: facts.size, expected: maxBytes }), guards: [] };
    return gradeSubmission(readFileSync(path), answers);
  } catch {
    return none("noSubmission", path);
  }
}

function none(code: "noSubmission" | "answersUnusable", found: string): Graded {
  return { valid: false, reason: reasonOf(code, { found }), guards: [] };
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new TaskError("input", `cannot read ${path}: ${(error as Error).message}`, error);
  }
}
