/** The runs that E3, E4 and E4b share: the quickstart's recipe on fewer rows of its task, and its comparisons. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Grader } from "../../crds/trainingrun.ts";
import { readAnswers } from "../../learner/grading/grade.ts";
import { privatePartOf } from "../../learner/grading/private-score.ts";
import { normalizedScore } from "../../learner/metrics/iteration.ts";
import type { RunSummary } from "../../learner/metrics/summary.ts";
import type { AskedRun } from "./execute.ts";
import { prepareSmallTask, type SmallTask, smallTask } from "./tasks.ts";

export const TASK: SmallTask = { name: "diamonds", train: 2000, test: 2000, fields: { rewardSplit: "Half" } };
/** The world of every row in plots and tables. */
export const WORLD = `${TASK.name}, ${TASK.train} rows`;

/** The control runs more iterations, because it spends no time on learning. */
const LADDER: Record<string, string[]> = {
  RL: [],
  "learning rate 0": ["algorithm.learningRate=0", "algorithm.criticLearningRate=0", "stopping.iterations=34"],
  "RL, no improve prompts": ["prompts.improveProbability=0", "evaluation.protocol=Paper"],
};

export function ladderRun(arm: string, seed: number): AskedRun & { arm: string } {
  return {
    ...{ arm, seed, kind: arm, manifest: "E4.yaml", guessSeconds: 140 },
    folder: `E4/${arm} ${seed}`.replaceAll(",", "").replaceAll(" ", "-"),
    set: [`tasks=${JSON.stringify([smallTask(TASK)])}`, `seed=${seed}`, ...LADDER[arm]!],
  };
}

/** @returns the folder of the task's answers */
export async function prepareLadder(): Promise<string> {
  return join(await prepareSmallTask(TASK), "private");
}

export const grader = () => smallTask(TASK).grader as unknown as Grader;

/** Scales a score of the task from its `rewardRange.worst` (0) to `.best` (1). */
export const scaled = (score: number) => normalizedScore(score, grader().rewardRange ?? {}) ?? 0;

/** Returns the score of `best/submission.csv` on the half of the test set that no reward has seen, 0 to 1. */
export function hiddenScore(directory: string, answers: string): number | null {
  const truth = readAnswers(readFileSync(join(answers, "answers.csv")), grader(), { split: "EveryOther" });
  const { score } = privatePartOf(truth).privateScore(readFileSync(join(directory, "best/submission.csv")))!;
  return score === undefined ? null : scaled(score);
}

/** Returns, of all programs after training, the best one by the half that determines rewards, scored on the hidden half; 0 to 1. */
export function evaluatedBest(directory: string): number | null {
  const { evaluation } = JSON.parse(readFileSync(join(directory, "summary.json"), "utf8")) as RunSummary;
  const best = evaluation.after?.bestScore;
  return best === null || best === undefined ? null : scaled(best);
}
