/** Samples in SQL: how they are chosen, stored and counted. */
import type { Database, Parameters } from "./database.ts";
import { StoreError } from "./errors.ts";
import { toBlob } from "./rows.ts";
import type { Counts, NewSample } from "./types.ts";

/** A sample with its result and grade; `sampleOf` reads its rows. */
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

/** What SELECTED needs. */
export const selection = ({ purpose = "training", since = 0, until = Number.MAX_SAFE_INTEGER }: Selection) => ({
  purpose,
  since,
  until,
});

/** @throws StoreError `conflict` if nothing could train on it or execute it */
export function insertSample(database: Database, sample: NewSample, at: number): void {
  if (sample.responseTokens.length !== sample.behaviourLogProbs.length)
    throw new StoreError("conflict", `sample ${sample.id}: responseTokens and behaviourLogProbs differ in length`);
  if (sample.state === "queued" && sample.instrumented === undefined)
    throw new StoreError("conflict", `sample ${sample.id}: queued without an instrumented program`);
  database.change(
    `INSERT INTO samples (id, purpose, iteration, lineage, task, kind, previous, prompt_group, prompt_tokens, response_tokens,
       behaviour_log_probs, solution, plan, program, instrumented, inserted_markers, instrumenter, execution_seed, state,
       created_at, finished_at)
     VALUES (:id, :purpose, :iteration, :lineage, :task, :kind, :previous, :group, :promptTokens, :responseTokens,
       :behaviourLogProbs, :solution, :plan, :program, :instrumented, :insertedMarkers, :instrumenter, :executionSeed, :state,
       :at, :finishedAt)`,
    {
      id: sample.id,
      purpose: sample.purpose,
      iteration: sample.iteration,
      lineage: sample.lineage,
      task: sample.task,
      kind: sample.kind,
      previous: sample.previous ?? null,
      group: sample.group ?? null,
      promptTokens: toBlob(sample.promptTokens),
      responseTokens: toBlob(sample.responseTokens),
      behaviourLogProbs: toBlob(sample.behaviourLogProbs),
      solution: sample.solution,
      plan: sample.plan,
      program: sample.program ?? null,
      instrumented: sample.instrumented ?? null,
      insertedMarkers: JSON.stringify(sample.insertedMarkers),
      instrumenter: sample.instrumenter,
      executionSeed: sample.executionSeed,
      state: sample.state,
      at,
      finishedAt: sample.state === "notExecuted" ? at : null,
    },
  );
}

export function countSamples(database: Database, where: string, parameters: Parameters): Counts {
  const row = database.get(
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
  );
  return Object.fromEntries(
    Object.entries(row ?? {}).map(([name, value]) => [name, Number(value)]),
  ) as unknown as Counts;
}
