/** A few numbers from a run's folder for the pages: of each iteration and of the evaluation after it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parse } from "yaml";
import type { TrainingRun, TrainingRunSpec } from "../../crds/trainingrun.ts";
import { type IterationMetrics, normalizedScore } from "../../learner/metrics/iteration.ts";
import { readMetrics } from "../../learner/metrics/jsonl.ts";
import { mean } from "./statistics.ts";

/** Numbers of some programs of a policy. */
interface PolicyFacts {
  programs: number;
  /** Share of valid programs. */
  valid: number;
  /** Mean score of the valid ones, scaled from `rewardRange.worst` (0) to `.best` (1), clipped. */
  score: number | null;
  /** Best score, in the task's unit. */
  best: number | null;
  /** Mean seconds of the valid ones: the smaller of processor and wall-clock seconds. */
  seconds: number | null;
  /** Their geometric mean, which one slow program hardly changes. */
  typicalSeconds: number | null;
  /** Mean seconds of all programs that ran. */
  secondsOfAll: number | null;
}

export interface IterationFacts extends PolicyFacts {
  iteration: number;
  /** Seconds since the run began. */
  elapsed: number;
  /** The same without the time that only learning needs: log-probs, updates, checkpoints. */
  withoutLearning: number;
  /** Programs that were executed until then, trained on or not. */
  executed: number;
  /** Mean wall-clock seconds of programs that ended since the previous line, and of programs trained on. */
  launchedSeconds: number | null;
  trainedSeconds: number | null;
  /** Largest duration weight, and effective sample size as a share of the batch. */
  largestWeight: number | null;
  effectiveShare: number | null;
  lag: number;
  /** Mean reward of the samples that were trained on. */
  reward: number | null;
  bestSoFar: number | null;
  verbatim: number | null;
  learnerIdle: number | null;
  actorsBusy: number | null;
}

export interface RunFacts {
  iterations: IterationFacts[];
  /** After training; null if the manifest has no evaluation. */
  evaluation: PolicyFacts | null;
}

export interface Program {
  purpose: string;
  kind: "scratch" | "improve";
  /** Version of the policy that wrote it. */
  version: number;
  /** Iteration that trained on it. */
  iteration: number | null;
  state: string;
  wall: number | null;
  cpu: number | null;
  valid: number | null;
  score: number | null;
  finishedAt: number | null;
}

export async function readFacts(directory: string): Promise<RunFacts> {
  const lines = await readMetrics(join(directory, "metrics.jsonl"));
  const { spec } = parse(readFileSync(join(directory, "trainingrun.yaml"), "utf8")) as TrainingRun;
  const programs = readPrograms(directory);
  const of = (some: Program[]) => policyFacts(some, spec);
  const evaluated = programs.filter(({ purpose }) => purpose.startsWith("evaluation-after"));
  return {
    iterations: lines.map((line) => ({
      ...of(programs.filter(({ iteration }) => iteration === line.iteration)),
      ...iterationFacts(line, lines, programs),
    })),
    evaluation: evaluated.length > 0 ? of(evaluated) : null,
  };
}

/** Returns all programs of a run's policies, in the order of dispatch. */
function readPrograms(directory: string): Program[] {
  const store = new DatabaseSync(join(directory, "store.sqlite"), { readOnly: true });
  try {
    return store
      .prepare(
        `SELECT s.purpose, s.kind, s.iteration AS version, s.used_iteration AS iteration, s.state, s.finished_at AS finishedAt,
           r.duration_seconds AS wall, r.cpu_seconds AS cpu, g.valid, g.score
         FROM samples s LEFT JOIN results r ON r.execution = s.id LEFT JOIN grades g ON g.sample = s.id
         ORDER BY s.sequence`,
      )
      .all() as unknown as Program[];
  } finally {
    store.close();
  }
}

export function policyFacts(programs: Program[], spec: TrainingRunSpec): PolicyFacts {
  const { grader } = spec.tasks[0]!;
  const valid = programs.filter((program) => program.valid === 1);
  const scores = valid.flatMap(({ score }) => score ?? []);
  const best = grader?.direction === "Higher" ? Math.max(...scores) : Math.min(...scores);
  const seconds = (some: Program[]) =>
    some.flatMap(({ wall, cpu }) => (wall === null ? [] : Math.min(wall, cpu ?? wall)));
  const meanOrNull = (values: number[]) => (values.length > 0 ? mean(values) : null);
  return {
    programs: programs.length,
    valid: programs.length > 0 ? valid.length / programs.length : 0,
    score: meanOrNull(scores.flatMap((score) => normalizedScore(score, grader?.rewardRange ?? {}) ?? [])),
    best: scores.length > 0 ? best : null,
    seconds: meanOrNull(seconds(valid)),
    typicalSeconds: geometricMean(seconds(valid)),
    secondsOfAll: meanOrNull(seconds(programs)),
  };
}

function geometricMean(values: number[]): number | null {
  return values.length > 0 ? Math.exp(mean(values.map(Math.log))) : null;
}

function iterationFacts(line: IterationMetrics, lines: IterationMetrics[], programs: Program[]) {
  const learning = lines
    .filter(({ iteration }) => iteration <= line.iteration)
    .reduce((sum, { secondsByPhase: s }) => sum + (s.evaluate ?? 0) + (s.train ?? 0) + (s.checkpoint ?? 0), 0);
  const endedAt = Date.parse(line.wallTime);
  const ran = programs.filter(
    ({ purpose, wall, finishedAt }) => purpose === "training" && wall !== null && (finishedAt ?? 0) <= endedAt,
  );
  return {
    iteration: line.iteration,
    elapsed: line.elapsedSeconds,
    withoutLearning: line.elapsedSeconds - learning,
    executed: ran.length,
    launchedSeconds: line.launchedMeanDurationSeconds,
    trainedSeconds: line.trainedMeanDurationSeconds,
    largestWeight: line.maxDurationWeight,
    effectiveShare: line.effectiveSampleSize === null ? null : line.effectiveSampleSize / line.samples,
    lag: line.meanLag,
    reward: line.meanReward,
    bestSoFar: line.bestScoreSoFar,
    verbatim: line.verbatimValidShare,
    learnerIdle: line.learnerIdleShare,
    actorsBusy: line.actorBusyShare,
  };
}

/** Returns the mean over the last iterations that have the value. */
export function ofLast(facts: RunFacts, value: (line: IterationFacts) => number | null, count = 3): number | null {
  const values = facts.iterations.slice(-count).flatMap((line) => value(line) ?? []);
  return values.length > 0 ? mean(values) : null;
}
