/** E2 (Fig. 9): does partial credit speed up learning? */

import type { AskedRun } from "./execute.ts";
import { type IterationFacts, readFacts } from "./facts.ts";
import { gridFlags, type Ran, runGrid } from "./grid.ts";
import {
  armTable,
  comparisons,
  comparisonTable,
  differenceRows,
  type Finished,
  type Measure,
  preamble,
} from "./page.ts";
import { COLORS, coursesPlot, differencesPlot } from "./plots.ts";
import type { Experiment, Findings } from "./result.ts";
import { mean } from "./statistics.ts";
import { prepareSmallTask, type SmallTask, smallTask } from "./tasks.ts";

const TASK: SmallTask = { name: "diamonds", train: 2000, test: 1000 };
const WORLD = `${TASK.name}, ${TASK.train} rows`;
const WITH = "partial credit";
const WITHOUT = "no partial credit";
const ARMS: Record<string, string[]> = { [WITH]: [], [WITHOUT]: ["algorithm.markerReward=0"] };

export const e2: Experiment = {
  question: "Does partial credit speed learning up?",
  async run(flags) {
    const given = gridFlags(flags, { budget: "1h" });
    await prepareSmallTask(TASK);
    const runs: (AskedRun & { arm: string })[] = [];
    for (let seed = 0; seed < given.seeds; seed++)
      for (const [arm, own] of Object.entries(ARMS))
        runs.push({
          ...{ arm, seed, kind: arm, manifest: "E2.yaml", guessSeconds: 90 },
          folder: `E2/${arm} ${seed}`.replaceAll(" ", "-"),
          set: [`tasks=${JSON.stringify([smallTask(TASK)])}`, `seed=${seed}`, ...own],
        });
    const ran = await runGrid("E2", runs, given);
    const finished: Finished[] = [];
    for (const [{ arm, seed }, directory] of ran.directories) {
      finished.push({ world: WORLD, arm, seed, facts: await readFacts(directory) });
    }
    return findings(finished, ran);
  },
};

/** The measure of Fig. 9: the score, and -10 for an invalid program, whatever its partial credit. */
const INVALID = -10;
const withoutCredit = ({ valid, score }: { valid: number; score: number | null }) =>
  valid * (score ?? 0) + (1 - valid) * INVALID;

/** Mean over the course, so that earlier learning counts as well as a better end. */
const overCourse =
  (value: (line: IterationFacts) => number | null) =>
  ({ facts }: Finished) => {
    const values = facts.iterations.flatMap((line) => value(line) ?? []);
    return values.length > 0 ? mean(values) : null;
  };

const MEASURES: Measure[] = [
  {
    name: "valid, of 64 programs after training",
    digits: 3,
    of: ({ facts: { evaluation } }) => evaluation?.valid ?? null,
  },
  {
    name: "score without credit, of these",
    digits: 2,
    of: ({ facts: { evaluation } }) => evaluation && withoutCredit(evaluation),
  },
  { name: "score without credit, mean over the iterations", digits: 2, of: overCourse(withoutCredit) },
];
const BEFORE: Measure = {
  name: "valid in the first iteration",
  digits: 3,
  of: ({ facts: { iterations } }) => iterations[0]?.valid ?? null,
};
const EXECUTED: Measure = {
  name: "programs executed",
  digits: 0,
  of: ({ facts: { iterations } }) => iterations.at(-1)?.executed ?? null,
};
const NEVER: Measure = {
  name: "share of iterations without any valid program",
  digits: 2,
  of: overCourse((line) => (line.valid === 0 ? 1 : 0)),
};

function findings(finished: Finished[], ran: Ran): Findings {
  const judged = comparisons(
    finished,
    MEASURES.map((measure) => ({
      world: WORLD,
      treated: WITH,
      control: WITHOUT,
      measure,
      expected: "higher" as const,
    })),
  );
  const never = finished.filter(({ facts }) => facts.iterations.every(({ valid }) => valid === 0));
  const page = [
    "# E2: does partial credit speed learning up?",
    "",
    ...preamble(judged, ran, [
      `${WORLD}; the quickstart's policy at a temperature at which few of its programs are valid; 12 iterations of 32 programs; the paper's`,
      "reward (0.1 for each marker above -10). Scores are 0 to 1; an invalid program counts -10 with and without credit.",
    ]),
    `Runs without a valid program: ${never.length === 0 ? "none" : never.map(({ arm, seed }) => `${arm}, seed ${seed}`).join("; ")}.`,
    "",
    ...comparisonTable(judged),
    "",
    ...armTable(finished, [BEFORE, ...MEASURES, NEVER, EXECUTED]),
    "",
  ].join("\n");
  const series = [WITHOUT, WITH].map((label, index) => ({ label, color: COLORS[index]! }));
  const rowsOf = (word: string) =>
    differenceRows(judged.filter(({ measure }) => measure.startsWith(word))).map((row) => ({
      ...row,
      label: row.measure,
    }));
  const panel = (title: string, y: string, value: (line: IterationFacts) => number | null) => ({
    ...{ title, x: "programs executed", y },
    points: finished.flatMap(({ arm, seed, facts }) =>
      facts.iterations.map((line) => ({ x: line.executed, y: value(line), series: arm, seed, step: line.iteration })),
    ),
  });
  return {
    page,
    plots: [
      {
        name: "E2",
        description:
          "Score without the credit, and valid programs, by executed programs, with and without partial credit",
        spec: coursesPlot(
          [
            [
              panel("Score without the credit", "score, invalid -10", withoutCredit),
              panel("Valid programs", "share", (line) => line.valid),
            ],
          ],
          series,
        ),
      },
      {
        name: "E2-differences",
        description: "With partial credit less without, with intervals over seeds",
        spec: differencesPlot([
          { title: "Partial credit less none: valid programs", x: "difference of shares", rows: rowsOf("valid") },
          { title: "Partial credit less none: score without credit", x: "difference", rows: rowsOf("score") },
        ]),
      },
    ],
    raw: { runs: finished, comparisons: judged, never: never.map(({ arm, seed }) => ({ arm, seed })) },
  };
}
