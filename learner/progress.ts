import type { TrainerState } from "./checkpoints.ts";
import type { IterationMetrics } from "./metrics/iteration.ts";
import type { Sample } from "./store/types.ts";

/** How far a run is: its newest finished iteration. */
export interface RunProgress {
  state: Omit<TrainerState, "digest">;
  /** Lines of metrics of the iterations that the weights have behind them. */
  readonly lines: IterationMetrics[];
}

/** What one iteration trains on. */
export interface Collected {
  batch: Sample[];
  /** Left out for good: older than `algorithm.maxStaleness` under `stalenessPolicy: Drop`. */
  staleIds: string[];
  /** Executions that a full batch waited for, so that none is trained on past `maxStaleness` (`stalenessPolicy: Wait`). */
  staleWaited: number;
  /** Left out for good: finished beyond batchSize under `collection: Discard`. */
  surplusIds: string[];
  /** Left out for good: so many of their group were lost that there is nothing left to compare them with. */
  brokenIds: string[];
  /** How long each execution had run that `collection: Discard` threw away, seconds. */
  abandonedSeconds: number[];
}
