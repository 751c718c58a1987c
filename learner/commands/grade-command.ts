/**
 * `longrun grade`: grades submissions, in one of three forms (`usage`).
 *
 * Exit codes: 0 graded, whatever came of it; 1 failed; 2 bad input.
 */
import { existsSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { OUTCOMES } from "../../proto/execution.ts";
import { type RewardFacts, rewardOf } from "../grading/reward.ts";
import { TaskError } from "../tasks/errors.ts";
import { openTask } from "../tasks/task.ts";
import { type FileGrade, FileGrader } from "./grade-files.ts";

const usage = `longrun grade --task TASK --answers FILE --submission FILE [--json]
    One submission. TASK is one of the twelve MLE-bench tasks, a bundled task, or a folder with a task.yaml.
longrun grade --batch FILE.jsonl
    Lines {"task","answers","submission"}, paths relative to the file. Prints a line
    {"valid","score","scoreRaw","code","message"} for each, in the same order.
longrun grade --task DIR [--submission FILE] [--outcome OUTCOME] [--exit-status N] [--inserted MARKERS] [--seen MARKERS]
    [--forged N]
    The reward of one execution in a prepared task folder. Prints one object: valid, score, scoreRaw, reward, reason,
    creditedMarkers, clamped, capped, guards. Without --submission the program wrote none. MARKERS are comma separated.
`;

/** The paper's constants (section 4.1): the defaults of `algorithm.failureReward` and `algorithm.markerReward`. */
const constants = { failureReward: -10, markerReward: 0.1 };

const options = {
  task: { type: "string" },
  answers: { type: "string" },
  submission: { type: "string" },
  batch: { type: "string" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
  outcome: { type: "string", default: "completed" },
  "exit-status": { type: "string", default: "0" },
  inserted: { type: "string", default: "" },
  seen: { type: "string", default: "" },
  forged: { type: "string", default: "0" },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>["values"];

interface Streams {
  stdout: { write: (text: string) => unknown };
  stderr: { write: (text: string) => unknown };
}

/** @returns the exit code */
export function main(args: string[], { stdout, stderr }: Streams = process): number {
  const print = (text: string): void => void stdout.write(text);
  try {
    const { values } = parseArgs({ args, options });
    if (values.help) print(usage);
    else if (values.batch !== undefined) gradeBatch(values.batch, values, print);
    else if (!values.task)
      throw new TaskError("input", "--task is missing; give the name of a task or a prepared task folder");
    else if (values.answers !== undefined) gradeOne(values.task, values.answers, values, print);
    else gradeExecution(values.task, values, print);
    return 0;
  } catch (error) {
    stderr.write(`grade: ${(error as Error).message}\n`);
    const wrongOption = /^ERR_PARSE_ARGS/.test((error as NodeJS.ErrnoException).code ?? "");
    return wrongOption || error instanceof TaskError ? 2 : 1;
  }
}

type Print = (text: string) => void;

function gradeBatch(path: string, values: Values, print: Print): void {
  for (const name of ["task", "answers", "submission"] as const)
    if (values[name] !== undefined)
      throw new TaskError("input", `--${name} does not go with --batch, whose lines have it; leave one of them out`);
  for (const { rank: _, ...grade } of new FileGrader().batch(path)) print(`${JSON.stringify(grade)}\n`);
}

function gradeOne(task: string, answers: string, { submission, json }: Values, print: Print): void {
  if (submission === undefined) throw new TaskError("input", "--submission is missing; name a .csv file");
  if (!existsSync(answers)) throw new TaskError("input", `--answers ${answers}: there is no such file`);
  const grade = new FileGrader().grade(task, answers, submission);
  print(json ? `${JSON.stringify(grade)}\n` : described(grade));
}

function described({ valid, score, scoreRaw, code, message, rank }: FileGrade): string {
  if (!valid) return `no score: ${message} (${code})\n`;
  const medals = { gold: rank?.goldMedal, silver: rank?.silverMedal, bronze: rank?.bronzeMedal };
  const medal = `${Object.entries(medals).find(([, won]) => won)?.[0] ?? "no"} medal`;
  const standing = rank ? `\n${medal}, ${rank.aboveMedian ? "above" : "not above"} the median` : "";
  return `score ${score}${scoreRaw === score ? "" : ` (${scoreRaw})`}${standing}\n`;
}

function gradeExecution(directory: string, values: Values, print: Print): void {
  const outcome = OUTCOMES.find((name) => name === values.outcome);
  if (!outcome) throw new TaskError("input", `--outcome ${values.outcome}: give one of ${OUTCOMES.join(", ")}`);
  const task = openTask(directory);
  const markers = (text: string) => text.split(",").filter((name) => name !== "");
  const facts: RewardFacts = {
    outcome,
    exitStatus: count(values["exit-status"], "--exit-status"),
    insertedMarkers: markers(values.inserted),
    seenMarkers: markers(values.seen),
    forgedMarkers: count(values.forged, "--forged"),
  };
  if (values.submission && existsSync(values.submission)) facts.graded = task.grade(readFileSync(values.submission));
  const reward = rewardOf(facts, constants, task.rewardRules) ?? { reward: null, valid: false, reason: "lost" };
  print(`${JSON.stringify(reward)}\n`);
}

function count(text: string, option: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new TaskError("input", `${option} ${text}: give a whole number`);
  return Number(text);
}

if (import.meta.main) {
  // Whoever reads may stop before the end.
  process.stdout.on("error", () => process.exit(1));
  process.exitCode = main(process.argv.slice(2));
}
