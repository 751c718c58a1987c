import type { Leaderboard } from "./mlebench-tasks.ts";

/** Where a score stands among the teams of the competition; a score earns the best medal that it reaches, and only that. */
export interface Rank {
  goldMedal: boolean;
  silverMedal: boolean;
  bronzeMedal: boolean;
  anyMedal: boolean;
  /** Strictly better than the median. */
  aboveMedian: boolean;
}

/** @param score with five decimals, as it is reported; absent or NaN: no rank */
export function rankOf(score: number | undefined, leaderboard: Leaderboard): Rank {
  const { gold, silver, bronze, median, best, worst } = leaderboard;
  // The leaderboard is sorted, so its ends say which way is better.
  const lowerIsBetter = best < worst;
  const reaches = (threshold: number) =>
    score !== undefined && (lowerIsBetter ? score <= threshold : score >= threshold);
  const goldMedal = reaches(gold);
  const silverMedal = !goldMedal && reaches(silver);
  const bronzeMedal = !goldMedal && !silverMedal && reaches(bronze);
  const aboveMedian = score !== undefined && (lowerIsBetter ? score < median : score > median);
  return { goldMedal, silverMedal, bronzeMedal, anyMedal: goldMedal || silverMedal || bronzeMedal, aboveMedian };
}
