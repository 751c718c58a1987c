/** Looks at a prepared task folder as a run will use it, and says what is wrong with it and what to do. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Task as TaskSpec } from "../../crds/trainingrun.ts";
import { readFrame } from "../grading/frame.ts";
import type { Graded } from "../grading/grade.ts";
import { rewardOrderFault } from "../grading/reward.ts";
import { RolloutError } from "../rollout/errors.ts";
import { type PromptLimits, scratchPrompt } from "../rollout/prompts.ts";
import { readPromptTask } from "../rollout/snippet.ts";
import { fileSha256 } from "../tasks/download.ts";
import { TaskError } from "../tasks/errors.ts";
import { isSampleSubmission, listPublicFiles, type PublicFile } from "../tasks/public-files.ts";
import { openTask, type Task } from "../tasks/task.ts";

/** `error`: no run can use the folder, or its scores would mean nothing. `warning`: a run can use it, knowing this. */
export interface Finding {
  severity: "error" | "warning";
  problem: string;
  remedy: string;
}

const error = (problem: string, remedy: string): Finding => ({ severity: "error", problem, remedy });
const warning = (problem: string, remedy: string): Finding => ({ severity: "warning", problem, remedy });

export interface TaskCheck {
  task: string;
  directory: string;
  grader: { metric: string; direction: string; idColumn: string; targetColumns: string[]; isMleBench: boolean } | null;
  files: PublicFile[];
  /** The grades of the sample submission, and of the answers handed in as they are. */
  sample: { file: string; graded: Graded } | null;
  answers: { file: string; rows: number; graded: Graded } | null;
  prompt: { tokens: number; maxTokens: number; exact: boolean; cut: string[] } | null;
  findings: Finding[];
}

export interface CheckOptions {
  spec?: TaskSpec | undefined;
  rows: number;
  limits: PromptLimits;
  /** Whether `limits.encode` is the policy's tokenizer. */
  exact: boolean;
}

/** The defaults of `algorithm`. */
const rewards = { failureReward: -10, markerReward: 0.1 };
/** Ids of larger test sets are not compared. */
const maxComparedBytes = 2 ** 28;

/** Returns every problem as a finding. @throws Error where a disk fails */
export function checkTask(directory: string, options: CheckOptions): TaskCheck {
  const findings: Finding[] = [];
  const check: TaskCheck = {
    task: options.spec?.name ?? "",
    directory,
    ...{ grader: null, files: [], sample: null, answers: null, prompt: null, findings },
  };
  const publicDirectory = join(directory, "prepared", "public");
  if (existsSync(publicDirectory)) check.files = listPublicFiles(publicDirectory);
  let task: Task;
  try {
    task = openTask(directory, options.spec);
  } catch (cause) {
    if (!(cause instanceof TaskError)) throw cause;
    const [problem, remedy = "see learner/tasks/README.md"] = cause.message.split(/; (?=[^;]*$)/);
    findings.push(error(problem!, remedy));
    return check;
  }
  const { metric, direction, idColumn, targetColumns } = task.grader;
  check.task = task.name;
  check.grader = { metric, direction, idColumn, targetColumns, isMleBench: task.mleBench !== undefined };
  findings.push(...fileFindings(task, check.files), ...openAnswersFindings(task));

  const answersFile = answersOf(task);
  const bytes = readFileSync(answersFile);
  const graded = task.grade(bytes);
  const rows = rowsOf(bytes);
  check.answers = { file: relative(task, answersFile), rows, graded };
  findings.push(...answersFindings(task, check.answers));
  const sample = check.files.find(({ name }) =>
    task.mleBench ? name === task.mleBench.sample : isSampleSubmission(name),
  );
  if (sample) {
    check.sample = { file: sample.name, graded: task.grade(readFileSync(join(publicDirectory, sample.name))) };
    findings.push(...sampleFindings(task, check.sample), ...idFindings(task, check.files, sample.name));
  }
  const test = check.files.find(({ name, table }) => name.startsWith("test") && table);
  if (test?.table && "rows" in test.table && test.table.rows !== undefined && test.table.rows !== rows)
    findings.push(
      error(
        `${test.name} has ${test.table.rows} rows, ${check.answers.file} has ${rows}`,
        "prepare the task again: a program predicts the rows of the one and is graded on those of the other",
      ),
    );
  findings.push(...leakFindings(task));
  const fault = rewardOrderFault(rewards, task.grader);
  if (fault !== undefined) findings.push(error(fault, "set grader.rewardFloor above -9.3"));
  checkPrompt(task, check, options);
  return check;
}

function fileFindings({ publicDirectory, mleBench, grader }: Task, files: readonly PublicFile[]): Finding[] {
  const findings: Finding[] = [];
  const names = new Set(files.map(({ name }) => name));
  const expected = mleBench ? [...mleBench.files, mleBench.sample] : [];
  const prepare = "run mlebench prepare for the task again, or copy the whole public folder";
  for (const name of expected) if (!names.has(name)) findings.push(error(`${publicDirectory} has no ${name}`, prepare));
  if (!mleBench && !files.some(({ name }) => isSampleSubmission(name)))
    findings.push(
      warning(
        `${publicDirectory} has no sample_submission.csv`,
        "write one: prompts show its first lines, and copies of it are told apart from predictions",
      ),
    );
  if (!existsSync(join(publicDirectory, "description.md")))
    findings.push(
      warning(
        `${publicDirectory} has no description.md`,
        "add one, or keep the description in the TrainingRun as it is now",
      ),
    );
  for (const { name, table, folder } of files) {
    if (folder?.files === 0) findings.push(error(`${name} holds no file`, "copy the whole public folder"));
    if (table && "problem" in table) findings.push(error(`${name}: ${table.problem}`, "prepare the file again"));
    if (!table || !("columns" in table)) continue;
    if (table.profiledRows === 0) findings.push(error(`${name} has no row`, "prepare the file again"));
    const columns = new Set(table.columns.map((column) => column.name));
    const target = name.startsWith("test") && grader.targetColumns.find((column) => columns.has(column));
    if (target)
      findings.push(
        error(`${name} has the column ${target}, which is to be predicted`, "leave it out of the public test set"),
      );
  }
  return findings;
}

/** Programs read the public folder: nothing in it may be a private file. */
function openAnswersFindings({ directory, publicDirectory }: Task): Finding[] {
  const folder = join(directory, "prepared", "private");
  const files = (parent: string) =>
    readdirSync(parent, { withFileTypes: true }).flatMap((entry) => {
      const path = join(parent, entry.name);
      return entry.isDirectory() ? [] : [{ name: entry.name, path, size: statSync(path).size }];
    });
  const open = files(publicDirectory);
  return files(folder).flatMap((answers) => {
    const same = open.find(
      ({ path, size }) => size === answers.size && size > 0 && fileSha256(path) === fileSha256(answers.path),
    );
    if (!same) return [];
    const problem = `public/${same.name} is the same file as private/${answers.name}: programs can read the answers`;
    return [error(problem, `remove it from ${publicDirectory}`)];
  });
}

function answersFindings({ grader }: Task, { file, graded }: { file: string; graded: Graded }): Finding[] {
  const refused = `the grader refuses the answers themselves as a submission: ${graded.reason.message}`;
  if (!graded.valid) return [error(refused, `no submission can do better; prepare ${file} again`)];
  if (graded.guards.includes("perfect")) return [];
  return [
    warning(
      `the answers handed in as a submission score ${graded.score}, which is not the best score of ${grader.metric}`,
      `look at ${file}: its values may be no ${grader.metric === "LogLoss" ? "ones and zeros" : "labels"}`,
    ),
  ];
}

function sampleFindings({ grader, mleBench }: Task, { file, graded }: { file: string; graded: Graded }): Finding[] {
  if (graded.valid) return [];
  // MLE-bench itself calls such a submission valid, with no number as its score.
  if (mleBench && graded.reason.code === "undefinedScore")
    return [
      warning(
        `${file} is constant, which ${grader.metric} has no score for`,
        "nothing: MLE-bench's own is so; a program that copies it earns no reward",
      ),
    ];
  return [
    error(
      `the grader refuses ${file}: ${graded.reason.message}`,
      "programs take the form of a submission from it; write it anew, with the ids of the answers",
    ),
  ];
}

/** The test set must have the ids of the sample submission. */
function idFindings(
  { publicDirectory, grader, mleBench }: Task,
  files: readonly PublicFile[],
  sample: string,
): Finding[] {
  if (mleBench?.ids === "Position") return [];
  const test = files.find(({ name }) => /^test\.csv$/i.test(name));
  if (!test || test.bytes > maxComparedBytes) return [];
  const most = { bytes: maxComparedBytes, rows: maxComparedBytes };
  const idsOf = (name: string): string[] | undefined => {
    const frame = readFrame(readFileSync(join(publicDirectory, name)), most);
    const column = "reason" in frame ? undefined : frame.column(grader.idColumn);
    return column && Array.from({ length: column.rows }, (_, row) => column.cell(row)).sort();
  };
  const [ids, expected] = [idsOf(test.name), idsOf(sample)];
  const noIds = `${test.name} has no column ${grader.idColumn}, which a submission needs`;
  if (ids === undefined) return [error(noIds, "add it, or give another grader.idColumn")];
  const differs = expected && ids.findIndex((id, i) => id !== expected[i]);
  if (expected === undefined || (differs === -1 && ids.length === expected.length)) return [];
  return [
    error(
      `${grader.idColumn} of ${test.name} and of ${sample} differ, first at ${ids[differs ?? 0] ?? "the end"}`,
      "prepare the task again: a program cannot know the rows that it is graded on",
    ),
  ];
}

function leakFindings({ publicDirectory, mleBench }: Task): Finding[] {
  return (mleBench?.leaks ?? []).flatMap(({ file, field, why }) => {
    const path = join(publicDirectory, file);
    if (!existsSync(path) || !readFileSync(path, "utf8").includes(`"${field}"`)) return [];
    const remedy =
      "longrun task drop DIR --out DIR leaves the field out; keep it to compare with published numbers, " +
      "which were measured with the data as mlebench prepares it";
    return [warning(`${file} leaks the label through ${field}: ${why}`, remedy)];
  });
}

function checkPrompt(task: Task, check: TaskCheck, { rows, limits, exact }: CheckOptions): void {
  try {
    const { tokens, cut } = scratchPrompt(readPromptTask(task, rows, undefined, check.files), limits);
    check.prompt = { tokens: tokens.length, maxTokens: limits.maxPromptTokens, exact, cut };
  } catch (cause) {
    if (!(cause instanceof RolloutError)) throw cause;
    const [problem, remedy = "give the task a shorter description"] = cause.message.split("; ");
    check.findings.push(error(problem!, remedy));
  }
}

function answersOf({ directory, mleBench }: Task): string {
  const folder = join(directory, "prepared", "private");
  const names = mleBench ? [mleBench.answers] : ["answers.csv", "test.csv"];
  return names.map((name) => join(folder, name)).find((path) => existsSync(path))!;
}

const relative = ({ directory }: Task, path: string): string => path.slice(join(directory, "prepared").length + 1);

function rowsOf(bytes: Buffer): number {
  const frame = readFrame(bytes, { bytes: 2 ** 31, rows: 50_000_000 });
  return "reason" in frame ? 0 : frame.rows;
}
