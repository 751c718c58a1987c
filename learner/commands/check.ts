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

/** `error`: no run can use the folder, or its scores would mean nothing. `warning`: it can, knowing this. */
export interface Finding {
  severity: "error" | "warning";
  problem: string;
  remedy: string;
}

export interface TaskCheck {
  task: string;
  directory: string;
  grader: { metric: string; direction: string; idColumn: string; targetColumns: string[]; isMleBench: boolean } | null;
  files: PublicFile[];
  /** What the grader says of the sample submission, and of the answers handed in as they are. */
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

/** Every problem is a finding: only what hinders looking at all is thrown. @throws Error where a disk fails */
export function checkTask(directory: string, options: CheckOptions): TaskCheck {
  const findings: Finding[] = [];
  const found = (severity: Finding["severity"], problem: string, remedy: string): void => {
    findings.push({ severity, problem, remedy });
  };
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
  } catch (error) {
    if (!(error instanceof TaskError)) throw error;
    const [problem, remedy = "see learner/tasks/README.md"] = error.message.split(/; (?=[^;]*$)/);
    found("error", problem!, remedy);
    return check;
  }
  const { metric, direction, idColumn, targetColumns } = task.grader;
  check.task = task.name;
  check.grader = { metric, direction, idColumn, targetColumns, isMleBench: task.mleBench !== undefined };
  findings.push(...fileFindings(task, check.files));
  findings.push(...openAnswersFindings(task));

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
    findings.push(...sampleFindings(task, check.sample));
    findings.push(...idFindings(task, check.files, sample.name));
  }
  const test = check.files.find(({ name, table }) => name.startsWith("test") && table);
  if (test?.table && "rows" in test.table && test.table.rows !== undefined && test.table.rows !== rows)
    found(
      "error",
      `${test.name} has ${test.table.rows} rows, ${check.answers.file} has ${rows}`,
      "prepare the task again: a program predicts the rows of the one and is graded on those of the other",
    );
  findings.push(...leakFindings(task));
  const fault = rewardOrderFault(rewards, task.grader);
  if (fault !== undefined) found("error", fault, "set grader.rewardFloor above -9.3");
  checkPrompt(task, check, options);
  return check;
}

function fileFindings({ publicDirectory, mleBench, grader }: Task, files: readonly PublicFile[]): Finding[] {
  const findings: Finding[] = [];
  const names = new Set(files.map(({ name }) => name));
  const expected = mleBench ? [...mleBench.files, mleBench.sample] : [];
  for (const name of expected.filter((name) => !names.has(name)))
    findings.push({
      severity: "error",
      problem: `${publicDirectory} has no ${name}`,
      remedy: "run mlebench prepare for the task again, or copy the whole public folder",
    });
  if (!mleBench && !files.some(({ name }) => isSampleSubmission(name)))
    findings.push({
      severity: "warning",
      problem: `${publicDirectory} has no sample_submission.csv`,
      remedy: "write one: prompts show its first lines, and copies of it are told apart from predictions",
    });
  if (!existsSync(join(publicDirectory, "description.md")))
    findings.push({
      severity: "warning",
      problem: `${publicDirectory} has no description.md`,
      remedy: "add one, or keep the description in the TrainingRun as it is now",
    });
  for (const { name, table, folder } of files) {
    if (table && "problem" in table)
      findings.push({ severity: "error", problem: `${name}: ${table.problem}`, remedy: "prepare the file again" });
    if (table && "columns" in table && table.profiledRows === 0)
      findings.push({ severity: "error", problem: `${name} has no row`, remedy: "prepare the file again" });
    if (folder && folder.files === 0)
      findings.push({ severity: "error", problem: `${name} holds no file`, remedy: "copy the whole public folder" });
    const target =
      table &&
      "columns" in table &&
      name.startsWith("test") &&
      grader.targetColumns.find((target) => table.columns.some((column) => column.name === target));
    if (target)
      findings.push({
        severity: "error",
        problem: `${name} has the column ${target}, which is to be predicted`,
        remedy: "leave it out of the public test set",
      });
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
    return [{ severity: "error" as const, problem, remedy: `remove it from ${publicDirectory}` }];
  });
}

function answersFindings({ grader }: Task, { file, graded }: { file: string; graded: Graded }): Finding[] {
  if (!graded.valid)
    return [
      {
        severity: "error",
        problem: `the grader refuses the answers themselves as a submission: ${graded.reason.message}`,
        remedy: `no submission can do better; prepare ${file} again`,
      },
    ];
  if (graded.guards.includes("perfect")) return [];
  return [
    {
      severity: "warning",
      problem: `the answers handed in as a submission score ${graded.score}, which is not the best score of ${grader.metric}`,
      remedy: `look at ${file}: its values may be no ${grader.metric === "LogLoss" ? "ones and zeros" : "labels"}`,
    },
  ];
}

function sampleFindings({ grader, mleBench }: Task, { file, graded }: { file: string; graded: Graded }): Finding[] {
  if (graded.valid) return [];
  // MLE-bench itself calls such a submission valid, with no number as its score.
  if (mleBench && graded.reason.code === "undefinedScore")
    return [
      {
        severity: "warning",
        problem: `${file} is constant, which ${grader.metric} has no score for`,
        remedy: "nothing: MLE-bench's own is so; a program that copies it earns no reward",
      },
    ];
  return [
    {
      severity: "error",
      problem: `the grader refuses ${file}: ${graded.reason.message}`,
      remedy: "programs take the form of a submission from it; write it anew, with the ids of the answers",
    },
  ];
}

/** The ids that programs find in the test set are those that the sample submission has. */
function idFindings(
  { publicDirectory, grader, mleBench }: Task,
  files: readonly PublicFile[],
  sample: string,
): Finding[] {
  if (mleBench?.ids === "Position") return [];
  const test = files.find(({ name }) => /^test\.csv$/i.test(name));
  if (!test || test.bytes > maxComparedBytes) return [];
  const idsOf = (name: string): string[] | undefined => {
    const frame = readFrame(readFileSync(join(publicDirectory, name)), {
      bytes: maxComparedBytes,
      rows: maxComparedBytes,
    });
    const column = "reason" in frame ? undefined : frame.column(grader.idColumn);
    return column && Array.from({ length: column.rows }, (_, row) => column.cell(row)).sort();
  };
  const [ids, expected] = [idsOf(test.name), idsOf(sample)];
  if (ids === undefined)
    return [
      {
        severity: "error",
        problem: `${test.name} has no column ${grader.idColumn}, which a submission needs`,
        remedy: "add it, or give another grader.idColumn",
      },
    ];
  const differs = expected && ids.findIndex((id, i) => id !== expected[i]);
  if (expected === undefined || (differs === -1 && ids.length === expected.length)) return [];
  return [
    {
      severity: "error",
      problem: `${grader.idColumn} of ${test.name} and of ${sample} differ, first at ${ids[differs ?? 0] ?? "the end"}`,
      remedy: "prepare the task again: a program cannot know the rows that it is graded on",
    },
  ];
}

function leakFindings({ publicDirectory, mleBench }: Task): Finding[] {
  return (mleBench?.leaks ?? []).flatMap(({ file, field, why }) => {
    const path = join(publicDirectory, file);
    if (!existsSync(path) || !readFileSync(path, "utf8").includes(`"${field}"`)) return [];
    return [
      {
        severity: "warning" as const,
        problem: `${file} leaks the label through ${field}: ${why}`,
        remedy:
          `longrun task drop DIR --out DIR leaves the field out; keep it to compare with published numbers, ` +
          "which were measured with the data as mlebench prepares it",
      },
    ];
  });
}

function checkPrompt(task: Task, check: TaskCheck, { rows, limits, exact }: CheckOptions): void {
  try {
    const { tokens, cut } = scratchPrompt(readPromptTask(task, rows, undefined, check.files), limits);
    check.prompt = { tokens: tokens.length, maxTokens: limits.maxPromptTokens, exact, cut };
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    const [problem, remedy = "give the task a shorter description"] = error.message.split("; ");
    check.findings.push({ severity: "error", problem: problem!, remedy });
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
