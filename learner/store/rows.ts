/** Rows of the tables as typed values, and back. */
import type { MarkerSeen } from "../../proto/execution.ts";
import type { Row } from "./database.ts";
import type {
  AcceptedResult,
  CheckpointRow,
  ExecutionState,
  Grade,
  IterationRow,
  OpenGroup,
  PreviousSolution,
  Sample,
} from "./types.ts";

/** The bytes of a token or log-prob array, as they lie in memory: little-endian wherever Node runs. */
export function toBlob(array: Int32Array | Float32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

// A copy: what SQLite hands out need not be aligned to four bytes.
const copied = (blob: unknown) => new Uint8Array(blob as Uint8Array).buffer;
const optional = <T>(value: unknown, as: (value: NonNullable<unknown>) => T): T | undefined =>
  value === null || value === undefined ? undefined : as(value);

/** Of `samples` joined with `results` and `grades`. */
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

/** Where the instrumenter wants an attempt's nonce. */
const NONCE_PLACEHOLDER = "@@NONCE@@";

/** A policy that writes the placeholder itself must not be handed the nonce: then no marker of that program counts. */
export function programOf(sample: Row, nonce: string): string {
  const instrumented = String(sample.instrumented);
  return String(sample.program).includes(NONCE_PLACEHOLDER)
    ? instrumented
    : instrumented.replaceAll(NONCE_PLACEHOLDER, nonce);
}

export function openGroupOf(row: Row): OpenGroup {
  return {
    id: String(row.id),
    iteration: Number(row.iteration),
    unfinished: Number(row.unfinished),
    finished: Number(row.finished),
  };
}

export function checkpointOf(row: Row): CheckpointRow {
  return {
    lineage: Number(row.lineage),
    iteration: Number(row.iteration),
    digest: String(row.digest),
    path: String(row.path),
    committedAt: Number(row.committed_at),
  };
}

export function iterationOf(row: Row): IterationRow {
  return {
    iteration: Number(row.iteration),
    lineage: Number(row.lineage),
    metrics: JSON.parse(String(row.metrics)) as Record<string, unknown>,
    committedAt: Number(row.committed_at),
  };
}

export function previousSolutionOf(row: Row): PreviousSolution {
  return {
    id: String(row.sample),
    task: String(row.task),
    plan: String(row.plan),
    program: String(row.program),
    terminalOutput: String(row.terminal_output),
    score: Number(row.score),
    durationSeconds: Number(row.duration_seconds),
  };
}
