/**
 * Types of the store. Times are Unix milliseconds (`...At`), durations seconds, sizes bytes. An execution belongs to exactly one sample and
 * has the sample's id.
 */
import type { Outcome, Result } from "../../proto/execution.ts";

/**
 * | state       | meaning                                                                 | next                          |
 * | ----------- | ----------------------------------------------------------------------- | ----------------------------- |
 * | queued      | waits to be leased                                                            | leased, finished [1] [2], discarded |
 * | leased      | its newest attempt runs somewhere                                       | finished, queued, lost, discarded |
 * | finished    | a result was accepted                                                   | final                         |
 * | notExecuted | the solution holds nothing that can run; finished from the start        | final                         |
 * | lost        | `maxAttempts` attempts were lost, or `maxDisruptions` disrupted; takes no part in training | finished [2], queued [3] |
 * | discarded   | thrown away before it finished (`collection: Discard`, an abandoned run) | final                         |
 *
 * [1] An attempt whose lease expired still counts while no newer one was made.
 * [2] It became known later that the program itself caused the loss of the attempt (`Leases.settle`).
 * [3] It became known later that an attempt ended because its actor was taken away (`Leases.disrupted`).
 */
export type ExecutionState = "queued" | "leased" | "finished" | "notExecuted" | "lost" | "discarded";

/** A solution as the policy wrote it, with everything that training needs. */
export interface NewSample {
  /** Unique in the store and never reused. */
  id: string;
  /** Its place in the order of dispatch, from 1, possibly with gaps. Default: after all others. */
  sequence?: number;
  /** `training`, or the name of an evaluation, e.g. `evaluation-before`. Counts and batches never mix purposes. */
  purpose: string;
  /** With `lineage`: the version of the policy that wrote the sample. */
  iteration: number;
  lineage: number;
  task: string;
  kind: "scratch" | "improve" | "debug";
  /** The sample that the `improve` or `debug` prompt shows. */
  previous?: string;
  /** Debug prompts in a row that led to the sample; 0 or absent: none. */
  depth?: number;
  /** How far the program that a `debug` prompt shows came: a step of `tasks[].failureRewards`. */
  previousStep?: string;
  /** Shared by the samples of one prompt; absent for a single sample. */
  group?: string;
  promptTokens: Int32Array;
  /** Ends with the end-of-sequence token if the policy wrote one. */
  responseTokens: Int32Array;
  /** The response was cut at `model.maxResponseTokens`. Absent: an older longrun wrote the sample. */
  truncated?: boolean;
  /** float32 [response length] */
  behaviourLogProbs: Float32Array;
  solution: string;
  plan: string;
  program?: string;
  /** The program with markers, `@@NONCE@@` in place of an attempt's nonce. Needed unless `notExecuted`. */
  instrumented?: string;
  /** Names of the markers that the instrumented program can print. */
  insertedMarkers: string[];
  /** The method that inserted the markers: `StaticPolicy`, `Syntax` or `None`. */
  instrumenter: string;
  /** Seed of the program's interpreter and numpy, below 2^32. */
  executionSeed: number;
  state: "queued" | "notExecuted";
}

/** A result as reported by an actor. */
export interface ReportedResult extends Result {
  /** Never `lost`: a lost attempt is repeated and leaves no result. */
  outcome: Exclude<Outcome, "lost">;
  /** First and last part of the output; bytes that are not UTF-8 are replaced. */
  terminalOutput: string;
  /** Size of the uncompressed submission; absent if there is none. */
  submissionBytes?: number;
  submissionSha256?: string;
  /** Why an existing submission was not read, e.g. `symbolic link`; otherwise empty. */
  submissionRefused: string;
  isolationLevel: string;
}

export interface AcceptedResult extends ReportedResult {
  actor: string;
  attempt: number;
  /** Time between queueing and the start of the accepted attempt. */
  queueSeconds: number;
}

/** A score on the private part of the answers. It is no field of a sample, so that what reads samples cannot use it. */
export interface PrivateScore {
  /** In the task's own unit. */
  score?: number;
  /** `valid`, or why there is no score. */
  reason: string;
}

export interface Grade {
  valid: boolean;
  /** In the task's own unit, by the public part of the answers; absent for an invalid submission. */
  score?: number;
  reward: number;
  /** The reason for this reward, e.g. `valid`, `timedOut`, `noCodeBlock`, `missing column id`. */
  reason: string;
  /** Kind of model in the program's text. */
  family?: string;
  /** Guards that flagged a valid submission (`grading/guards.ts`). */
  guards?: readonly string[];
  /** The reward was raised to the grader's `rewardFloor`. */
  clamped?: boolean;
  /** A guard lowered the reward to the task's `guardedRewardCap`. */
  capped?: boolean;
}

export interface Sample extends Omit<NewSample, "state"> {
  sequence: number;
  state: ExecutionState;
  attempts: number;
  createdAt: number;
  finishedAt?: number;
  result?: AcceptedResult;
  grade?: Grade;
  /** The iteration that trained on the sample or dropped it; reset when a restart goes back before that iteration. */
  usedIteration?: number;
}

/** What became of a sample. The last five are null where there is no result or grade. */
export interface SampleOutcome extends Pick<Sample, "id" | "purpose" | "task" | "kind" | "state" | "createdAt"> {
  previous: string | null;
  depth: number | null;
  finishedAt: number | null;
  hasProgram: boolean;
  durationSeconds: number | null;
  valid: boolean | null;
  score: number | null;
  reason: string | null;
  family: string | null;
}

/** The samples of one prompt that can be trained on now or later. A sample without a group forms its own. */
export interface OpenGroup {
  id: string;
  iteration: number;
  unfinished: number;
  /** Samples that are finished or notExecuted; lost and discarded ones are not counted. */
  finished: number;
}

/** Number of samples by state: `running` are leased, `completed` finished or notExecuted. */
export interface Counts {
  queued: number;
  running: number;
  /** Samples in no batch yet, which nextBatch can draw. */
  completedUnconsumed: number;
  completed: number;
  consumed: number;
  /** Finished samples that are not trained on, e.g. for staleness. */
  dropped: number;
  lost: number;
  discarded: number;
  /** Attempts after the first of their execution, including disrupted ones. */
  retried: number;
}

export interface CheckpointRow {
  lineage: number;
  iteration: number;
  /** SHA-256 of the weights, from Engine.save. */
  digest: string;
  path: string;
  committedAt: number;
}

export interface Lineage {
  lineage: number;
  /** The weights' newest iteration: 0, or the checkpoint's. The next one is `iteration + 1`. */
  iteration: number;
  /** Absent if the run starts from its initial policy. */
  checkpoint?: CheckpointRow;
  /** Number of samples that iterations after the checkpoint had used, and that can be trained on again. */
  unconsumed: number;
}

export interface IterationRecord {
  /** Starts at 1; one more than the last committed iteration. */
  iteration: number;
  /** The batch in its order, for a replay. */
  sampleIds: string[];
  /** Finished samples that are never trained on, e.g. for staleness. */
  droppedIds?: string[];
  metrics: Record<string, unknown>;
}

export interface IterationRow extends Pick<IterationRecord, "iteration" | "metrics"> {
  lineage: number;
  committedAt: number;
}

/** `id`: the sample's id. */
export interface PreviousSolution extends Pick<Sample, "id" | "task" | "plan"> {
  program: string;
  terminalOutput: string;
  score: number;
  durationSeconds: number;
}

/** One attempt at an execution. */
export interface AttemptKey {
  execution: string;
  number: number;
  /** Decimal number that increases over the whole store. */
  fence: string;
}

export interface LeasedExecution extends AttemptKey {
  task: string;
  /** 32 hexadecimal digits, unique to this attempt. */
  nonce: string;
  program: string;
  executionSeed: number;
}

export type Acceptance = "accepted" | "duplicate" | "revoked" | "unknown";

export interface HeldAttempt extends AttemptKey {
  actor: string;
}

/** The store's events, emitted after the commit. */
export interface StoreEvents {
  /** Executions can be leased: new ones, or executions whose attempt was lost. */
  queued: [];
  /** Executions were leased, so fewer wait for an actor. */
  leased: [];
  finished: [sampleId: string];
  /** An attempt ended without a result; the execution is queued again, or lost. */
  attemptLost: [attempt: HeldAttempt, reason: string, executionState: "queued" | "lost"];
  /** The store cannot be used any more: fenced, disk full, or damaged. Ends waits. */
  failed: [error: Error];
  /** Running attempts no longer count. */
  revoked: [attempts: HeldAttempt[], reason: string];
}
