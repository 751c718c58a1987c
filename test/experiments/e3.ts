/** E3 (Table 4): do improve prompts help, if both policies write equally many programs? */

import type { AskedRun } from "./execute.ts";
import { readFacts } from "./facts.ts";
import { gridFlags, type Ran, runGrid } from "./grid.ts";
import { evaluatedBest, ladderRun, prepareLadder, WORLD } from "./ladder.ts";
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

const WITH = "RL";
const WITHOUT = "RL, no improve prompts";

export const e3: Experiment = {
  question: "Do improve prompts help?",
  async run(flags) {
    const given = gridFlags(flags, { budget: "1h" });
    await prepareLadder();
    const runs: (AskedRun & { arm: string })[] = [];
    for (let seed = 0; seed < given.seeds; seed++) runs.push(ladderRun(WITH, seed), ladderRun(WITHOUT, seed));
    const ran = await runGrid("E3", runs, given);
    const finished: Row[] = [];
    for (const [{ arm, seed }, directory] of ran.directories) {
      finished.push({ world: WORLD, arm, seed, facts: await readFacts(directory), best: evaluatedBest(directory) });
    }
    return findings(finished, ran);
  },
};

/** `best` program after training, on the hidden half. */
type Row = Finished & { best: number | null };

function findings(finished: Row[], ran: Ran): Findings {
  const measures: Measure<Row>[] = [
    { name: "best of 48, hidden half, 0 to 1", digits: 3, of: ({ best }) => best },
    {
      name: "mean score of the valid ones, 0 to 1",
      digits: 3,
      of: ({ facts: { evaluation } }) => evaluation?.score ?? null,
    },
    { name: "valid", digits: 2, of: ({ facts: { evaluation } }) => evaluation?.valid ?? null },
  ];
  const judged = comparisons(
    finished,
    measures.map((measure) => ({
      world: WORLD,
      treated: WITH,
      control: WITHOUT,
      measure,
      expected: "higher" as const,
    })),
  );
  const page = [
    "# E3: do improve prompts help?",
    "",
    ...preamble(judged, ran, [
      `${WORLD}. One policy trains with half of its prompts as improve prompts (RL), the other with none. Afterwards RL writes 24`,
      "programs from scratch and 24 improvements of them, the other policy 48 from scratch. The half of the test rows that makes rewards chooses",
      "the best.",
    ]),
    "",
    ...comparisonTable(judged),
    "",
    ...armTable(finished, measures),
    "",
  ].join("\n");
  const rows = differenceRows(judged).map((row) => ({ ...row, label: row.measure }));
  return {
    page,
    plots: [
      {
        name: "E3",
        description: "With improve prompts less without, with intervals over seeds",
        spec: differencesPlot([{ title: "With improve prompts less without", x: "difference", rows }]),
      },
    ],
    raw: { runs: finished, comparisons: judged },
  };
}
