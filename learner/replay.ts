import type { Collected } from "./progress.ts";
import { openStore } from "./store/store.ts";

/**
 * The batches that a run recorded, with their results and rewards, in the order in which they trained. Training on them
 * from the same starting policy, with the same seed and thread count, gives the same weights bit for bit.
 *
 * @param path a `store.sqlite`; it is only read
 * @throws StoreError if it cannot be used, or the iteration is not in it
 */
export function recordedBatches(path: string): { batch(iteration: number): Collected } {
  const store = openStore(path, { readOnly: true });
  return {
    batch(iteration) {
      const batch = store.samplesOf(iteration);
      if (batch.length === 0) {
        throw new Error(`--replay ${path}: iteration ${iteration} is not recorded; lower stopping.iterations`);
      }
      const abandonedSeconds = store
        .observedDurations({ since: iteration - 1, until: iteration - 1 })
        .filter(({ completed }) => !completed)
        .map(({ seconds }) => seconds);
      return { batch, staleIds: [], staleWaited: 0, surplusIds: [], brokenIds: [], abandonedSeconds };
    },
  };
}
