/** `longrun grade`: grades submissions, in one of three forms (`USAGE`). Exit status 0 whatever the grade is. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, extname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Grader, parseTask } from "../../crds/trainingrun.ts";
import { OUTCOMES } from "../../proto/execution.ts";
import { type Answers, type Graded, gradeSubmission, readAnswers } from "../grading/grade.ts";
import { type MleBenchTask, mleBenchTask, mleBenchTasks, rankOf } from "../grading/mlebench-tasks.ts";
import { type Refusal, refuse } from "../grading/reasons.ts";
import { paperRewards, type RewardFacts, rewardOf } from "../grading/reward.ts";
import { readRegistry } from "../tasks/registry.ts";
import { openTask } from "../tasks/task.ts";
import {
  InputError,
  parseLine,
  printLine,
  readText,
  required,
  runCommand,
  taskFolder,
  wholeNumber,
} from "./command.ts";

const USAGE = `Usage: longrun grade --task TASK --answers FILE --submission FILE [--json]
    One submission. TASK is one of the twelve MLE-bench tasks, a bundled task, or a folder with a task.yaml.
longrun grade --batch FILE.jsonl
    Lines {"task","answers","submission"}, paths relative to the file. Prints a line
    {"valid","score","scoreRaw","code","message"} for each, in the same order.
longrun grade --task DIR [--submission FILE] [--outcome OUTCOME] [--exit-status N] [--inserted MARKERS] [--seen MARKERS]
    [--forged N]
    The reward of one execution in a prepared task folder. Prints one object: valid, score, scoreRaw, reward, reason,
    creditedMarkers, clamped, capped, guards. Without --submission the program wrote none. MARKERS are comma separated.`;

const options = {
  task: { type: "string" },
  answers: { type: "string" },
  submission: { type: "string" },
  batch: { type: "string" },
  json: { type: "boolean", default: false },
  outcome: { type: "string", default: "completed" },
  "exit-status": { type: "string", default: "0" },
  inserted: { type: "string", default: "" },
  seen: { type: "string", default: "" },
  forged: { type: "string", default: "0" },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>["values"];

function grade(): void {
  const { values } = parseArgs({ options });
  const { batch, answers } = values;
  const task = () => required(values.task, "--task", "the name of a task or a prepared task folder");
  if (batch !== undefined) gradeBatch(batch, values);
  else if (answers === undefined) gradeExecution(task(), values);
  else gradeOne(task(), answers, values);
}

function gradeOne(task: string, answers: string, values: Values): void {
  const submission = required(values.submission, "--submission", "a .csv file");
  if (!existsSync(answers)) throw new InputError(`--answers ${answers}: there is no such file`);
  const opened = openAnswers(task, answers);
  checkSubmission(submission);
  const graded = gradeFile(submission, opened, task);
  if (values.json) printLine(graded);
  else process.stdout.write(described(graded));
}

function gradeBatch(path: string, values: Values): void {
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

function gradeExecution(directory: string, values: Values): void {
  const outcome = OUTCOMES.find((name) => name === values.outcome);
  if (!outcome) throw new InputError(`--outcome ${values.outcome}: give one of ${OUTCOMES.join(", ")}`);
  if (values.submission !== undefined) checkSubmission(values.submission);
  const task = openTask(taskFolder(directory));
  const markers = (text: string) => text.split(",").filter((name) => name !== "");
  const facts: RewardFacts = {
    outcome,
    exitStatus: wholeNumber(values["exit-status"], "--exit-status", 0),
    insertedMarkers: markers(values.inserted),
    seenMarkers: markers(values.seen),
    forgedMarkers: wholeNumber(values.forged, "--forged", 0),
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
    ...{ valid, score, scoreRaw, ...reason },
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

await runCommand(USAGE, grade);
