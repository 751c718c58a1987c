/** Samples in SQL: selecting, storing, reading and counting. */
import type { MarkerSeen } from "../../proto/execution.ts";
import { columnOf, type Database, type Row } from "./database.ts";
import { StoreError } from "./errors.ts";
import type { AcceptedResult, Counts, Grade, NewSample, Sample } from "./types.ts";

/** A sample with its result and grade; `sampleOf` reads the rows. */
export const SAMPLE = `SELECT s.*, r.*, g.* FROM samples s
  LEFT JOIN results r ON r.execution = s.id LEFT JOIN grades g ON g.sample = s.id`;

/** Columns that are read unchanged. */
const SAMPLE_FIELDS = [
  ...([
    "id",
    "sequence",
    "purpose",
    "iteration",
    "lineage",
    "task",
    "kind",
    "previous",
    "depth",
    "previousStep",
  ] as const),
  ...([
    "solution",
    "plan",
    "program",
    "instrumented",
    "instrumenter",
    "executionSeed",
    "state",
    "attempts",
    "createdAt",
  ] as const),
  ...(["finishedAt", "usedIteration"] as const),
];
const RESULT_FIELDS = [
  ...(["actor", "attempt", "outcome", "exitStatus", "signal", "durationSeconds", "cpuSeconds"] as const),
  ...(["queueSeconds", "peakMemoryBytes", "forgedMarkers", "imitatedMarkers", "terminalOutput"] as const),
  ...(["outputBytes", "submissionBytes", "submissionSha256", "submissionRefused", "detail"] as const),
  ...(["isolationLevel"] as const),
];

/** Selects samples of `purpose` whose policies are of the iterations `since` to `until`, both included. */
export interface Selection {
  purpose?: string;
  since?: number;
  until?: number;
}

export const SELECTED = "s.purpose = :purpose AND s.iteration BETWEEN :since AND :until";

/** Samples that training can use. */
export const AVAILABLE = `${SELECTED} AND s.state IN ('finished', 'notExecuted') AND s.used IS NULL`;

/** Returns the parameters of SELECTED. */
export const selection = ({ purpose = "training", since = 0, until = Number.MAX_SAFE_INTEGER }: Selection) => {
  return { purpose, since, until };
};

/** @throws StoreError `conflict` if the sample can be neither trained on nor executed */
export function insertSample(database: Database, sample: NewSample, at: number): void {
  if (sample.responseTokens.length !== sample.behaviourLogProbs.length)
    throw new StoreError("conflict", `sample ${sample.id}: responseTokens and behaviourLogProbs differ in length`);
  if (sample.state === "queued" && sample.instrumented === undefined)
    throw new StoreError("conflict", `sample ${sample.id}: queued without an instrumented program`);
  const { group, insertedMarkers, promptTokens, responseTokens, behaviourLogProbs, ...fields } = sample;
  database.insert("samples", {
    ...fields,
    promptGroup: group,
    insertedMarkers: JSON.stringify(insertedMarkers),
    promptTokens: toBlob(promptTokens),
    responseTokens: toBlob(responseTokens),
    behaviourLogProbs: toBlob(behaviourLogProbs),
    createdAt: at,
    finishedAt: sample.state === "notExecuted" ? at : undefined,
    ungraded: true,
  });
}

/** Returns the bytes of a token or log-prob array as they are in memory: little-endian on every platform of Node. */
function toBlob(array: Int32Array | Float32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

// Copied, because SQLite's arrays need not be aligned to four bytes.
const copied = (blob: unknown) => new Uint8Array(blob as Uint8Array).buffer;
const optional = <T>(value: unknown, as: (value: NonNullable<unknown>) => T): T | undefined =>
  value === null || value === undefined ? undefined : as(value);

/** Returns a function that reads fields from a row with their names in snake case; NULL becomes undefined. */
function reader<T, F extends keyof T & string>(fields: readonly F[]) {
  const columns = fields.map((field) => [field, columnOf(field)]);
  return (row: Row) =>
    Object.fromEntries(columns.map(([field, name]) => [field, row[name] ?? undefined])) as Pick<T, F>;
}
const sampleFields = reader<Sample, (typeof SAMPLE_FIELDS)[number]>(SAMPLE_FIELDS);
const resultFields = reader<AcceptedResult, (typeof RESULT_FIELDS)[number]>(RESULT_FIELDS);
const gradeFields = reader<Grade, "score" | "reward" | "reason" | "family">(["score", "reward", "reason", "family"]);

/** Reads a row of SAMPLE. */
export const sampleOf = (row: Row): Sample => ({
  ...sampleFields(row),
  group: optional(row.prompt_group, String),
  promptTokens: new Int32Array(copied(row.prompt_tokens)),
  responseTokens: new Int32Array(copied(row.response_tokens)),
  truncated: optional(row.truncated, Boolean),
  behaviourLogProbs: new Float32Array(copied(row.behaviour_log_probs)),
  insertedMarkers: JSON.parse(String(row.inserted_markers)) as string[],
  result: row.outcome === null ? undefined : resultOf(row),
  grade: row.reward === null ? undefined : gradeOf(row),
});

const resultOf = (row: Row): AcceptedResult => ({
  ...resultFields(row),
  markers: JSON.parse(String(row.markers)) as MarkerSeen[],
});

const gradeOf = (row: Row): Grade => ({
  ...gradeFields(row),
  valid: Boolean(row.valid),
  // A read-only store of version 2 lacks these columns.
  guards: JSON.parse(String(row.guards ?? "[]")) as string[],
  clamped: Boolean(row.clamped),
  capped: Boolean(row.capped),
});

/** Returns the samples of `purpose`, or of all purposes, by state. */
export function countSamples(database: Database, purpose?: string): Counts {
  const completed = "state IN ('finished', 'notExecuted')";
  const count = (condition: string) => `coalesce(sum(samples) FILTER (WHERE ${condition}), 0)`;
  return database.known<Counts>(
    `SELECT ${count("state = 'queued'")} AS queued, ${count("state = 'leased'")} AS running,
       ${count(`${completed} AND used = ''`)} AS completedUnconsumed, ${count(completed)} AS completed,
       ${count("used = 'trained'")} AS consumed, ${count("used = 'dropped'")} AS dropped,
       ${count("state = 'lost'")} AS lost, ${count("state = 'discarded'")} AS discarded,
       coalesce(sum(retries), 0) AS retried
     FROM tallies ${purpose === undefined ? "" : "WHERE purpose = :purpose"}`,
    purpose === undefined ? {} : { purpose },
  );
}
