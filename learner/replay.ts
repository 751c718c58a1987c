import type { Algorithm } from "../crds/trainingrun.ts";
import type { Collected } from "./context.ts";
import { openStore } from "./store/store.ts";

/**
 * Returns the batches that a run recorded, with results and rewards. Training on them in the same order, from the same starting policy,
 * with the same seed and thread count, gives the same weights bit for bit.
 *
 * @param path a `store.sqlite`; it is only read
 * @param collection of both runs: only Discard uses executions without a result
 * @throws StoreError if it cannot be used, or the iteration is missing
 */
export function recordedBatches(
  path: string,
  collection: Algorithm["collection"],
): { batch(iteration: number): Collected } {
  const store = openStore(path, { readOnly: true });
  return {
    batch(iteration) {
      const batch = store.samplesOf(iteration);
      if (batch.length === 0) {
        throw new Error(`--replay ${path}: iteration ${iteration} is not recorded; lower stopping.iterations`);
      }
      const left = { staleIds: [], staleWaited: 0, surplusIds: [], brokenIds: [], zeroSignalIds: [] };
      const abandoned = collection === "Discard" ? store.abandonedSeconds(iteration - 1) : [];
      return { batch, ...left, abandonedSeconds: abandoned };
    },
  };
}
