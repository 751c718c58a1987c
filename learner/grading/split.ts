/** Splits the rows of the answers into a public part, which makes rewards, and a private part, which no reward, prompt or choice sees. */
import type { Task } from "../../crds/trainingrun.ts";
import { permutation, uniforms } from "../engine/index.ts";
import { ofRows } from "./ids.ts";
import { type MetricName, metrics, type Values } from "./metrics.ts";
import type { Rules } from "./rules.ts";

/** Rows of the answers, in ascending order. Each row is in one part. */
export interface Parts {
  public: Uint32Array;
  private: Uint32Array;
}

/** The private part's share of the rows, 0 for none; or every other row, which is what `rewardSplit: Half` means. */
export type Split = number | "EveryOther";

/** A score on fewer rows says next to nothing. */
const MIN_PART_ROWS = 10;

/** The same for every run: a policy that goes on in a second run must not have been rewarded by the second run's private rows. */
const SEED = 0;

/** Returns the split of a task's settings. `rewardSplit: Half` is the older spelling of `privateShare: 0.5` and keeps its own rows. */
export function splitOf({ rewardSplit, privateShare }: Partial<Pick<Task, "rewardSplit" | "privateShare">>): Split {
  return rewardSplit === "Half" ? "EveryOther" : (privateShare ?? 0);
}

/**
 * Returns the parts; undefined if there is no private part.
 *
 * Rows are drawn at random, by a seed that all runs share. With a metric of classes each class has the same share of its rows in the private
 * part, to within a row, and a class of two rows or more is in both parts.
 *
 * @param truth [target][row] @param score the metric
 * @throws Error in one line if a part has too few rows, or none that the metric has a score for, with the remedy
 */
export function partsOf(
  split: Split,
  metric: MetricName,
  truth: readonly Values[],
  score: Rules["score"],
): Parts | undefined {
  if (split === 0) return undefined;
  const rows = truth[0]!.length;
  // A test set is shuffled, so that this split is fair, too.
  if (split === "EveryOther") return rowsBy(rows, (row) => row % 2 === 1);
  const next = uniforms(SEED, "private part");
  const strata = isOfClasses(metric) ? classesOf(truth) : new Uint32Array(rows);
  const order = permutation(rows, next).sort((a, b) => strata[a]! - strata[b]!);
  const isPrivate = new Uint8Array(rows);
  for (const [place, row] of order.entries())
    isPrivate[row] = Math.floor((place + 1) * split + 0.5) - Math.floor(place * split + 0.5);
  keepInBoth(order, strata, isPrivate);
  const parts = rowsBy(rows, (row) => isPrivate[row] === 1);
  for (const [name, part] of Object.entries(parts)) {
    const best = part.length < MIN_PART_ROWS ? 0 : score(ofRows(truth, part), ofRows(truth, part));
    const problem =
      part.length < MIN_PART_ROWS
        ? `fewer than ${MIN_PART_ROWS}`
        : `on which ${metric} is undefined: their answers are all alike, or a class is missing`;
    if (part.length < MIN_PART_ROWS || (typeof best === "number" && !Number.isFinite(best)))
      throw new Error(
        `privateShare ${split} leaves ${part.length} of ${rows} rows in the ${name} part, ${problem}; ` +
          "give more answers, or set privateShare to 0",
      );
  }
  return parts;
}

/** Returns whether the answers of this metric are classes: both parts then need rows of each class. */
function isOfClasses(metric: MetricName): boolean {
  const { input, probabilities = false } = metrics[metric];
  return probabilities || metric === "RocAuc" || input === "labels" || input === "binary" || input === "integers";
}

/** Returns the number of each row's class [row]: rows with the same answers in all targets have the same class. */
function classesOf(truth: readonly Values[]): Uint32Array {
  const classes = new Uint32Array(truth[0]!.length);
  for (const column of truth) {
    const known = new Map<number, Map<number | string, number>>();
    let count = 0;
    for (let row = 0; row < classes.length; row++) {
      const among = known.get(classes[row]!) ?? new Map<number | string, number>();
      known.set(classes[row]!, among);
      if (!among.has(column[row]!)) among.set(column[row]!, count++);
      classes[row] = among.get(column[row]!)!;
    }
  }
  return classes;
}

/** Moves a row of each class that one part lacks, if the class has two. @param order rows by class */
function keepInBoth(order: readonly number[], classes: Uint32Array, isPrivate: Uint8Array): void {
  for (let from = 0, to = 0; from < order.length; from = to) {
    let taken = 0;
    for (to = from; to < order.length && classes[order[to]!] === classes[order[from]!]; to++)
      taken += isPrivate[order[to]!]!;
    if (to - from > 1 && (taken === 0 || taken === to - from)) isPrivate[order[from]!] = taken === 0 ? 1 : 0;
  }
}

function rowsBy(rows: number, isPrivate: (row: number) => boolean): Parts {
  const all = Array.from({ length: rows }, (_, row) => row);
  return {
    public: Uint32Array.from(all.filter((row) => !isPrivate(row))),
    private: Uint32Array.from(all.filter(isPrivate)),
  };
}
