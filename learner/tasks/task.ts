import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { stringify } from "yaml";
import { type Grader, ManifestError, parseTask, type Task as TaskSpec } from "../../crds/trainingrun.ts";
import { type Graded, gradeSubmission, readAnswers } from "../grading/grade.ts";
import { metrics } from "../grading/metrics.ts";
import { type MleBenchTask, mleBenchTask } from "../grading/mlebench-tasks.ts";
import { type PrivatePart, privatePartOf } from "../grading/private-score.ts";
import type { RewardRules } from "../grading/reward.ts";
import { rewardKindFault, withThresholds } from "../grading/reward-kinds.ts";
import { type EstimatedRange, estimateRewardRange } from "../grading/reward-range.ts";
import { splitOf } from "../grading/split.ts";
import { TaskError } from "./errors.ts";

/** A task folder, opened by the learner, the only process that reads answers. */
export interface Task extends PrivatePart {
  name: string;
  directory: string;
  /** The folder that programs see as `./input/`. */
  publicDirectory: string;
  /** Limits, `privateShare` and `rewardSplit`: the TrainingRun's if it names the task, otherwise the folder's. */
  spec: TaskSpec;
  grader: Grader;
  rewardRules: RewardRules;
  /** The source of an estimated `grader.rewardRange`, in one line; absent if the range was given, or if there is none. */
  rewardRangeFrom?: string | undefined;
  /** Returns the range that the answers suggest, whatever range the grader has; undefined if they suggest none. */
  suggestRange: () => EstimatedRange | undefined;
  /** MLE-bench's rules, for one of the twelve tasks without a grader of its own. */
  mleBench?: MleBenchTask;
  /** The task statement, Markdown. */
  description: string;
  /** Grades by the public part of the answers, or by all of them. */
  grade: (submission: Buffer) => Graded;
  /** Bytes of the largest submission that is read. */
  submissionBytes: number;
  answersPath: string;
  rows: number;
}

/**
 * Opens a task folder: `prepared/public`, `prepared/private` and `task.yaml`, which an MLE-bench task may lack.
 * @param spec the task's item in a resolved TrainingRun. Its description, grader and fields of rewards take precedence over the folder's if
 * given; its limits always do. A grader without a rewardRange gets an estimated one.
 * @param estimateRange false for a run that began without a range: its rewards keep their meaning
 * @throws TaskError `folder` or `answers`, in one line
 */
export function openTask(directory: string, spec?: TaskSpec, { estimateRange = true } = {}): Task {
  const refused = (message: string) => new TaskError("folder", message);
  const publicDirectory = join(directory, "prepared", "public");
  if (!existsSync(publicDirectory))
    throw refused(`${directory} is no task folder: there is no prepared/public; see learner/tasks/README.md`);
  const own = readTaskYaml(join(directory, "task.yaml"));
  const named = spec?.name ?? own?.name ?? basename(resolve(directory));
  const mleBench = (spec?.grader ?? own?.grader) ? undefined : mleBenchTask(named);
  const used = spec ?? own ?? (mleBench && parseTask(stringify({ name: named }), named));
  const given = spec?.grader ?? own?.grader ?? (mleBench && graderOf(mleBench));
  if (!used || !given)
    throw refused(`${directory} does not say how it is graded; give spec.tasks[].grader or a task.yaml`);
  const { metric, direction } = given;
  if (metrics[metric].direction !== direction)
    throw refused(`grader.direction is ${direction}, but ${metric} is better ${metrics[metric].direction}; change it`);
  const opened = openGrader(directory, publicDirectory, used, given, mleBench);
  const description = used.description ?? own?.description ?? optionalText(join(publicDirectory, "description.md"));
  if (description === undefined)
    throw refused(`${publicDirectory} has no description.md and spec.tasks[].description is not given; write one`);
  const estimated = estimateRange && !given.rewardRange ? opened.suggestRange() : undefined;
  const grader = estimated ? { ...given, rewardRange: estimated.range } : given;
  const stated: Omit<RewardRules, keyof Grader> = {
    reward: spec?.reward ?? own?.reward,
    medals: spec?.medals ?? own?.medals,
    medalRewards: spec?.medalRewards ?? own?.medalRewards,
    guardedRewardCap: spec?.guardedRewardCap ?? own?.guardedRewardCap,
    failureRewards: spec?.failureRewards ?? own?.failureRewards,
  };
  const rewardRules = withThresholds<RewardRules>({ ...grader, ...stated }, mleBench?.leaderboard);
  const fault = rewardKindFault(rewardRules);
  if (fault !== undefined) throw refused(fault);
  return {
    name: used.name,
    directory,
    publicDirectory,
    spec: { ...used, grader },
    grader,
    rewardRules,
    ...(estimated && { rewardRangeFrom: estimated.from }),
    ...(mleBench && { mleBench }),
    description,
    ...opened,
  };
}

function readTaskYaml(path: string): TaskSpec | undefined {
  const text = optionalText(path);
  if (text === undefined) return undefined;
  try {
    return parseTask(text, path);
  } catch (error) {
    if (error instanceof ManifestError) throw new TaskError("folder", error.message, error);
    throw error;
  }
}

/** Returns the part of a task's grading that other parts read: the metric's name, the columns, the direction and the bounds of rewards. */
export function graderOf({ metric, idColumn, targetColumns, direction, rewardFloor }: MleBenchTask): Grader {
  return { metric, idColumn, targetColumns, direction, rewardFloor };
}

/** Returns the largest size of a submission if the manifest has none. A power of two, which reveals little about the answers. */
export function submissionLimit(sampleBytes: number, answersBytes: number): number {
  const larger = Math.max(1, sampleBytes, answersBytes);
  const generous = Math.min(16 * larger, 2 ** 28); // the sample's `0` can become `0.0123456789012345`
  return 2 ** Math.ceil(Math.log2(Math.max(2 ** 20, generous, 2 * larger)));
}

/** Largest sample submission that is read to detect copies of it. */
const maxSampleBytes = 2 ** 28;

function openGrader(
  directory: string,
  publicDirectory: string,
  spec: TaskSpec,
  grader: Grader,
  mleBench: MleBenchTask | undefined,
): PrivatePart & Pick<Task, "grade" | "submissionBytes" | "answersPath" | "rows" | "suggestRange"> {
  const firstOf = (parent: string, names: readonly string[]) =>
    names.map((name) => join(parent, name)).find((path) => existsSync(path));
  // MLE-bench names the answers answers.csv or, if it split the data itself, test.csv.
  const names = mleBench ? [mleBench.answers] : ["answers.csv", "test.csv"];
  const folder = join(directory, "prepared", "private");
  const answersPath = firstOf(folder, names);
  if (answersPath === undefined) {
    const missing = `${folder} has no ${names.join(" and no ")}`;
    throw new TaskError("answers", `${missing}; prepare the task again or copy its answers there`);
  }
  const samplePath = firstOf(publicDirectory, [...(mleBench ? [mleBench.sample] : []), "sample_submission.csv"]);
  const sampleBytes = samplePath === undefined ? 0 : statSync(samplePath).size;
  const sample = samplePath && sampleBytes < maxSampleBytes ? readFileSync(samplePath) : undefined;
  const submissionBytes = spec.submissionBytes ?? submissionLimit(sampleBytes, statSync(answersPath).size);
  try {
    const answers = readAnswers(readFileSync(answersPath), mleBench ?? grader, { split: splitOf(spec), sample });
    // MLE-bench's tasks have the paper's rewards, which are the scores themselves.
    const suggestRange = () => (mleBench ? undefined : estimateRewardRange(answers, sample));
    const facts = { submissionBytes, answersPath, rows: answers.rows, suggestRange, ...privatePartOf(answers) };
    return { grade: (submission: Buffer) => gradeSubmission(submission, answers), ...facts };
  } catch (error) {
    throw new TaskError("answers", `${answersPath} does not fit the grader: ${(error as Error).message}`, error);
  }
}

function optionalText(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
