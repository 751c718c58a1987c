/** Computes an evaluation's figures and their bootstrap intervals. Pure. */
import type { Grader } from "../../crds/trainingrun.ts";
import { type Leaderboard, rankOf } from "../grading/mlebench-tasks.ts";
import { normalizedScore } from "../metrics/iteration.ts";
import { mean } from "../metrics/statistics.ts";
import type { Change, Evaluation, EvaluationSummary, Figures, Medal, Statistics } from "../metrics/summary.ts";
import { difference, differenceIntervals, percentileIntervals } from "./bootstrap.ts";

/** The result of one program, or of a response without a program. */
export interface EvaluatedProgram {
  id: string;
  kind: "scratch" | "improve";
  /** The id of the program that an improvement started from. */
  previous?: string | undefined;
  valid: boolean;
  /** The public score, which selects the best program. Present if valid. */
  score?: number | undefined;
  /** The reported score: the private one, or the same without a private part. Absent where it is undefined. */
  reported?: number | undefined;
  reward?: number | undefined;
  durationSeconds?: number | undefined;
}

export interface Scale extends Pick<Grader, "direction" | "rewardRange"> {
  /** Absent where a score has no rank: no task of MLE-bench, or one with a private part. */
  leaderboard?: Leaderboard | undefined;
  /** The answers have a private part, so that public scores are no reported scores. */
  isSplit?: boolean;
}

/** Returns the status's figures for the policies before and after training. `bestImproved`: null if no program was improved. */
export function headline({ settings, before, after }: Evaluation) {
  const summaryOf = ({ kinds, ...it }: EvaluationSummary) => ({
    iteration: it.iteration,
    samples: it.samples,
    validFraction: it.validFraction,
    mean: it.meanScore,
    best: it.bestScore,
    bestFromScratch: (kinds?.scratch ?? it).bestScore,
    bestImproved: kinds?.improve.bestScore ?? null,
    bestMedal: it.bestMedal,
    medalFraction: it.medalFraction,
    aboveMedianFraction: it.aboveMedianFraction,
  });
  return {
    ...(settings && { protocol: settings.protocol }),
    ...(before && { before: summaryOf(before) }),
    ...(after && { after: summaryOf(after) }),
  };
}

/** Returns the headline of each task, `{ tasks: { NAME: … } }`, or of the only task. */
export function headlines(evaluation: Evaluation) {
  const { tasks } = evaluation;
  if (!tasks) return headline(evaluation);
  return { tasks: Object.fromEntries(Object.entries(tasks).map(([name, each]) => [name, headline(each)])) };
}

/** @param lost executions that the infrastructure lost, beside `programs` */
export function summarize(
  programs: readonly EvaluatedProgram[],
  scale: Scale,
  { iteration, lost, seed }: { iteration: number; lost: number; seed: number },
): EvaluationSummary {
  const { scratch = [], improve } = Object.groupBy(programs, ({ kind }) => kind);
  const figuresOfSome = (some: readonly EvaluatedProgram[]) => figuresOf(some, scale, seed);
  const kinds = improve && { kinds: { scratch: figuresOfSome(scratch), improve: figuresOfSome(improve) } };
  return { iteration, ...figuresOfSome(programs), lost, ...kinds };
}

/** The i-th programs of both policies were asked with the same random numbers. */
export function changeOf(
  before: readonly EvaluatedProgram[],
  after: readonly EvaluatedProgram[],
  scale: Scale,
  seed: number,
): Change {
  const statistics = (units: EvaluatedProgram[][]) => statisticsOf(units.flat(), scale);
  return {
    ...difference(statisticsOf(after, scale), statisticsOf(before, scale)),
    intervals: differenceIntervals(unitsOf(after), unitsOf(before), statistics, { seed }),
  };
}

/** Returns the program that a practitioner would hand in: the one with the best score on the rows that make the reward. */
export function bestProgram(
  programs: readonly EvaluatedProgram[],
  direction: Scale["direction"],
): EvaluatedProgram | undefined {
  const sign = direction === "Higher" ? 1 : -1;
  return programs.reduce<EvaluatedProgram | undefined>((best, program) => {
    if (!program.valid || program.score === undefined) return best;
    return best?.score === undefined || sign * program.score > sign * best.score ? program : best;
  }, undefined);
}

function figuresOf(programs: readonly EvaluatedProgram[], scale: Scale, seed: number): Figures {
  const ranks = reportedOf(programs).map((score) => medalOf(score, scale));
  const count = (medal: Medal) => ranks.filter((rank) => rank === medal).length;
  const numbers = statisticsOf(programs, scale);
  return {
    samples: programs.length,
    ...numbers,
    validFraction: numbers.validFraction ?? 0,
    meanReward: mean(programs.flatMap(({ reward }) => reward ?? [])),
    meanDurationSeconds: mean(programs.flatMap(({ durationSeconds }) => durationSeconds ?? [])),
    medals: scale.leaderboard ? { gold: count("gold"), silver: count("silver"), bronze: count("bronze") } : null,
    bestMedal: numbers.bestScore === null ? null : medalOf(numbers.bestScore, scale),
    ...(scale.isSplit && {
      publicBestScore: bestProgram(programs, scale.direction)?.score ?? null,
      publicMeanScore: mean(programs.flatMap(({ score }) => score ?? [])),
    }),
    intervals: percentileIntervals(unitsOf(programs), (units) => statisticsOf(units.flat(), scale), { seed }),
  };
}

function statisticsOf(programs: readonly EvaluatedProgram[], scale: Scale): Statistics {
  const scores = reportedOf(programs);
  const { leaderboard, rewardRange = {} } = scale;
  const share = (holds: (score: number) => boolean): number | null =>
    leaderboard && programs.length > 0 ? scores.filter(holds).length / programs.length : null;
  return {
    validFraction: mean(programs.map(({ valid }) => (valid ? 1 : 0))),
    meanScore: mean(scores),
    bestScore: bestProgram(programs, scale.direction)?.reported ?? null,
    meanNormalizedScore: mean(scores.flatMap((score) => normalizedScore(score, rewardRange) ?? [])),
    medalFraction: share((score) => medalOf(score, scale) !== null),
    aboveMedianFraction: share((score) => rankOf(score, leaderboard!).aboveMedian),
  };
}

/** Returns the bootstrap's units: a program together with its improvements, which depend on it. */
function unitsOf(programs: readonly EvaluatedProgram[]): EvaluatedProgram[][] {
  const units = Map.groupBy(programs, ({ id, kind, previous }) => (kind === "improve" ? (previous ?? id) : id));
  return [...units.values()];
}

const reportedOf = (programs: readonly EvaluatedProgram[]): number[] =>
  programs.flatMap(({ valid, reported }) => (valid && reported !== undefined ? [reported] : []));

function medalOf(score: number, { leaderboard }: Scale): Medal | null {
  if (!leaderboard) return null;
  const { goldMedal, silverMedal, bronzeMedal } = rankOf(score, leaderboard);
  return goldMedal ? "gold" : silverMedal ? "silver" : bronzeMedal ? "bronze" : null;
}
