/** Metrics of texts: word overlap (tweet-sentiment-extraction), and lists of items separated by blanks. */
import { pythonSplit } from "./python-text.ts";
import { mean } from "./sums.ts";

const wordsOf = (text: string) => new Set(pythonSplit(text.toLowerCase()));

/** Returns the first row in which neither text has a word, so that its overlap would be 0 / 0; -1 if there is none. */
export function firstWordless(truth: readonly string[], predicted: readonly string[]): number {
  return truth.findIndex((text, row) => pythonSplit(text).length === 0 && pythonSplit(predicted[row]!).length === 0);
}

/** Mean Jaccard index of the sets of lower-case words in a row. NaN if a row has no word at all. */
export function wordJaccard(truth: readonly string[], predicted: readonly string[]): number {
  const overlap = (a: Set<string>, b: Set<string>) => a.intersection(b).size / a.union(b).size;
  return mean(Float64Array.from(truth, (text, row) => overlap(wordsOf(text), wordsOf(predicted[row]!))));
}

/**
 * Mean average precision at k. A repeated item does not count; a row without relevant items has 0.
 * @param truth relevant items in any order @param predicted the most likely item first
 */
export function meanAveragePrecision(truth: readonly string[], predicted: readonly string[], k: number): number {
  return mean(
    Float64Array.from(truth, (items, row) => averagePrecision(new Set(pythonSplit(items)), predicted[row]!, k)),
  );
}

function averagePrecision(relevant: ReadonlySet<string>, predicted: string, k: number): number {
  if (relevant.size === 0) return 0;
  const found = new Set<string>();
  let sum = 0;
  for (const [place, item] of pythonSplit(predicted).slice(0, k).entries())
    if (relevant.has(item) && !found.has(item)) {
      found.add(item);
      sum += found.size / (place + 1);
    }
  return sum / Math.min(relevant.size, k);
}
