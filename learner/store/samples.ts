/** Samples in SQL: how they are chosen, stored, read and counted. */
import type { MarkerSeen } from "../../proto/execution.ts";
import type { Database, Parameters, Row } from "./database.ts";
import { StoreError } from "./errors.ts";
import type { AcceptedResult, Counts, ExecutionState, Grade, NewSample, Sample } from "./types.ts";

/** A sample with its result and grade; `sampleOf` reads the rows. */
export const SAMPLE = `SELECT s.*, r.*, g.* FROM samples s
  LEFT JOIN results r ON r.execution = s.id LEFT JOIN grades g ON g.sample = s.id`;

/** Which samples: of `purpose`, written by the policies of iterations `since` to `until`, both included. */
export interface Selection {
  purpose?: string;
  since?: number;
  until?: number;
}

export const SELECTED = "s.purpose = :purpose AND s.iteration BETWEEN :since AND :until";

/** What training can draw from. */
export const AVAILABLE = `${SELECTED} AND s.state IN ('finished', 'notExecuted') AND s.used IS NULL`;

/** The parameters of SELECTED. */
export const selection = ({ purpose = "training", since = 0, until = Number.MAX_SAFE_INTEGER }: Selection) => {
  return { purpose, since, until };
};

/** @throws StoreError `conflict` if nothing could train on it or execute it */
export function insertSample(database: Database, sample: NewSample, at: number): void {
  if (sample.responseTokens.length !== sample.behaviourLogProbs.length)
    throw new StoreError("conflict", `sample ${sample.id}: responseTokens and behaviourLogProbs differ in length`);
  if (sample.state === "queued" && sample.instrumented === undefined)
    throw new StoreError("conflict", `sample ${sample.id}: queued without an instrumented program`);
  database.change(
    `INSERT INTO samples (id, purpose, iteration, lineage, task, kind, previous, prompt_group, prompt_tokens, response_tokens,
       behaviour_log_probs, solution, plan, program, instrumented, inserted_markers, instrumenter, execution_seed, state,
       created_at, finished_at, truncated)
     VALUES (:id, :purpose, :iteration, :lineage, :task, :kind, :previous, :group, :promptTokens, :responseTokens,
       :behaviourLogProbs, :solution, :plan, :program, :instrumented, :insertedMarkers, :instrumenter, :executionSeed, :state,
       :at, :finishedAt, :truncated)`,
    {
      ...sample,
      previous: sample.previous ?? null,
      group: sample.group ?? null,
      promptTokens: toBlob(sample.promptTokens),
      responseTokens: toBlob(sample.responseTokens),
      behaviourLogProbs: toBlob(sample.behaviourLogProbs),
      program: sample.program ?? null,
      instrumented: sample.instrumented ?? null,
      insertedMarkers: JSON.stringify(sample.insertedMarkers),
      at,
      finishedAt: sample.state === "notExecuted" ? at : null,
      truncated: sample.truncated === undefined ? null : Number(sample.truncated),
    },
  );
}

/** The bytes of a token or log-prob array, as they lie in memory: little-endian wherever Node runs. */
function toBlob(array: Int32Array | Float32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

// A copy: what SQLite hands out need not be aligned to four bytes.
const copied = (blob: unknown) => new Uint8Array(blob as Uint8Array).buffer;
const optional = <T>(value: unknown, as: (value: NonNullable<unknown>) => T): T | undefined =>
  value === null || value === undefined ? undefined : as(value);

/** Reads a row of SAMPLE. */
export function sampleOf(row: Row): Sample {
  return {
    id: String(row.id),
    sequence: Number(row.sequence),
    purpose: String(row.purpose),
    iteration: Number(row.iteration),
    lineage: Number(row.lineage),
    task: String(row.task),
    kind: row.kind as Sample["kind"],
    previous: optional(row.previous, String),
    group: optional(row.prompt_group, String),
    promptTokens: new Int32Array(copied(row.prompt_tokens)),
    responseTokens: new Int32Array(copied(row.response_tokens)),
    truncated: optional(row.truncated, Boolean),
    behaviourLogProbs: new Float32Array(copied(row.behaviour_log_probs)),
    solution: String(row.solution),
    plan: String(row.plan),
    program: optional(row.program, String),
    instrumented: optional(row.instrumented, String),
    insertedMarkers: JSON.parse(String(row.inserted_markers)) as string[],
    instrumenter: String(row.instrumenter),
    executionSeed: Number(row.execution_seed),
    state: row.state as ExecutionState,
    attempts: Number(row.attempts),
    createdAt: Number(row.created_at),
    finishedAt: optional(row.finished_at, Number),
    result: row.outcome === null ? undefined : resultOf(row),
    grade: row.reward === null ? undefined : gradeOf(row),
    usedIteration: optional(row.used_iteration, Number),
  };
}

function resultOf(row: Row): AcceptedResult {
  return {
    actor: String(row.actor),
    attempt: Number(row.attempt),
    outcome: row.outcome as AcceptedResult["outcome"],
    exitStatus: Number(row.exit_status),
    signal: Number(row.signal),
    durationSeconds: Number(row.duration_seconds),
    cpuSeconds: Number(row.cpu_seconds),
    queueSeconds: Number(row.queue_seconds),
    peakMemoryBytes: Number(row.peak_memory_bytes),
    markers: JSON.parse(String(row.markers)) as MarkerSeen[],
    forgedMarkers: Number(row.forged_markers),
    imitatedMarkers: Number(row.imitated_markers),
    terminalOutput: String(row.terminal_output),
    outputBytes: Number(row.output_bytes),
    submissionBytes: optional(row.submission_bytes, Number),
    submissionSha256: optional(row.submission_sha256, String),
    submissionRefused: String(row.submission_refused),
    detail: String(row.detail),
    isolationLevel: String(row.isolation_level),
  };
}

function gradeOf(row: Row): Grade {
  return {
    valid: Boolean(row.valid),
    score: optional(row.score, Number),
    reward: Number(row.reward),
    reason: String(row.reason),
    family: optional(row.family, String),
    // A store of version 2 that is only read has none of these.
    guards: JSON.parse(String(row.guards ?? "[]")) as string[],
    clamped: Boolean(row.clamped),
    capped: Boolean(row.capped),
  };
}

export function countSamples(database: Database, where: string, parameters: Parameters): Counts {
  return database.get<Counts>(
    `SELECT
       count(*) FILTER (WHERE state = 'queued') AS queued,
       count(*) FILTER (WHERE state = 'leased') AS running,
       count(*) FILTER (WHERE state IN ('finished', 'notExecuted') AND used IS NULL) AS completedUnconsumed,
       count(*) FILTER (WHERE state IN ('finished', 'notExecuted')) AS completed,
       count(*) FILTER (WHERE used = 'trained') AS consumed,
       count(*) FILTER (WHERE used = 'dropped') AS dropped,
       count(*) FILTER (WHERE state = 'lost') AS lost,
       count(*) FILTER (WHERE state = 'discarded') AS discarded,
       coalesce(sum(max(attempts - 1, 0)), 0) AS retried
     FROM samples ${where}`,
    parameters,
  )!;
}
