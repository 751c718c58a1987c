/** Stores policy versions: lineages, iterations with the samples they used, and the checkpoints that a restart goes back to. */
import type { Database } from "./database.ts";
import { StoreError } from "./errors.ts";
import type { CheckpointRow, IterationRecord, IterationRow, Lineage } from "./types.ts";

const CHECKPOINT = "SELECT lineage, iteration, digest, path, committed_at AS committedAt FROM checkpoints";

/** The part of the store that knows policy versions; `Store` adds samples and executions. */
export class PolicyVersions {
  protected readonly database: Database;
  readonly #now: () => number;
  #lineage: number | undefined;

  /** @param now Unix milliseconds */
  constructor(database: Database, now: () => number) {
    this.database = database;
    this.#now = now;
  }

  /** Unix milliseconds, a whole number. */
  protected at(): number {
    return Math.round(this.#now());
  }

  /** Starts a learner: frees the samples that iterations after the newest valid checkpoint had used, and begins a new lineage. */
  async beginLineage(isValid: (checkpoint: CheckpointRow) => boolean | Promise<boolean>): Promise<Lineage> {
    let checkpoint: CheckpointRow | undefined;
    for (const candidate of this.checkpoints()) if (!checkpoint && (await isValid(candidate))) checkpoint = candidate;
    const iteration = checkpoint?.iteration ?? 0;
    return this.database.write(() => {
      const { lineage } = this.database.get<{ lineage: number }>(
        `INSERT INTO lineages (from_lineage, from_iteration, started_at) VALUES (:from, :iteration, :at) RETURNING lineage`,
        { from: checkpoint?.lineage ?? null, iteration, at: this.at() },
      )!;
      const unconsumed = this.database.change(
        "UPDATE samples SET used = NULL, used_iteration = NULL WHERE used_iteration > :iteration",
        { iteration },
      );
      this.database.change("DELETE FROM previous_solutions WHERE iteration > :iteration", { iteration });
      this.database.change("DELETE FROM failed_solutions WHERE iteration > :iteration", { iteration });
      // Without a valid checkpoint, the starting policy's checkpoint is superseded too.
      for (const [table, after] of Object.entries({ iterations: iteration, checkpoints: checkpoint ? iteration : -1 }))
        this.database.change(
          `UPDATE ${table} SET superseded_by = :lineage WHERE iteration > :after AND superseded_by IS NULL`,
          { lineage, after },
        );
      this.#lineage = lineage;
      return { lineage, iteration, checkpoint, unconsumed };
    });
  }

  /** Continues the newest lineage, for a process that trains no more. @throws StoreError `conflict` */
  continueLineage(): number {
    const newest = this.database.get<{ lineage: number }>("SELECT lineage FROM lineages ORDER BY lineage DESC LIMIT 1");
    if (newest === undefined)
      throw new StoreError("conflict", `${this.database.path} has no lineage: no learner has begun this run`);
    this.#lineage = newest.lineage;
    return newest.lineage;
  }

  /** Returns the lineage that this process began. @throws StoreError `conflict` before beginLineage */
  get lineage(): number {
    if (this.#lineage === undefined) throw new StoreError("conflict", "no lineage: call beginLineage first");
    return this.#lineage;
  }

  /**
   * Returns the lineage whose training made the weights of a policy version; 0: they are the starting policy's. A start continues with the
   * weights of its checkpoint, so versions of different lineages can have the same weights.
   */
  originOf({ lineage, iteration }: { lineage: number; iteration: number }): number {
    const start = this.database.get<{ checkpoint: number | null }>(
      "SELECT from_lineage AS checkpoint FROM lineages WHERE lineage = :lineage AND from_iteration = :iteration",
      { lineage, iteration },
    );
    if (start === undefined) return lineage;
    return start.checkpoint === null ? 0 : this.originOf({ lineage: start.checkpoint, iteration });
  }

  /** Returns the lineage that ran an iteration of a lineage's past: itself, or the one whose checkpoint it went on from. */
  ownerOf({ lineage, iteration }: { lineage: number; iteration: number }): number {
    const start = this.database.get<{ checkpoint: number | null; iteration: number }>(
      "SELECT from_lineage AS checkpoint, from_iteration AS iteration FROM lineages WHERE lineage = :lineage",
      { lineage },
    );
    if (start === undefined || start.checkpoint === null || iteration > start.iteration) return lineage;
    return this.ownerOf({ lineage: start.checkpoint, iteration });
  }

  /** Adds a step of the warm start. */
  addWarmStep(step: number, metrics: Record<string, unknown>): void {
    this.database.write(() =>
      this.database.change("INSERT INTO warm_steps VALUES (:step, :metrics, :at)", {
        step,
        metrics: JSON.stringify(metrics),
        at: this.at(),
      }),
    );
  }

  /** Forgets the steps of the warm start after a step: they are taken again. */
  dropWarmSteps(after: number): void {
    this.database.write(() => this.database.change("DELETE FROM warm_steps WHERE step > :after", { after }));
  }

  /** Returns the steps of the warm start, oldest first; none in a store of an earlier version. */
  warmSteps(): Record<string, unknown>[] {
    const found = this.database.get("SELECT 1 FROM sqlite_schema WHERE name = 'warm_steps'");
    if (found === undefined) return [];
    const rows = this.database.all<{ metrics: string }>("SELECT metrics FROM warm_steps ORDER BY step");
    return rows.map(({ metrics }) => JSON.parse(metrics) as Record<string, unknown>);
  }

  /** Returns the checkpoints that a restart can go back to, newest first. */
  checkpoints(): CheckpointRow[] {
    return this.database.all<CheckpointRow>(
      `${CHECKPOINT} WHERE superseded_by IS NULL AND NOT deleted ORDER BY iteration DESC, lineage DESC`,
    );
  }

  /** Keeps the newest `n` of `checkpoints()`. @returns their paths; the files of all others can be removed */
  keepCheckpoints(n: number): string[] {
    const all = this.checkpoints();
    this.database.write(() => {
      for (const { lineage, iteration } of all.slice(n))
        this.database.change("UPDATE checkpoints SET deleted = 1 WHERE lineage = :lineage AND iteration = :iteration", {
          lineage,
          iteration,
        });
    });
    return all.slice(0, n).map(({ path }) => path);
  }

  /**
   * Ends an iteration: stores its metrics and samples together, or nothing.
   * @throws StoreError `conflict` if it is not the iteration after the last one, or a sample was used before
   */
  commitIteration(record: IterationRecord): void {
    const { lineage } = this;
    const { iteration, sampleIds, droppedIds = [], metrics } = record;
    this.database.write(() => {
      const last = this.#lastIteration();
      if (iteration !== last + 1)
        throw new StoreError("conflict", `iteration ${iteration} cannot be committed: the last one was ${last}`);
      const version = { lineage, iteration };
      this.database.insert("iterations", { ...version, metrics: JSON.stringify(metrics), committedAt: this.at() });
      for (const [position, sample] of sampleIds.entries()) {
        this.#use(sample, "trained", iteration);
        this.database.insert("batches", { ...version, position, sample });
      }
      for (const id of droppedIds) this.#use(id, "dropped", iteration);
    });
  }

  /** Records a checkpoint on disk: of the newest iteration, or of the starting policy (0). */
  commitCheckpoint({ iteration, ...files }: { iteration: number; digest: string; path: string }): void {
    this.database.write(() => {
      const last = this.#lastIteration();
      if (iteration !== last)
        throw new StoreError("conflict", `a checkpoint of iteration ${iteration}: the weights are at ${last}`);
      this.#commitCheckpoint(iteration, files);
    });
  }

  #lastIteration(): number {
    const row = this.database.get<{ last: number }>(
      `SELECT coalesce((SELECT max(iteration) FROM iterations WHERE lineage = :lineage),
         (SELECT from_iteration FROM lineages WHERE lineage = :lineage)) AS last`,
      { lineage: this.lineage },
    );
    return row!.last;
  }

  #use(id: string, use: "trained" | "dropped", iteration: number): void {
    const changed = this.database.change(
      `UPDATE samples SET used = :use, used_iteration = :iteration
       WHERE id = :id AND used IS NULL AND state IN ('finished', 'notExecuted')`,
      { id, use, iteration },
    );
    if (changed !== 1)
      throw new StoreError("conflict", `sample ${id} cannot be ${use}: it is not finished, or was used before`);
  }

  #commitCheckpoint(iteration: number, { digest, path }: { digest: string; path: string }): void {
    this.database.change(
      `INSERT INTO checkpoints (lineage, iteration, digest, path, committed_at) VALUES (:lineage, :iteration, :digest, :path, :at)
       ON CONFLICT DO UPDATE SET digest = :digest, path = :path, committed_at = :at, deleted = 0`,
      { lineage: this.lineage, iteration, digest, path, at: this.at() },
    );
    // The best submissions so far are always kept, so the best of the remaining ones are the best of all. Looking at all samples would take
    // longer with every iteration. The first of equal programs is enough: a policy can write the same program thousands of times.
    this.database.change(
      `WITH kept AS ( -- CROSS JOIN: submissions first, which are few
         SELECT s.id, s.sequence, s.task, s.purpose, s.iteration, s.used_iteration, iif(g.valid, g.score, NULL) AS score
         FROM submissions CROSS JOIN samples s ON s.id = execution LEFT JOIN grades g ON g.sample = s.id),
       ranked AS (
         SELECT *, row_number() OVER (PARTITION BY task ORDER BY score NULLS LAST, sequence) AS lowest,
           row_number() OVER (PARTITION BY task ORDER BY score DESC NULLS LAST, sequence) AS highest FROM kept)
       DELETE FROM submissions WHERE execution IN (
         SELECT id FROM ranked WHERE (used_iteration <= :iteration OR iteration < :iteration AND purpose GLOB 'evaluation-during-*')
           AND (score IS NULL OR lowest > 1 AND highest > 1))`,
      { iteration },
    );
  }

  /** Returns the iterations that trained the weights, oldest first, without the ones that a restart dropped. */
  iterationRows(): IterationRow[] {
    const sql = `SELECT lineage, iteration, metrics, committed_at AS committedAt
      FROM iterations WHERE superseded_by IS NULL ORDER BY iteration`;
    const rows = this.database.all<Omit<IterationRow, "metrics"> & { metrics: string }>(sql);
    return rows.map((row) => ({ ...row, metrics: JSON.parse(row.metrics) as Record<string, unknown> }));
  }
}
