/** E4 (Fig. 1, 7) and E4b: compares RL with the same policy without gradient, and with random search, at equal time. */

import type { AskedRun } from "./execute.ts";
import { ofLast, type RunFacts, readFacts } from "./facts.ts";
import { gridFlags, type Ran, runGrid } from "./grid.ts";
import { grader, hiddenScore, ladderRun, prepareLadder, scaled, TASK, WORLD } from "./ladder.ts";
import {
  armTable,
  comparisons,
  comparisonTable,
  differenceRows,
  type Finished,
  type Measure,
  preamble,
} from "./page.ts";
import { COLORS, type CoursePoint, coursesPlot, differencesPlot } from "./plots.ts";
import type { Experiment, Findings } from "./result.ts";
import { isBetter, randomSearch, readSearch } from "./search.ts";
import { prepareSmallTask } from "./tasks.ts";

const SEARCH = "random search";
const ARMS = ["RL", "learning rate 0", SEARCH];
/** Duration of an RL run of E4.yaml. If RL takes longer, the search is compared at its own end. */
const SEARCH_SECONDS = 150;

/** The best so far, by the half of the test set that determines rewards. */
interface Step {
  at: number;
  executed: number;
  /** 0 to 1; null: nothing valid yet. */
  best: number | null;
}

interface Climb {
  steps: Step[];
  /** Score of the final best program on the hidden half. */
  hidden: number | null;
}

export type Row = Finished & { climb: Climb };

export const e4: Experiment = {
  question:
    "Does RL beat the same policy without gradient, and random search, at equal time? Does it learn, or only select?",
  async run(flags) {
    const given = gridFlags(flags, { budget: "1h" });
    const answers = await prepareLadder();
    const folder = await prepareSmallTask(TASK);
    const runs: (AskedRun & { arm: string })[] = [];
    for (let seed = 0; seed < given.seeds; seed++) {
      runs.push(ladderRun("RL", seed), ladderRun("learning rate 0", seed));
      const search = { task: TASK.name, grader: grader(), folder, seed, seconds: SEARCH_SECONDS, timeoutSeconds: 20 };
      runs.push({
        ...{ arm: SEARCH, seed, kind: SEARCH, manifest: "", set: [`seconds=${SEARCH_SECONDS}`] },
        ...{ folder: `E4/random-search-${seed}`, guessSeconds: SEARCH_SECONDS + 8 },
        execute: (directory) => randomSearch(search, directory),
      });
    }
    const ran = await runGrid("E4", runs, given);
    const rows: Row[] = [];
    for (const [{ arm, seed }, directory] of ran.directories) {
      const facts = arm === SEARCH ? NOTHING : await readFacts(directory);
      const steps = arm === SEARCH ? stepsOfSearch(directory) : stepsOf(facts, arm);
      rows.push({ world: WORLD, arm, seed, facts, climb: { steps, hidden: hiddenScore(directory, answers) } });
    }
    return findings(rows, ran);
  },
};

const NOTHING: RunFacts = { iterations: [], evaluation: null };

/** In arms without learning, the time for learning is not counted. */
function stepsOf({ iterations }: RunFacts, arm: string): Step[] {
  return iterations.map((line) => ({
    at: arm === "RL" ? line.elapsed : line.withoutLearning,
    executed: line.executed,
    best: line.bestSoFar === null ? null : scaled(line.bestSoFar),
  }));
}

function stepsOfSearch(directory: string): Step[] {
  let best: number | null = null;
  return readSearch(directory).map(({ at, score }, index) => {
    if (score !== null && (best === null || isBetter(score, best, grader()))) best = score;
    return { at, executed: index + 1, best: best === null ? null : scaled(best) };
  });
}

/** Returns the best at `end`. */
function bestAt({ steps }: Climb, of: (step: Step) => number, end: number): number | null {
  return steps.filter((step) => of(step) <= end).at(-1)?.best ?? null;
}

/** Returns a value of a run at the end that all arms of its seed reached, so that they are compared at the same time. */
export function atSameEnd(rows: Row[], of: (step: Step) => number): (run: Row) => number | null {
  return ({ seed, climb }) => {
    const beside = rows.filter((row) => row.seed === seed);
    return bestAt(climb, of, Math.min(...beside.map((row) => of(row.climb.steps.at(-1)!))));
  };
}

function findings(rows: Row[], ran: Ran): Findings {
  /** At the end that both compared arms reached. */
  const climbs = (some: Row[]): Measure<Row>[] => [
    { name: "best, 0 to 1, after equal time", digits: 3, of: atSameEnd(some, (step) => step.at) },
    { name: "best, 0 to 1, after equally many programs", digits: 3, of: atSameEnd(some, (step) => step.executed) },
  ];
  const unseen: Measure<Row> = {
    name: "best at the end, on the hidden half",
    digits: 3,
    of: ({ climb }) => climb.hidden,
  };
  const evaluation = (
    name: string,
    of: (facts: NonNullable<RunFacts["evaluation"]>) => number | null,
  ): Measure<Row> => ({ name, digits: 3, of: ({ facts }) => facts.evaluation && of(facts.evaluation) });
  const valid = evaluation("valid, of 48 programs after training", (e) => e.valid);
  const score = evaluation("mean score of the valid ones, 0 to 1", (e) => e.score);
  const less = (control: string, measures: Measure<Row>[]) =>
    measures.map((measure) => ({ world: WORLD, treated: "RL", control, measure, expected: "higher" as const }));
  const beside = (control: string) => climbs(rows.filter(({ arm }) => arm === "RL" || arm === control));
  const judged = comparisons(rows, [
    ...["learning rate 0", SEARCH].flatMap((control) => less(control, [...beside(control), unseen])),
    ...less("learning rate 0", [valid, score]),
  ]);
  const verbatim: Measure<Row> = {
    name: "valid ones verbatim in the corpus",
    digits: 3,
    of: ({ facts }) => ofLast(facts, (line) => line.verbatim),
  };
  const extra: Measure<Row>[] = [
    { name: "programs", digits: 0, of: ({ climb }) => climb.steps.at(-1)!.executed },
    { name: "seconds", digits: 0, of: ({ climb }) => climb.steps.at(-1)!.at },
  ];
  const page = [
    "# E4: does RL beat the same policy without gradient, and random search, at equal time?",
    "",
    ...preamble(judged, ran, [
      `${WORLD}, the quickstart's recipe. The control is the same run with a learning rate of 0, whose clock leaves out the time of learning;`,
      "random search draws programs without mistakes from the generator of the pretraining corpus, and runs them on both cores. One half of the",
      "test rows chooses the best program of each; its score on the other half is measured once.",
      "E4b (learned or only selected?) is the last two measures: after training both policies write programs for the same 48 prompts.",
    ]),
    "",
    ...comparisonTable(judged),
    "",
    ...armTable(rows, [...extra, ...climbs(rows), unseen, valid, score, verbatim]),
    "",
  ].join("\n");
  const series = ARMS.map((label, index) => ({ label, color: COLORS[[1, 0, 2][index]!]! }));
  const points = (of: (step: Step) => number, scale: number): CoursePoint[] =>
    rows.flatMap(({ arm, seed, climb }) =>
      climb.steps.map((step, index) => ({ x: of(step) / scale, y: step.best, series: arm, seed, step: index })),
    );
  // All start at 0 and exceed this within seconds.
  const panel = { y: "best so far, 0 to 1", steps: true, from: 0.75 };
  return {
    page,
    plots: [
      {
        name: "E4",
        description:
          "Best score so far by time and by executed programs: RL, the same policy without gradient, random search",
        spec: coursesPlot(
          [
            [
              { ...panel, title: "By time", x: "seconds", points: points((step) => step.at, 1) },
              { ...panel, title: "By executed programs", x: "programs", points: points((step) => step.executed, 1) },
            ],
          ],
          series,
        ),
      },
      {
        name: "E4-differences",
        description: "Differences of E4 and E4b with intervals over seeds",
        spec: differencesPlot([
          {
            title: "RL less control",
            x: "difference, scores 0 to 1",
            rows: differenceRows(judged).map((row) => ({ ...row, label: `less ${row.control}: ${row.measure}` })),
          },
        ]),
      },
    ],
    raw: {
      runs: rows.map(({ arm, seed, facts, climb }) => ({ arm, seed, facts, climb: thinned(climb) })),
      comparisons: judged,
    },
  };
}

/** Keeps only the steps at which the best changed, and the last one. */
function thinned({ steps, hidden }: Climb): Climb {
  return { steps: steps.filter((step, i) => i === steps.length - 1 || step.best !== steps[i - 1]?.best), hidden };
}
