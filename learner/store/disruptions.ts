/**
 * Attempts that ended because their actor was taken away: its pod was evicted or preempted, its node drained or lost,
 * or its run suspended. They do not count towards `maxAttempts`: a long program is disrupted more often than a short
 * one, and training would see too few long programs.
 */
import type { Database } from "./database.ts";

/** Reason of an attempt whose actor fell silent. */
export const NO_HEARTBEAT = "no heartbeat";
/** Reason of an attempt whose actor came back without it. */
export const NOT_HELD = "the actor does not hold it any more";
/** The reasons that a vanished actor leaves. */
const WITHOUT_A_WORD = [NO_HEARTBEAT, NOT_HELD];

/** So many actors that were taken away are remembered; the oldest are forgotten first. */
const REMEMBERED_ACTORS = 10_000;

/** Whether an execution may be tried again. */
const HAS_TRIES = `attempts - (SELECT count(*) FROM attempts WHERE execution = samples.id AND disrupted) < :maxAttempts
  AND (SELECT count(*) FROM attempts WHERE execution = samples.id AND disrupted) < :maxDisruptions`;

export class Disruptions {
  readonly #database: Database;
  readonly #limits: { maxAttempts: number; maxDisruptions: number };
  readonly #actors = new Set<string>();

  constructor(database: Database, { maxAttempts, maxDisruptions }: { maxAttempts: number; maxDisruptions: number }) {
    this.#database = database;
    this.#limits = { maxAttempts, maxDisruptions };
  }

  /** Within a transaction: `actor` was taken away. @returns whether a lost execution is queued again */
  note(actor: string): boolean {
    this.#actors.add(actor);
    for (const oldest of this.#actors) {
      if (this.#actors.size <= REMEMBERED_ACTORS) break;
      this.#actors.delete(oldest);
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

  /** Whether an attempt of `actor` that ended for this reason ended because the actor was taken away. */
  explain(actor: string, reason: string): boolean {
    return this.#actors.has(actor) && WITHOUT_A_WORD.includes(reason);
  }

  /** Within a transaction: an attempt was lost. @returns the new state of its execution */
  settleLoss(execution: string, at: number): "queued" | "lost" {
    return this.#database.get<{ state: "queued" | "lost" }>(
      `UPDATE samples SET state = iif(${HAS_TRIES}, 'queued', 'lost'), finished_at = iif(${HAS_TRIES}, NULL, :at)
       WHERE id = :execution RETURNING state`,
      { execution, at, ...this.#limits },
    )!.state;
  }

  /** Returns how many attempts were disrupted. */
  count(): number {
    return this.#database.get<{ n: number }>("SELECT count(*) AS n FROM attempts WHERE disrupted")!.n;
  }
}
