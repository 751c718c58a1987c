/** Checks a prepared task folder as a run will use it, and reports problems with their remedies. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import type { Grader, RewardRange, Task as TaskSpec } from "../../crds/trainingrun.ts";
import { readFrame } from "../grading/frame.ts";
import type { Graded } from "../grading/grade.ts";
import { twinOf } from "../grading/name-twins.ts";
import { paperRewards, rewardOrderFault } from "../grading/reward.ts";
import { describeKind, earnedReward, noStanding, scoreReward } from "../grading/reward-kinds.ts";
import { RolloutError } from "../rollout/errors.ts";
import { type PromptLimits, scratchPrompt } from "../rollout/prompts.ts";
import { readPromptTask } from "../rollout/snippet.ts";
import { fileSha256 } from "../tasks/download.ts";
import { TaskError } from "../tasks/errors.ts";
import type { TableFacts } from "../tasks/profile.ts";
import { isSampleSubmission, listPublicFiles, type PublicFile } from "../tasks/public-files.ts";
import { openTask, type Task } from "../tasks/task.ts";
import { error, type Finding, warning } from "./finding.ts";
import { constantAnswers, maxComparedBytes, shapeFindings, trainFindings } from "./table-findings.ts";

export interface TaskCheck {
  task: string;
  directory: string;
  grader: { metric: string; direction: string; idColumn: string; targetColumns: string[]; isMleBench: boolean } | null;
  files: PublicFile[];
  /** Grades of the sample submission, and of the answers themselves. */
  sample: { file: string; graded: Graded } | null;
  answers: { file: string; rows: number; privateRows: number; graded: Graded } | null;
  /** What scores and submissions that need no model earn; `earned` says how, `floor` raises the lower rewards. */
  reward:
    | ({ worst?: number; best?: number; earned: string; floor: number } & {
        from?: string | undefined;
        tried: TriedReward[];
      })
    | null;
  prompt: { tokens: number; maxTokens: number; exact: boolean; cut: string[] } | null;
  findings: Finding[];
}

interface TriedReward {
  submission: "sample submission" | "constant prediction" | "answers";
  score: number;
  /** The reward before it is raised to the floor. */
  reward: number;
  clamped: boolean;
}

/** `exact`: whether `limits.encode` uses the policy's tokenizer. */
type CheckOptions = { spec?: TaskSpec | undefined; rows: number; limits: PromptLimits; exact: boolean };

/** Returns every problem as a finding. @throws Error if a disk fails */
export function checkTask(directory: string, options: CheckOptions): TaskCheck {
  const check: TaskCheck = {
    task: options.spec?.name ?? "",
    directory,
    grader: null,
    files: [],
    sample: null,
    answers: null,
    reward: null,
    prompt: null,
    findings: [],
  };
  check.findings.push(...findingsOf(check, options));
  return check;
}

function* findingsOf(check: TaskCheck, options: CheckOptions): Generator<Finding> {
  const publicDirectory = join(check.directory, "prepared", "public");
  if (existsSync(publicDirectory)) check.files = listPublicFiles(publicDirectory);
  let task: Task;
  try {
    task = openTask(check.directory, options.spec);
  } catch (cause) {
    yield refused(cause, "see learner/tasks/README.md");
    return;
  }
  const { metric, direction, idColumn, targetColumns } = task.grader;
  check.task = task.name;
  check.grader = { metric, direction, idColumn, targetColumns, isMleBench: task.mleBench !== undefined };
  yield* fileFindings(task, check.files);
  const constant = constantAnswers(task);
  yield* openAnswersFindings(task, constant !== undefined);
  if (constant)
    yield error(
      `every row of the answers has the same ${targetColumns.join(", ")}: ${constant.join(", ")}, so any constant is a perfect prediction`,
      "choose another target, or a test set with several values",
    );

  const { rows, privateRows = 0, answersPath } = task;
  const file = relative(join(check.directory, "prepared"), answersPath);
  check.answers = { file, rows, privateRows, graded: task.grade(readFileSync(answersPath)) };
  yield* answersFindings(task, check.answers);
  const isSample = (name: string) => (task.mleBench ? name === task.mleBench.sample : isSampleSubmission(name));
  const sample = check.files.find(({ name }) => isSample(name));
  if (sample) {
    check.sample = { file: sample.name, graded: task.grade(readFileSync(join(publicDirectory, sample.name))) };
    yield* sampleFindings(task, check.sample);
    yield* idFindings(task, check.files, sample.name);
  }
  const test = check.files.find(({ name, table }) => name.startsWith("test") && table);
  if (test?.table && "rows" in test.table && test.table.rows !== undefined && test.table.rows !== rows)
    yield error(
      `${test.name} has ${test.table.rows} rows, ${file} has ${rows}`,
      "prepare the task again: programs predict the rows of the test table, but the answers have other rows",
    );
  yield* leakFindings(task);
  yield* trainFindings(task, check.files);
  check.reward = rewardsOf(task, check);
  yield* rewardFindings(task, check.reward);
  const fault = rewardOrderFault(paperRewards, task.rewardRules);
  if (fault !== undefined) yield error(fault, "set grader.rewardFloor above -9.3");
  yield* promptFindings(task, check, options);
}

function* fileFindings({ publicDirectory, mleBench, grader }: Task, files: readonly PublicFile[]): Generator<Finding> {
  const names = new Set(files.map(({ name }) => name));
  const expected = mleBench ? [...mleBench.files, mleBench.sample] : [];
  const prepare = "run mlebench prepare for the task again, or copy the whole public folder";
  for (const name of expected) if (!names.has(name)) yield error(`${publicDirectory} has no ${name}`, prepare);
  if (!mleBench && !files.some(({ name }) => isSampleSubmission(name)))
    yield warning(
      `${publicDirectory} has no sample_submission.csv`,
      "write one: prompts show its first lines, and copies of it are told apart from predictions",
    );
  if (!existsSync(join(publicDirectory, "description.md")))
    yield warning(
      `${publicDirectory} has no description.md`,
      "add one, or keep the description in the TrainingRun as it is now",
    );
  for (const { name, table, folder } of files) {
    if (folder?.files === 0) yield error(`${name} holds no file`, "copy the whole public folder");
    if (table && "problem" in table) yield error(`${name}: ${table.problem}`, table.remedy ?? "prepare the file again");
    if (!table || !("columns" in table)) continue;
    yield* shapeFindings({ name, table });
    if (table.profiledRows === 0) yield error(`${name} has no row`, "prepare the file again");
    if (name.startsWith("test")) yield* targetFindings(name, table, grader);
  }
}

const namesOf = ({ columns }: Pick<TableFacts, "columns">) => columns.map(({ name }) => name);

function* targetFindings(name: string, { columns }: TableFacts, { targetColumns }: Grader): Generator<Finding> {
  const remedy = "leave it out of the public test set";
  const names = namesOf({ columns });
  const target = targetColumns.find((column) => names.includes(column));
  if (target !== undefined) yield error(`${name} has the column ${target}, which is to be predicted`, remedy);
  for (const column of targetColumns) {
    const twin = names.includes(column) ? undefined : twinOf(column, names);
    if (twin && !targetColumns.includes(twin.name))
      yield warning(
        `${name} has the column ${twin.quoted}, which differs from the target ${column} only in ${twin.difference}`,
        `if it is the target, ${remedy}`,
      );
  }
}

/** @param areConstant then a constant sample submission may be the same file by right */
function* openAnswersFindings({ directory, publicDirectory }: Task, areConstant: boolean): Generator<Finding> {
  const filesIn = (parent: string) =>
    readdirSync(parent, { withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map(({ name }) => ({ name, path: join(parent, name), size: statSync(join(parent, name)).size }));
  const open = filesIn(publicDirectory);
  for (const { name, path, size } of filesIn(join(directory, "prepared", "private"))) {
    const same = open.find((it) => size > 0 && it.size === size && fileSha256(it.path) === fileSha256(path));
    if (same && !(areConstant && isSampleSubmission(same.name)))
      yield error(
        `public/${same.name} is the same file as private/${name}: programs can read the answers`,
        `remove it from ${publicDirectory}`,
      );
  }
}

function* answersFindings({ grader }: Task, { file, graded }: { file: string; graded: Graded }): Generator<Finding> {
  if (!graded.valid)
    yield error(
      `the grader refuses the answers themselves as a submission: ${graded.reason.message}`,
      `no submission can do better; prepare ${file} again`,
    );
  else if (!graded.guards.includes("perfect"))
    yield warning(
      `the answers handed in as a submission score ${graded.score}, which is not the best score of ${grader.metric}`,
      `look at ${file}: its values may be no ${grader.metric === "LogLoss" ? "ones and zeros" : "labels"}`,
    );
}

function* sampleFindings(
  { grader, mleBench }: Task,
  { file, graded }: { file: string; graded: Graded },
): Generator<Finding> {
  if (graded.valid) return;
  // MLE-bench itself accepts such a submission, without a number as its score.
  if (mleBench && graded.reason.code === "undefinedScore")
    yield warning(
      `${file} is constant, which ${grader.metric} has no score for`,
      "nothing: MLE-bench's own is so; a program that copies it earns no reward",
    );
  else
    yield error(
      `the grader refuses ${file}: ${graded.reason.message}`,
      "programs take the form of a submission from it; write it anew, with the ids of the answers",
    );
}

/** Checks that the test set has the ids of the sample submission. */
function* idFindings(
  { publicDirectory, grader, mleBench }: Task,
  files: readonly PublicFile[],
  sample: string,
): Generator<Finding> {
  if (mleBench?.ids === "Position") return;
  const test = files.find(({ name }) => /^test\.csv$/i.test(name));
  if (!test || test.bytes > maxComparedBytes) return;
  const most = { bytes: maxComparedBytes, rows: maxComparedBytes };
  const idsOf = (name: string): string[] | undefined => {
    const frame = readFrame(readFileSync(join(publicDirectory, name)), most);
    const column = "reason" in frame ? undefined : frame.column(grader.idColumn);
    return column && Array.from({ length: column.rows }, (_, row) => column.cell(row)).sort();
  };
  const [ids, expected] = [idsOf(test.name), idsOf(sample)];
  const differs = ids?.findIndex((id, i) => id !== expected?.[i]) ?? -1;
  const twin = test.table && "columns" in test.table && twinOf(grader.idColumn, namesOf(test.table));
  if (ids === undefined)
    yield error(
      `${test.name} has no column ${grader.idColumn}, which a submission needs${twin ? `: it has ${twin.quoted}, with ${twin.difference}` : ""}`,
      "add it, or give another grader.idColumn",
    );
  else if (expected && (differs !== -1 || ids.length !== expected.length))
    yield error(
      `${grader.idColumn} of ${test.name} and of ${sample} differ, first at ${ids[differs] ?? "the end"}`,
      "prepare the task again: a program cannot know the rows that it is graded on",
    );
}

function* leakFindings({ publicDirectory, mleBench }: Task): Generator<Finding> {
  for (const { file, field, why } of mleBench?.leaks ?? []) {
    const path = join(publicDirectory, file);
    if (!existsSync(path) || !readFileSync(path, "utf8").includes(`"${field}"`)) continue;
    const remedy =
      "longrun task drop DIR --out DIR leaves the field out; keep it to compare with published numbers, " +
      "which were measured with the data as mlebench prepares it";
    yield warning(`${file} leaks the label through ${field}: ${why}`, remedy);
  }
}

function rewardsOf({ grader, rewardRules, rewardRangeFrom, suggestRange }: Task, { sample, answers }: TaskCheck) {
  const scores = {
    "sample submission": sample?.graded.score,
    "constant prediction": suggestRange()?.range.worst,
    answers: answers?.graded.score,
  };
  const tried = Object.entries(scores).flatMap(([submission, score]): TriedReward[] => {
    if (score === undefined) return [];
    const reward = earnedReward(score, rewardRules, noStanding);
    return [
      { submission: submission as TriedReward["submission"], score, reward, clamped: reward < grader.rewardFloor },
    ];
  });
  const earned = describeKind(rewardRules);
  return { ...grader.rewardRange, earned, floor: grader.rewardFloor, from: rewardRangeFrom, tried };
}

/** Checks the range of rewards: if it does not fit the scores, all rewards are the floor, and nothing is learned. */
function* rewardFindings(
  { grader, suggestRange }: Task,
  { floor, tried }: NonNullable<TaskCheck["reward"]>,
): Generator<Finding> {
  const clamped = tried.filter((one) => one.clamped);
  if (clamped.length === 0) return;
  const said = clamped.map(({ submission, score }) => `${submission} (score ${score})`).join(", ");
  yield warning(
    `${clamped.length} of ${tried.length} rewards are raised to grader.rewardFloor ${floor}: ${said}`,
    `programs with such scores are not told apart${rangeRemedy(grader, suggestRange()?.range, clamped)}`,
  );
}

function rangeRemedy(grader: Grader, suggested: RewardRange | undefined, clamped: readonly TriedReward[]): string {
  const range = suggested ?? grader.rewardRange;
  if (!range) return "; give grader.rewardRange";
  const shown = ({ worst, best }: RewardRange) => `for example { worst: ${worst}, best: ${best} }`;
  const wider = widerRange(grader, range, clamped);
  if (!wider) return `; give grader.rewardRange, ${shown(range)}`;
  return `; if your programs are no better, widen grader.rewardRange, ${shown(wider)}, in which good programs differ less`;
}

/** Returns a range with a worse end, of four digits, in which no reward is below the floor. Undefined if `range` is wide enough. */
function widerRange(
  { direction, rewardFloor }: Grader,
  range: RewardRange,
  clamped: readonly TriedReward[],
): RewardRange | undefined {
  if (clamped.every(({ score }) => scoreReward(score, { direction, rewardRange: range }) >= rewardFloor))
    return undefined;
  // The reward (score - worst) / (best - worst) is the floor for this worst score.
  const ends = clamped.map(({ score }) => (score - rewardFloor * range.best) / (1 - rewardFloor));
  const end = direction === "Lower" ? Math.max(...ends) : Math.min(...ends);
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(end) || 1)) - 3);
  const worst = (direction === "Lower" ? Math.ceil(end / unit) : Math.floor(end / unit)) * unit;
  return { worst: Number(worst.toPrecision(4)), best: range.best };
}

function* promptFindings(task: Task, check: TaskCheck, options: CheckOptions): Generator<Finding> {
  const { rows, limits, exact } = options;
  try {
    const { tokens, cut } = scratchPrompt(readPromptTask(task, rows, undefined, check.files), limits);
    check.prompt = { tokens: tokens.length, maxTokens: limits.maxPromptTokens, exact, cut };
  } catch (cause) {
    yield refused(cause, "give the task a shorter description");
  }
}

/** @returns the finding for another part's refusal, whose message ends with the remedy @throws any error that is no refusal */
function refused(cause: unknown, otherwise: string): Finding {
  if (!(cause instanceof TaskError || cause instanceof RolloutError)) throw cause;
  const [problem, remedy = otherwise] = cause.message.split(/; (?=[^;]*$)/);
  return error(problem!, remedy);
}
