/** Fixed bins, so that lines of a run can be added. A bin holds `edge[i] <= seconds < edge[i + 1]`; the last is open. */
const EDGES_SECONDS: readonly number[] = [
  0, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000,
];

/** Counts programs by the bin of their seconds. */
export function durationHistogram(launchedSeconds: readonly number[], trainedSeconds: readonly number[]) {
  const counts = (all: readonly number[]) => {
    const bins = EDGES_SECONDS.map(() => 0);
    for (const seconds of all)
      bins[
        Math.max(
          0,
          EDGES_SECONDS.findLastIndex((edge) => edge <= seconds),
        )
      ]! += 1;
    return bins;
  };
  return { edgesSeconds: [...EDGES_SECONDS], launched: counts(launchedSeconds), trained: counts(trainedSeconds) };
}
