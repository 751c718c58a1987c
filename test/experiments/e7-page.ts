/** The page of E7: differences between arms, means of arms, and the course of every run, unfinished ones too. */
import type { Arm } from "./e7-arms.ts";
import type { IterationFacts } from "./facts.ts";
import type { Ran } from "./grid.ts";
import {
  armTable,
  comparisons,
  comparisonTable,
  differenceRows,
  type Expected,
  type Finished,
  type Measure,
  preamble,
  table,
} from "./page.ts";
import { COLORS, coursesPlot, differencesPlot } from "./plots.ts";
import type { Findings } from "./result.ts";

export interface Row extends Finished {
  arm: Arm;
  isFinished: boolean;
  /** Processor time of all processes; null: unknown or unfinished. */
  cpuSeconds: number | null;
}

/** The score of all programs: an invalid one counts 0. */
const scoreOfAll = ({ valid, score }: { valid: number; score: number | null }) => valid * (score ?? 0);

const MEAN_REWARD = "mean reward of the last three iterations";
const MEASURES: Measure<Row>[] = [
  { name: "valid, of 32 after training", digits: 2, of: ({ facts }) => facts.evaluation?.valid ?? null },
  {
    name: "score of these, invalid ones 0, 0 to 1",
    digits: 3,
    of: ({ facts }) => facts.evaluation && scoreOfAll(facts.evaluation),
  },
  { name: "mean score of the valid ones", digits: 3, of: ({ facts }) => facts.evaluation?.score ?? null },
  { name: MEAN_REWARD, digits: 2, of: ({ facts }) => meanReward(facts.iterations) },
];
/** Rewards of the two arms are on different scales: a failed program earns credit for its markers in one alone. */
const ANOTHER_SCALE: Arm = "no partial credit";
const COSTS: Measure<Row>[] = [
  { name: "executions", digits: 0, of: ({ facts }) => facts.iterations.at(-1)?.executed ?? null },
  { name: "CPU hours", digits: 2, of: ({ cpuSeconds }) => (cpuSeconds === null ? null : cpuSeconds / 3600) },
];

/** Pairs of arms, with the difference that is expected. */
const QUESTIONS: [treated: Arm, control: Arm, expected: Expected][] = [
  ["RL", "learning rate 0", "higher"],
  ["RL", "no warm start", "higher"],
  ["RL", "no partial credit", "higher"],
  ["improve prompts", "RL", "higher"],
  ["debug prompts", "RL", "none"],
];

function meanReward(iterations: readonly IterationFacts[]): number | null {
  const last = iterations.slice(-3).flatMap(({ reward }) => reward ?? []);
  return last.length > 0 ? last.reduce((sum, reward) => sum + reward, 0) / last.length : null;
}

/** @param rows finished and unfinished runs; only finished ones are compared */
export function e7Findings(rows: readonly Row[], ran: Ran): Findings {
  const finished = rows.filter(({ isFinished }) => isFinished);
  const judged = comparisons(
    finished,
    QUESTIONS.flatMap(([treated, control, expected]) =>
      MEASURES.filter(({ name }) => control !== ANOTHER_SCALE || name !== MEAN_REWARD).map((measure) => ({
        world: finished[0]?.world ?? "",
        treated,
        control,
        measure,
        expected,
      })),
    ),
  );
  const courses = rows.map(({ arm, seed, facts: { iterations }, isFinished }) => [
    ...[arm, String(seed), isFinished ? "yes" : `no: ${iterations.length} iterations so far`],
    iterations.map(({ valid }) => Math.round(100 * valid)).join(", "),
    iterations.map(({ reward }) => reward?.toFixed(2) ?? "-").join(", "),
  ]);
  const page = [
    "# E7: does a real model learn a task after a warm start on programs for other tasks?",
    "",
    ...preamble(judged, ran, [
      "SmolLM2-135M-Instruct on diamonds (2000 rows). Warm start: 60 programs for movie and wage, one epoch, every weight. Then 12 iterations of",
      "16 programs with LoRA of rank 16; 32 programs from scratch afterwards. All arms of a seed but `no warm start` begin with the same weights.",
      "Failed programs earn -10, and 0.1 for each marker. The runs count below with the warm starts.",
    ]),
    "",
    ...(finished.length > 0
      ? [...comparisonTable(judged), "", ...armTable(finished, [...MEASURES, ...COSTS]), ""]
      : []),
    ...table(["arm", "seed", "finished", "valid by iteration, %", "mean reward by iteration"], courses),
    "",
  ].join("\n");
  const arms = [...new Set(rows.map(({ arm }) => arm))];
  const series = arms.map((label, index) => ({ label, color: COLORS[index]! }));
  const panel = (title: string, y: string, value: (line: IterationFacts) => number | null) => ({
    ...{ title, x: "programs executed", y },
    points: rows.flatMap(({ arm, seed, facts }) =>
      facts.iterations.map((line) => ({ x: line.executed, y: value(line), series: arm, seed, step: line.iteration })),
    ),
  });
  const differences = (measure: Measure<Row>) =>
    differenceRows(judged.filter(({ measure: name }) => name === measure.name)).map((row) => ({
      ...row,
      label: row.label.split(": ")[1]!,
    }));
  return {
    page,
    plots: [
      {
        name: "E7",
        description: "Valid programs and mean reward by executed programs, with and without a warm start",
        spec: coursesPlot(
          [
            [
              panel("Valid programs", "share", ({ valid }) => valid),
              panel("Mean reward", "reward", ({ reward }) => reward),
            ],
          ],
          series,
        ),
      },
      {
        name: "E7-differences",
        description: "Differences between arms after training, by seed",
        spec: differencesPlot(
          MEASURES.slice(0, 2).map((measure) => ({
            ...{ title: measure.name, x: "difference", rows: differences(measure) },
          })),
        ),
      },
    ],
    raw: { runs: rows, comparisons: judged },
  };
}
