/** E6: one policy on three tasks against three policies on one each, at equally many samples in all. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { evaluationOf, type Figures, type RunSummary } from "../../learner/metrics/summary.ts";
import type { AskedRun } from "./execute.ts";
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
import { differencesPlot } from "./plots.ts";
import type { Experiment, Findings } from "./result.ts";
import { mean } from "./statistics.ts";
import { prepareSmallTask, type SmallTask, smallTask } from "./tasks.ts";

const TASKS: SmallTask[] = [
  { name: "diamonds", train: 2000, test: 1000 },
  { name: "movie", train: 2000, test: 1000 },
  { name: "wage", train: 2000, test: 999 },
];
/** Iterations of the policy on all tasks. Each policy on one task trains for its share of them. */
const ITERATIONS = 24;
const ONE = "one policy on three tasks";
const THREE = "three policies on one task each";
const ALL = "mean of the three tasks";

type Cell = AskedRun & { arm: string; tasks: SmallTask[] };

export const e6: Experiment = {
  question: "Does one policy on three tasks learn as much as three policies on one each?",
  async run(flags) {
    const given = gridFlags(flags, { budget: "1h" });
    for (const task of TASKS) await prepareSmallTask(task);
    const runs: Cell[] = [];
    for (let seed = 0; seed < given.seeds; seed++)
      runs.push(runOf(ONE, seed, TASKS), ...TASKS.map((task) => runOf(THREE, seed, [task])));
    const ran = await runGrid("E6", runs, given);
    const finished = [...ran.directories].flatMap(([{ arm, seed, tasks }, directory]) =>
      tasks.map((task): Row => ({ ...rowOf(task.name, directory), arm, seed })),
    );
    return findings([...finished, ...meansOf(finished)], ran);
  },
};

function runOf(arm: string, seed: number, tasks: SmallTask[]): Cell {
  const name = tasks.map((task) => task.name).join("-");
  const iterations = (ITERATIONS * tasks.length) / TASKS.length;
  return {
    ...{ arm, seed, tasks, kind: name, manifest: "E6.yaml", guessSeconds: 7 * iterations },
    folder: `E6/${name}-${seed}`,
    set: [`tasks=${JSON.stringify(tasks.map(smallTask))}`, `seed=${seed}`, `stopping.iterations=${iterations}`],
  };
}

/** Result of the programs after training. `score`: mean over the valid ones, from 0 to 1; null where none is. */
type Row = Finished & { valid: number; score: number | null };

const NOTHING: Finished["facts"] = { iterations: [], evaluation: null };

function rowOf(task: string, directory: string): Omit<Row, "arm" | "seed"> {
  const { evaluation } = JSON.parse(readFileSync(join(directory, "summary.json"), "utf8")) as RunSummary;
  const after: Figures | undefined = evaluationOf(evaluation, task).after;
  if (!after) throw new Error(`${directory} has no evaluation of ${task}`);
  return { world: task, facts: NOTHING, valid: after.validFraction, score: after.meanNormalizedScore };
}

/** Returns means over the tasks, for each seed and arm that has all tasks. */
function meansOf(rows: readonly Row[]): Row[] {
  const groups = Map.groupBy(rows, ({ arm, seed }) => JSON.stringify([arm, seed]));
  return [...groups.values()].flatMap((own): Row[] => {
    if (own.length < TASKS.length) return [];
    const scores = own.flatMap(({ score }) => score ?? []);
    const score = scores.length === own.length ? mean(scores) : null;
    return [{ ...own[0]!, world: ALL, valid: mean(own.map(({ valid }) => valid)), score }];
  });
}

function findings(rows: Row[], ran: Ran): Findings {
  const measures: Measure<Row>[] = [
    { name: "score of all, invalid ones 0, 0 to 1", digits: 3, of: ({ valid, score }) => valid * (score ?? 0) },
    { name: "mean score of the valid ones, 0 to 1", digits: 3, of: ({ score }) => score },
    { name: "valid", digits: 2, of: ({ valid }) => valid },
  ];
  const worlds = [ALL, ...TASKS.map(({ name }) => name)];
  const judged = comparisons(
    rows,
    worlds.flatMap((world) =>
      measures.map((measure) => ({ world, treated: ONE, control: THREE, measure, expected: "none" as const })),
    ),
  );
  const page = [
    "# E6: does one policy on three tasks learn as much as three policies on one each?",
    "",
    ...preamble(judged, ran, [
      `${TASKS.map(({ name, train }) => `${name} (${train} rows)`).join(", ")}. One run draws its prompts from all three, for ${ITERATIONS} iterations; three runs have one task`,
      `and ${ITERATIONS / TASKS.length} iterations each. Afterwards each policy writes 24 programs for each of its tasks, half of them improvements. The paper`,
      "trains one policy per task and predicts nothing about it.",
    ]),
    "",
    ...comparisonTable(judged),
    "",
    ...armTable(rows, measures),
    "",
  ].join("\n");
  const plotted = differenceRows(judged.filter(({ measure }) => measure === measures[0]!.name));
  return {
    page,
    plots: [
      {
        name: "E6",
        description: "One policy on three tasks less three policies on one each, with intervals over seeds",
        spec: differencesPlot([
          {
            title: "One policy on three tasks less three on one each",
            x: "difference in score of all programs",
            rows: plotted.map((row) => ({ ...row, label: row.label.split(":")[0]! })),
          },
        ]),
      },
    ],
    raw: { runs: rows, comparisons: judged },
  };
}
