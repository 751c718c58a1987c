/** `longrun grade`: grades submissions, in one of three forms (`GRADE`). Exit status 0 whatever the grade is. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, extname, join, resolve } from "node:path";
import { type Grader, parseTask } from "../../crds/trainingrun.ts";
import type { Values } from "../../proto/command-line.ts";
import { OUTCOMES } from "../../proto/execution.ts";
import { type Answers, type Graded, gradeSubmission, readAnswers } from "../grading/grade.ts";
import { type MleBenchTask, mleBenchTask, mleBenchTasks, rankOf } from "../grading/mlebench-tasks.ts";
import { type Refusal, refuse } from "../grading/reasons.ts";
import { paperRewards, type RewardFacts, rewardOf } from "../grading/reward.ts";
import { readRegistry } from "../tasks/registry.ts";
import { openTask } from "../tasks/task.ts";
import { InputError, parseLine, printLine, readText, required, runCommand, taskFolder, whole } from "./command.ts";

export const GRADE = {
  name: "longrun grade",
  description: "grade submissions, or one execution",
  options: {
    "task <TASK>": "one of the twelve MLE-bench tasks, a bundled task, or a folder with a task.yaml",
    "answers <FILE>": "answers of one submission",
    "submission <FILE>": "a .csv file; without it and --answers the program wrote none",
    json: "print one object for a submission",
    "batch <FILE>": 'lines {"task","answers","submission"}, paths relative to the file',
    "outcome <OUTCOME>": { help: "how the execution ended", choices: OUTCOMES, default: "completed" },
    "exit-status <N>": { help: "of the execution", default: "0", as: whole(0) },
    "inserted <MARKERS>": { help: "markers in the program, comma separated", default: "", as: markersOf },
    "seen <MARKERS>": { help: "markers that it printed, comma separated", default: "", as: markersOf },
    "forged <N>": { help: "markers that it invented", default: "0", as: whole(0) },
  },
  notes: `--task, --answers and --submission grade one submission. --batch prints a line {"valid","score","scoreRaw","code","message"} for
each of its lines, in the same order. Without both, --task names a prepared task folder, and the reward of one execution is printed: valid,
score, scoreRaw, reward, reason, creditedMarkers, clamped, capped, guards.`,
  examples: [
    "longrun grade --task diamonds --answers answers.csv --submission submission.csv",
    "longrun grade --batch submissions.jsonl",
    "longrun grade --task diamonds --submission submission.csv",
  ],
} as const;
type Given = Values<typeof GRADE.options>;

function markersOf(text: string): string[] {
  return text.split(",").filter((name) => name !== "");
}

function grade(values: Given): void {
  const { batch, answers } = values;
  const task = () => required(values.task, "--task", "the name of a task or a prepared task folder");
  if (batch !== undefined) gradeBatch(batch, values);
  else if (answers === undefined) gradeExecution(task(), values);
  else gradeOne(task(), answers, values);
}

function gradeOne(task: string, answers: string, values: Given): void {
  const submission = required(values.submission, "--submission", "a .csv file");
  if (!existsSync(answers)) throw new InputError(`--answers ${answers}: there is no such file`);
  const opened = openAnswers(task, answers);
  checkSubmission(submission);
  const graded = gradeFile(submission, opened, task);
  if (values.json) printLine(graded);
  else process.stdout.write(described(graded));
}

function gradeBatch(path: string, values: Given): void {
  for (const name of ["task", "answers", "submission"] as const)
    if (values[name] !== undefined)
      throw new InputError(`--${name} does not go with --batch, whose lines have it; leave one of them out`);
  const opened = new Map<string, ReturnType<typeof openAnswers>>();
  for (const [i, text] of readText(path).split("\n").entries()) {
    if (text.trim() === "") continue;
    const { json, place } = parseLine(text, `${path}:${i + 1}`);
    const { task, answers, submission } = json;
    if (typeof task !== "string" || typeof answers !== "string" || typeof submission !== "string")
      throw new InputError(`${place}: give an object with the texts task, answers and submission`);
    const at = (file: string) => resolve(dirname(path), file);
    const key = JSON.stringify([task, answers]);
    if (!opened.has(key)) opened.set(key, openAnswers(task, at(answers)));
    const { rank: _, ...graded } = gradeFile(at(submission), opened.get(key)!, task);
    printLine(graded);
  }
}

type FileGrade = ReturnType<typeof gradeFile>;

function described({ valid, score, scoreRaw, code, message, rank }: FileGrade): string {
  if (!valid) return `no score: ${message} (${code})\n`;
  const medals = { gold: rank?.goldMedal, silver: rank?.silverMedal, bronze: rank?.bronzeMedal };
  const medal = `${Object.entries(medals).find(([, won]) => won)?.[0] ?? "no"} medal`;
  const standing = rank ? `\n${medal}, ${rank.aboveMedian ? "above" : "not above"} the median` : "";
  return `score ${score}${scoreRaw === score ? "" : ` (${scoreRaw})`}${standing}\n`;
}

function gradeExecution(directory: string, values: Given): void {
  if (values.submission !== undefined) checkSubmission(values.submission);
  const task = openTask(taskFolder(directory));
  const facts: RewardFacts = {
    outcome: values.outcome,
    exitStatus: values.exitStatus,
    insertedMarkers: values.inserted,
    seenMarkers: values.seen,
    forgedMarkers: values.forged,
  };
  if (values.submission !== undefined) facts.graded = task.grade(readFileSync(values.submission));
  printLine(rewardOf(facts, paperRewards, task.rewardRules) ?? { reward: null, valid: false, reason: "lost" });
}

/** A mistyped path must not earn the reward of a program without a submission. @throws InputError */
function checkSubmission(path: string): void {
  if (!existsSync(path)) throw new InputError(`--submission ${path}: there is no such file; check the path`);
}

/** @returns the grader of one of the twelve MLE-bench tasks, of a bundled task, or of a task folder whose task.yaml has one */
function findGrader(task: string): MleBenchTask | Grader {
  const mleBench = mleBenchTask(task);
  if (mleBench) return mleBench;
  const registry = readRegistry();
  if (Object.hasOwn(registry, task)) return registry[task]!.task.grader as Grader;
  const file = join(task, "task.yaml");
  const grader = existsSync(file) ? parseTask(readText(file), file).grader : undefined;
  if (grader) return grader;
  const names = [...Object.keys(mleBenchTasks()), ...Object.keys(registry)].join(", ");
  throw new InputError(`--task ${task}: no folder with a task.yaml that has a grader, and none of ${names}`);
}

function openAnswers(task: string, path: string): Answers | Refusal {
  const grader = findGrader(task);
  try {
    return readAnswers(readFileSync(path), grader);
  } catch (error) {
    return refuse("answersUnusable", { found: (error as Error).message });
  }
}

/** Grades one submission; `rank` is for the twelve MLE-bench tasks. */
function gradeFile(path: string, answers: Answers | Refusal, task: string) {
  const graded: Partial<Graded> & Refusal = "reason" in answers ? answers : gradeBytes(path, answers);
  const { valid = false, score = null, scoreRaw = null, reason } = graded;
  const mleBench = mleBenchTask(task);
  return {
    valid,
    score,
    scoreRaw,
    ...reason,
    ...(mleBench && { rank: rankOf(score ?? undefined, mleBench.leaderboard) }),
  };
}

function gradeBytes(path: string, answers: Answers): Graded | Refusal {
  const { maxBytes } = answers;
  try {
    const facts = statSync(path);
    if (!facts.isFile() || extname(path).toLowerCase() !== ".csv") return refuse("noSubmission", { found: path });
    if (facts.size > maxBytes) return refuse("fileTooLarge", { found: facts.size, expected: maxBytes });
    return gradeSubmission(readFileSync(path), answers);
  } catch {
    return refuse("noSubmission", { found: path });
  }
}

if (import.meta.main) await runCommand(GRADE, grade);
