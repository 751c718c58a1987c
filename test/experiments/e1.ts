/** E1 (Fig. 8): does duration weighting preserve slow, better programs? */

import type { AskedRun } from "./execute.ts";
import { type IterationFacts, ofLast, readFacts } from "./facts.ts";
import { gridFlags, type Ran, runGrid } from "./grid.ts";
import {
  armTable,
  comparisons,
  comparisonTable,
  differenceRows,
  type Expected,
  type Finished,
  type Measure,
  preamble,
  type Question,
} from "./page.ts";
import { COLORS, coursesPlot, differencesPlot, type Panel } from "./plots.ts";
import type { Experiment, Findings } from "./result.ts";
import { prepareSmallTask, type SmallTask, smallTask } from "./tasks.ts";

const WORLDS: Record<string, SmallTask & { set: string[] }> = {
  // Forests and boosting are far better than models that take a tenth of a second.
  "slow is better": { name: "diamonds", train: 4000, test: 1000, set: ["algorithm.validScoreWeight=0.5"] },
  // A linear model is better than both.
  "fast is best": { name: "wage", train: 2000, test: 999, set: ["algorithm.validScoreWeight=0.5"] },
  // Every valid program earns exactly the same (the floor is a perfect program's reward), and scores have no other effect. If rewards
  // differed in the fifth digit, whitening would enlarge that difference in a batch of valid programs.
  tied: {
    ...{ name: "wage", train: 2000, test: 999 },
    grader: { rewardRange: { worst: 1e6, best: 0 }, rewardFloor: 1 },
    set: ["algorithm.validScoreWeight=0"],
  },
};
/** Arms that E0 distinguishes; `Completion` and `WaitAll` gave the same as `Off` and `CarryOver` there. */
const ARMS: Record<string, string[]> = Object.fromEntries(
  ["CarryOver", "Discard"].flatMap((collection) =>
    ["Off", "Paper"].map((weighting) => [
      `${collection} ${weighting}`,
      [`algorithm.collection=${collection}`, `algorithm.durationWeighting=${weighting}`],
    ]),
  ),
);
/** With few slots, durations matter to `Discard`. Timeouts by the wall clock must not matter, however many programs run at once. */
const FIELDS = { executionTimeoutSeconds: 120 };

type Cell = { world: string; arm: string };

export const e1: Experiment = {
  question: "Does duration weighting keep slow, better programs alive?",
  async run(flags) {
    const given = gridFlags(flags, { budget: "3h" });
    for (const world of Object.values(WORLDS)) await prepareSmallTask(world);
    const runs: (AskedRun & Cell)[] = [];
    for (let seed = 0; seed < given.seeds; seed++)
      for (const [world, { set, ...task }] of Object.entries(WORLDS))
        for (const [arm, own] of Object.entries(ARMS))
          runs.push({
            ...{ seed, world, arm, kind: `${world} ${arm}`, manifest: "E1.yaml", guessSeconds: 110 },
            folder: `E1/${world} ${arm} ${seed}`.replaceAll(" ", "-"),
            set: [
              `tasks=${JSON.stringify([smallTask({ ...task, fields: FIELDS })])}`,
              `seed=${seed}`,
              ...[...set, ...own],
            ],
          });
    const ran = await runGrid("E1", runs, given);
    const finished: Finished[] = [];
    for (const [{ world, arm, seed }, directory] of ran.directories) {
      finished.push({ world, arm, seed, facts: await readFacts(directory) });
    }
    return findings(finished, ran);
  },
};

/** Score in the evaluation after training, in which every program counts whatever `collection` discards. */
const SCORE: Measure = {
  name: "score of all, invalid ones 0",
  digits: 3,
  of: ({ facts: { evaluation } }) => evaluation && evaluation.valid * (evaluation.score ?? 0),
};
const SECONDS: Measure = {
  name: "seconds of a valid program",
  digits: 3,
  of: ({ facts: { evaluation } }) => evaluation?.typicalSeconds ?? null,
};
const MEAN_SECONDS: Measure = {
  name: "their arithmetic mean",
  digits: 3,
  of: ({ facts: { evaluation } }) => evaluation?.seconds ?? null,
};
const VALID: Measure = { name: "valid", digits: 2, of: ({ facts: { evaluation } }) => evaluation?.valid ?? null };
const MINUTES: Measure = {
  name: "minutes",
  digits: 1,
  of: ({ facts: { iterations } }) => (iterations.at(-1)?.elapsed ?? Number.NaN) / 60,
};
const ITERATIONS: Measure = { name: "iterations", digits: 1, of: ({ facts: { iterations } }) => iterations.length };
/** Duration of trained samples divided by the duration of launched ones: below 1, slow programs were lost. */
const TRAINED: Measure = {
  name: "duration, trained / launched",
  digits: 2,
  of: ({ facts: { iterations } }) => {
    const sum = (of: (line: IterationFacts) => number | null) =>
      iterations.reduce((total, line) => total + (of(line) ?? 0), 0);
    return sum((line) => line.trainedSeconds) / sum((line) => line.launchedSeconds);
  },
};
const WEIGHT: Measure = {
  name: "largest weight",
  digits: 1,
  of: ({ facts: { iterations } }) => Math.max(...iterations.map(({ largestWeight }) => largestWeight ?? 1)),
};

/** Number of iterations that are averaged as a policy's behaviour at one time. */
const WINDOW = 4;
const scoreOfAll = (line: IterationFacts) => line.valid * (line.score ?? 0);

/** Returns a value of the last trained samples, at the point where every arm of that world and seed had trained on as many samples. */
function atSameIteration(finished: readonly Finished[], of: (line: IterationFacts) => number | null) {
  return ({ world, seed, facts }: Finished): number | null => {
    const beside = finished.filter((run) => run.world === world && run.seed === seed);
    const end = Math.min(...beside.map(({ facts: { iterations } }) => iterations.length));
    return ofLast({ ...facts, iterations: facts.iterations.slice(0, end) }, of, WINDOW);
  };
}

/** For an iteration's programs: below 1, slow ones were lost. */
const trainedOverLaunched = ({ trainedSeconds, launchedSeconds }: IterationFacts): number | null =>
  trainedSeconds === null || !launchedSeconds ? null : trainedSeconds / launchedSeconds;

/** The paper's predictions: eq. 3 removes a bias towards fast programs and adds no preference of its own. */
function questions(finished: readonly Finished[]): Question[] {
  const equally: [Measure, Measure] = [
    { name: "score at equal samples", digits: 3, of: atSameIteration(finished, scoreOfAll) },
    { name: "seconds at equal samples", digits: 3, of: atSameIteration(finished, (line) => line.typicalSeconds) },
  ];
  const effects: Record<string, [score: Expected, seconds: Expected]> = {
    "slow is better": ["higher", "higher"],
    "fast is best": ["none", "none"],
    tied: ["none", "none"],
  };
  return Object.keys(WORLDS).flatMap((world) => {
    const [score, seconds] = effects[world]!;
    const eq3 = ["CarryOver", "Discard"].flatMap((collection): Question[] => {
      const pair = { world, treated: `${collection} Paper`, control: `${collection} Off` };
      return [
        { ...pair, measure: SCORE, expected: score },
        { ...pair, measure: SECONDS, expected: seconds },
        { ...pair, measure: equally[0], expected: score },
        { ...pair, measure: equally[1], expected: seconds },
      ];
    });
    const bias = { world, treated: "Discard Off", control: "CarryOver Off" };
    return [...eq3, { ...bias, measure: SECONDS, expected: "lower" }];
  });
}

function findings(finished: Finished[], ran: Ran): Findings {
  const judged = comparisons(finished, questions(finished));
  const page = [
    "# E1: does duration weighting keep slow, better programs alive?",
    "",
    ...preamble(judged, ran, [
      "Real executions by a policy of a million weights; batches of 16, 20 executions in flight on 4 slots. So `Discard` throws away the 4",
      "executions that have not ended when a batch is full. Scores and processor seconds are of 40 programs that the trained policy wrote after",
      "18 iterations or 300 seconds, all of which count. Values at equal samples are of the last four batches up to the iteration that every arm",
      "of that seed reached. Seconds are a geometric mean, because a few programs take most of the time.",
    ]),
    "",
    ...comparisonTable(judged),
    "",
    ...armTable(finished, [VALID, SCORE, SECONDS, MEAN_SECONDS, TRAINED, WEIGHT, ITERATIONS, MINUTES]),
    "",
  ].join("\n");
  const of = (measure: Measure) => differenceRows(judged.filter((one) => one.measure === measure.name));
  return {
    page,
    plots: [
      {
        name: "E1",
        description: "Courses of E1's runs by executed programs and by wall-clock",
        spec: courses(finished),
      },
      {
        name: "E1-differences",
        description: "Differences between E1's arms after training, with intervals over seeds",
        spec: differencesPlot([
          { title: "Score of all programs, invalid ones 0", x: "difference", rows: of(SCORE) },
          { title: "Duration of a valid program", x: "difference, processor seconds", rows: of(SECONDS) },
        ]),
      },
    ],
    raw: { runs: finished, comparisons: judged },
  };
}

function courses(finished: Finished[]) {
  const series = Object.keys(ARMS).map((label, index) => ({ label, color: COLORS[index]! }));
  const rows: [string, (line: IterationFacts) => number | null, string, (line: IterationFacts) => number][] = [
    ["score, invalid 0", scoreOfAll, "programs executed", (line) => line.executed],
    ["seconds of a valid one", (line) => line.typicalSeconds, "programs executed", (line) => line.executed],
    ["score, invalid 0", scoreOfAll, "minutes", (line) => line.elapsed / 60],
    ["seconds of a valid one", (line) => line.typicalSeconds, "minutes", (line) => line.elapsed / 60],
    ["seconds, trained / launched", trainedOverLaunched, "programs executed", (line) => line.executed],
  ];
  const panels = rows.map(([y, value, x, at]) =>
    Object.keys(WORLDS)
      .filter((world) => finished.some((run) => run.world === world))
      .map(
        (world): Panel => ({
          ...{ title: world, x, y },
          points: finished
            .filter((run) => run.world === world)
            .flatMap(({ arm, seed, facts }) =>
              facts.iterations.map((line) => ({
                x: at(line),
                y: value(line),
                series: arm,
                seed,
                step: line.iteration,
              })),
            ),
        }),
      ),
  );
  return coursesPlot(panels, series);
}
