/** Fixed bins, so that the lines of a run can be added up. A bin holds `edge[i] <= seconds < edge[i + 1]`; the last is open. */
export const DURATION_EDGES_SECONDS: readonly number[] = [
  0, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000,
];

/** Counts of executed programs per bin. */
export interface DurationHistogram {
  edgesSeconds: number[];
  launched: number[];
  trained: number[];
}

export function emptyHistogram(): DurationHistogram {
  const zeros = () => DURATION_EDGES_SECONDS.map(() => 0);
  return { edgesSeconds: [...DURATION_EDGES_SECONDS], launched: zeros(), trained: zeros() };
}

export function addDuration(bins: number[], seconds: number): void {
  let bin = DURATION_EDGES_SECONDS.length - 1;
  while (bin > 0 && seconds < DURATION_EDGES_SECONDS[bin]!) bin -= 1;
  bins[bin]! += 1;
}
