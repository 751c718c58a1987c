/**
 * Attempts in the database: their start, whether their results count, and their end. A disrupted attempt, whose actor was taken away (its
 * pod was evicted or preempted, its node drained or lost, its run suspended), does not count towards `maxAttempts`: a long program is
 * disrupted more often than a short one, and training would see too few long programs.
 */
import { randomBytes } from "node:crypto";
import type { Database, Row } from "./database.ts";
import type { Acceptance, AttemptKey, HeldAttempt, LeasedExecution, ReportedResult } from "./types.ts";

/** How an attempt ended without a result. */
export interface End {
  state: "expired" | "failed" | "revoked";
  reason: string;
  /** The sandbox ended while the program ran. */
  sandboxBroke?: boolean;
  /** The actor was taken away, so the attempt does not count. */
  disrupted?: boolean;
}

/** Placeholder of the instrumenter for an attempt's nonce. */
const NONCE_PLACEHOLDER = "@@NONCE@@";

/** The execution that was queued first. Without the index SQLite would read all finished executions. */
const NEXT = "FROM samples INDEXED BY samples_queued WHERE state = 'queued' ORDER BY sequence LIMIT 1";

/** Reason for an attempt whose actor stopped sending heartbeats. */
export const NO_HEARTBEAT = "no heartbeat";
/** Reason for an attempt that its actor no longer had when it reconnected. */
export const NOT_HELD = "the actor does not hold it any more";
/** Reasons for attempts of a vanished actor. */
const WITHOUT_A_WORD = [NO_HEARTBEAT, NOT_HELD];

/** How many disrupted actors are remembered; the oldest are forgotten first. */
const REMEMBERED_ACTORS = 10_000;

/** Whether an execution may be tried again. */
const HAS_TRIES = `attempts - (SELECT count(*) FROM attempts WHERE execution = samples.id AND disrupted) < :maxAttempts
  AND (SELECT count(*) FROM attempts WHERE execution = samples.id AND disrupted) < :maxDisruptions`;

export class Attempts {
  readonly #database: Database;
  readonly #limits: { maxAttempts: number; maxDisruptions: number };
  /** Actors that were taken away. */
  readonly #gone = new Set<string>();

  constructor(database: Database, { maxAttempts, maxDisruptions }: { maxAttempts: number; maxDisruptions: number }) {
    this.#database = database;
    this.#limits = { maxAttempts, maxDisruptions };
  }

  /** Returns the attempts that ran when the store was closed. `leasedAtMs`: Unix milliseconds. */
  running(): (HeldAttempt & { leasedAtMs: number })[] {
    return this.#database.all(
      `SELECT execution, number, CAST(fence AS TEXT) AS fence, actor, leased_at AS leasedAtMs
       FROM attempts WHERE state = 'running'`,
    );
  }

  /** Returns how many attempts of this execution were lost because their sandboxes ended under the program. */
  brokenSandboxes(execution: string): number {
    const sql = "SELECT count(*) AS times FROM attempts WHERE execution = :execution AND sandbox_broke";
    return this.#database.get<{ times: number }>(sql, { execution })!.times;
  }

  /** Returns the task of an execution and the markers that its program can print; undefined if unknown. */
  expectation(execution: string): { task: string; insertedMarkers: string[] } | undefined {
    const row = this.#database.get("SELECT task, inserted_markers FROM samples WHERE id = :execution", { execution });
    return row && { task: String(row.task), insertedMarkers: JSON.parse(String(row.inserted_markers)) as string[] };
  }

  leasedAtMs({ execution, number }: AttemptKey): number | undefined {
    const sql = "SELECT leased_at FROM attempts WHERE execution = :execution AND number = :number";
    return this.#database.get<{ leased_at: number }>(sql, { execution, number })?.leased_at;
  }

  hasQueued(): boolean {
    return this.#database.get(`SELECT 1 ${NEXT}`) !== undefined;
  }

  /** Within a transaction: starts an attempt at the execution that was queued first. @param atMs Unix milliseconds */
  begin(actor: string, atMs: number): LeasedExecution | undefined {
    const sample = this.#database.get(`SELECT id, task, attempts, execution_seed, program, instrumented ${NEXT}`);
    if (sample === undefined) return undefined;
    const execution = String(sample.id);
    const number = Number(sample.attempts) + 1;
    const nonce = randomBytes(16).toString("hex");
    const leased = "UPDATE samples SET state = 'leased', attempts = :number WHERE id = :execution";
    this.#database.change(leased, { execution, number });
    const row = this.#database.get(
      `INSERT INTO attempts (execution, number, actor, nonce, state, leased_at)
       VALUES (:execution, :number, :actor, :nonce, 'running', :at) RETURNING fence`,
      { execution, number, actor, nonce, at: atMs },
    );
    return {
      execution,
      number,
      fence: String(row?.fence),
      nonce,
      task: String(sample.task),
      program: programOf(sample, nonce),
      executionSeed: Number(sample.execution_seed),
    };
  }

  /** Returns the rows of the attempt and its execution, joined, if `actor` has the attempt. */
  find(actor: string, attempt: AttemptKey): Row | undefined {
    if (!/^\d{1,15}$/.test(attempt.fence)) return undefined;
    return this.#database.get(
      `SELECT a.state, a.number, s.attempts, s.state AS execution_state
       FROM attempts a JOIN samples s ON s.id = a.execution
       WHERE a.fence = :fence AND a.execution = :execution AND a.number = :number AND a.actor = :actor`,
      { fence: Number(attempt.fence), execution: attempt.execution, number: attempt.number, actor },
    );
  }

  /** Returns whether a result of this attempt from this actor would be accepted now. */
  judge(actor: string, attempt: AttemptKey): Acceptance {
    const row = this.find(actor, attempt);
    if (row === undefined) return "unknown";
    if (row.execution_state === "finished") return "duplicate";
    const open = row.execution_state === "leased" || row.execution_state === "queued";
    const counts = row.state === "running" || row.state === "expired";
    return open && counts && row.number === row.attempts ? "accepted" : "revoked";
  }

  /** Within a transaction: stores an attempt's result as its execution's. */
  finish(actor: string, attempt: AttemptKey, result: ReportedResult, at: number, deflated?: Uint8Array): void {
    const { execution, number } = attempt;
    const fence = Number(attempt.fence);
    this.#database.change("UPDATE attempts SET state = 'accepted', ended_at = :at WHERE fence = :fence", { at, fence });
    const finished = "UPDATE samples SET state = 'finished', finished_at = :at WHERE id = :execution";
    this.#database.change(finished, { at, execution });
    this.#database.change(
      `INSERT INTO results SELECT :execution, :number, :actor, :outcome, :exitStatus, :signal, :durationSeconds, :cpuSeconds,
         (a.leased_at - s.created_at) / 1000.0, :peakMemoryBytes, :markers, :forgedMarkers, :imitatedMarkers,
         :terminalOutput, :outputBytes, :submissionBytes, :submissionSha256, :submissionRefused, :detail, :isolationLevel
       FROM samples s JOIN attempts a ON a.execution = s.id AND a.number = :number WHERE s.id = :execution`,
      {
        submissionBytes: undefined,
        submissionSha256: undefined,
        ...result,
        execution,
        number,
        actor,
        markers: JSON.stringify(result.markers),
      },
    );
    if (deflated !== undefined) this.#database.insert("submissions", { execution, deflated });
  }

  /** Within a transaction: marks an ended attempt as running again. Its execution leaves the queue. */
  revive(attempt: AttemptKey): void {
    this.#database.change(
      "UPDATE attempts SET state = 'running', reason = NULL, ended_at = NULL, disrupted = 0 WHERE fence = :fence",
      { fence: Number(attempt.fence) },
    );
    const { execution } = attempt;
    this.#database.change("UPDATE samples SET state = 'leased' WHERE id = :execution", { execution });
  }

  /** Within a transaction: ends an attempt. @param elapsedSeconds how long its program had run, if known */
  end(
    attempt: AttemptKey,
    { state, reason, sandboxBroke = false, disrupted = false }: End,
    { elapsedSeconds, at }: { elapsedSeconds: number | undefined; at: number },
  ): void {
    this.#database.change(
      `UPDATE attempts SET state = :state, reason = :reason, elapsed_seconds = :elapsedSeconds, ended_at = :at,
         sandbox_broke = :sandboxBroke, disrupted = :disrupted WHERE fence = :fence`,
      { state, reason, sandboxBroke, disrupted, elapsedSeconds, at, fence: Number(attempt.fence) },
    );
  }

  /** Within a transaction: records that `actor` was taken away. @returns whether a lost execution is queued again */
  disrupted(actor: string): boolean {
    this.#gone.add(actor);
    for (const oldest of this.#gone) {
      if (this.#gone.size <= REMEMBERED_ACTORS) break;
      this.#gone.delete(oldest);
    }
    const executions = this.#database.all(
      `UPDATE attempts SET disrupted = 1 WHERE actor = :actor AND state IN ('expired', 'failed') AND NOT disrupted
         AND reason IN (SELECT value FROM json_each(:reasons)) RETURNING execution`,
      { actor, reasons: JSON.stringify(WITHOUT_A_WORD) },
    );
    const queued = executions.map(({ execution }) =>
      this.#database.change(
        `UPDATE samples SET state = 'queued', finished_at = NULL WHERE id = :execution AND state = 'lost' AND ${HAS_TRIES}`,
        { execution: String(execution), ...this.#limits },
      ),
    );
    return queued.some((changes) => changes > 0);
  }

  /** Returns whether an attempt of `actor` that ended for this reason was disrupted. */
  explains(actor: string, reason: string): boolean {
    return this.#gone.has(actor) && WITHOUT_A_WORD.includes(reason);
  }

  /** Within a transaction: handles a lost attempt. @returns the new state of its execution */
  settleLoss(execution: string, at: number): "queued" | "lost" {
    return this.#database.get<{ state: "queued" | "lost" }>(
      `UPDATE samples SET state = iif(${HAS_TRIES}, 'queued', 'lost'), finished_at = iif(${HAS_TRIES}, NULL, :at)
       WHERE id = :execution RETURNING state`,
      { execution, at, ...this.#limits },
    )!.state;
  }

  /** Returns how many attempts were disrupted. */
  disruptions(): number {
    return this.#database.known<{ n: number }>("SELECT count(*) AS n FROM attempts WHERE disrupted").n;
  }
}

/** Returns the program with the nonce. A program that contains the placeholder itself gets no nonce, so none of its markers counts. */
function programOf(sample: Row, nonce: string): string {
  const instrumented = String(sample.instrumented);
  return String(sample.program).includes(NONCE_PLACEHOLDER)
    ? instrumented
    : instrumented.replaceAll(NONCE_PLACEHOLDER, nonce);
}
