/** Tables of arms and of comparisons between them, for the experiments' pages. */

import { duration } from "./budget.ts";
import type { RunFacts } from "./facts.ts";
import type { Ran } from "./grid.ts";
import type { DifferenceRow } from "./plots.ts";
import {
  type Difference,
  estimate,
  LEAST_SEEDS,
  pairedDifference,
  show,
  type Verdict,
  verdictOf,
} from "./statistics.ts";

/** A finished run with its arm and world. */
export interface Finished {
  /** Arms are compared within a world, for example a task. */
  world: string;
  arm: string;
  seed: number;
  facts: RunFacts;
}

export interface Measure<R extends Finished = Finished> {
  name: string;
  digits: number;
  /** null: this run has no value. */
  of: (run: R) => number | null;
}

/** The direction of a difference according to the paper. */
export type Expected = "higher" | "lower" | "none";

export interface Question<R extends Finished = Finished> {
  world: string;
  treated: string;
  control: string;
  measure: Measure<R>;
  expected: Expected;
}

const STANDINGS = ["against", "neither", "open", "for"] as const;
/** A comparison's relation to the paper's claim. */
type Standing = (typeof STANDINGS)[number];

interface Comparison extends Omit<Question, "measure"> {
  measure: string;
  digits: number;
  difference: Difference;
  verdict: Verdict;
  standing: Standing;
}

/** Answers each question from the seeds that both arms have; contradictions to the paper come first. */
export function comparisons<R extends Finished>(runs: readonly R[], questions: readonly Question<R>[]): Comparison[] {
  return questions
    .map(({ measure, ...question }): Comparison => {
      const of = (arm: string) => valuesOf(runs, question.world, arm, measure);
      const difference = pairedDifference(of(question.treated), of(question.control));
      const verdict = verdictOf(difference);
      const { name, digits } = measure;
      return {
        ...question,
        measure: name,
        digits,
        difference,
        verdict,
        standing: standingOf(verdict, question.expected),
      };
    })
    .sort((a, b) => STANDINGS.indexOf(a.standing) - STANDINGS.indexOf(b.standing));
}

export function standingOf(verdict: Verdict, expected: Expected): Standing {
  if (verdict === "too few seeds") return "open";
  if (verdict === "no difference seen") return expected === "none" ? "for" : "neither";
  return verdict === expected ? "for" : "against";
}

/** Returns values by seed. */
function valuesOf<R extends Finished>(
  runs: readonly R[],
  world: string,
  arm: string,
  measure: Measure<R>,
): Map<number, number> {
  const own = runs.filter((run) => run.world === world && run.arm === arm);
  return new Map(
    own.flatMap((run) => {
      const value = measure.of(run);
      return value === null || !Number.isFinite(value) ? [] : [[run.seed, value] as const];
    }),
  );
}

export function table(columns: string[], rows: string[][]): string[] {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  return [line(columns), line(columns.map(() => "---")), ...rows.map(line)];
}

export function comparisonTable(all: readonly Comparison[]): string[] {
  const list = all.filter(({ difference }) => difference.n > 0);
  return table(
    [
      "the paper's expectation",
      "world",
      "what is compared",
      "measure",
      "difference, 95 % interval",
      "seeds",
      "verdict",
    ],
    list.map((c) => [
      `${c.standing} (expects ${c.expected})`,
      c.world,
      `${c.treated} less ${c.control}`,
      c.measure,
      show(c.difference, c.digits),
      String(c.difference.n),
      c.verdict,
    ]),
  );
}

/** Returns a row for each world and arm, in order: means over seeds with their intervals. */
export function armTable<R extends Finished>(runs: readonly R[], measures: readonly Measure<R>[]): string[] {
  const groups = Map.groupBy(runs, ({ world, arm }) => JSON.stringify([world, arm]));
  return table(
    ["world", "arm", "seeds", ...measures.map(({ name }) => name)],
    [...groups.values()].map((group) => {
      const { world, arm } = group[0]!;
      const cells = measures.map((measure) =>
        show(estimate([...valuesOf(runs, world, arm, measure).values()]), measure.digits),
      );
      return [world, arm, String(group.length), ...cells];
    }),
  );
}

/** Describes the data behind the page; an incomplete set is mentioned first. */
export function preamble(list: readonly Comparison[], ran: Ran, about: string[]): string[] {
  const seeds = list.map(({ difference }) => difference.n).filter((n) => n > 0);
  const [least, most] = [Math.min(...seeds), Math.max(...seeds)];
  const none = list.length - seeds.length;
  const rest = least === most ? `${most}` : `${least} to ${most}`;
  const partial =
    ran.missing > 0 || none > 0 || least < LEAST_SEEDS
      ? [
          `**Partial: the comparisons rest on ${seeds.length > 0 ? rest : "no"} ${rest === "1" ? "seed" : "seeds"}${none > 0 ? `, and ${none} of ${list.length} have no pair of runs yet` : ""}.** Fewer than`,
          `${LEAST_SEEDS} are shown without a claim.`,
          "",
        ]
      : [];
  return [
    ...partial,
    ...about,
    `${ran.directories.size} runs, ${duration(ran.seconds)} in all. ${seeds.length} comparisons, paired by seed, bootstrap 95 % intervals over seeds, none`,
    "corrected for their number.",
  ];
}

/** Returns one row per comparison, for a plot. */
export function differenceRows(list: readonly Comparison[]): (DifferenceRow & { measure: string; control: string })[] {
  const some = list.filter(({ difference }) => difference.n > 0);
  return some.map(({ world, treated, control, measure, difference }) => ({
    measure,
    control,
    label: `${world}: ${treated} - ${control}`,
    ...{ each: difference.each, mean: difference.mean, interval: difference.interval },
  }));
}
