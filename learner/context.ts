import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import type { Sequence } from "./engine/index.ts";
import type { Logger } from "./log.ts";
import type { IterationMetrics } from "./metrics/iteration.ts";
import type { LearnerMetrics } from "./metrics/prometheus.ts";
import type { StatusBoard } from "./server/status.ts";
import type { Store } from "./store/store.ts";
import type { Sample } from "./store/types.ts";
import type { Tasks } from "./tasks/tasks.ts";

/** The objects that all parts of a run share. */
export interface RunContext {
  /** The run folder. */
  readonly directory: string;
  readonly spec: TrainingRunSpec;
  /** The tasks that programs solve, each with its grader. */
  readonly tasks: Tasks;
  /** Samples, executions and results, on disk. */
  readonly store: Store;
  /** How far the run is. */
  readonly progress: RunProgress;
  readonly status: StatusBoard;
  readonly metrics: LearnerMetrics;
  readonly log: Logger;
}

/** A run's newest finished iteration. */
interface RunProgress {
  state: Omit<TrainerState, "digest">;
  /** Metrics of every finished iteration, oldest first. */
  readonly lines: IterationMetrics[];
}

/** The state that a resumed run needs besides weights and optimiser state. */
export interface TrainerState {
  iteration: number;
  /** Seconds that the run has taken, without interruptions. */
  elapsedSeconds: number;
  /** Digest of the engine's state, see `Engine.digest`. */
  digest: string;
  /** `modelIdentity` of the frozen model, where adapters are trained. */
  base?: string;
}

/** The batch of one iteration, and the samples that were left out of it. */
export interface Collected {
  batch: Sample[];
  /** Samples left out for good: older than `algorithm.maxStaleness` under `stalenessPolicy: Drop`. */
  staleIds: string[];
  /** Executions that a complete batch waited for, so that none exceeds `maxStaleness` (`stalenessPolicy: Wait`). */
  staleWaited: number;
  /** Samples left out for good: finished beyond batchSize under `collection: Discard`. */
  surplusIds: string[];
  /** Samples left out for good: too much of their group was lost to compare them with. */
  brokenIds: string[];
  /** Samples left out for good: their group taught nothing, under `zeroSignal: Resample`. */
  zeroSignalIds: string[];
  /** How many seconds each execution had run that `collection: Discard` threw away. */
  abandonedSeconds: number[];
}

/** The data of a warm start that is not over. */
export interface WarmStartData {
  training: Sequence[];
  heldOut: Sequence[];
  digest: string;
  /** Examples that are left out: of too many tokens, or equal to an earlier one. */
  tooLong: number;
  repeated: number;
}
