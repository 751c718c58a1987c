/**
 * Policy versions: lineages, iterations and checkpoints. What the weights have behind them, what each iteration used, and
 * what a restart goes back to.
 */
import type { Database } from "./database.ts";
import { StoreError } from "./errors.ts";
import { checkpointOf, iterationOf } from "./rows.ts";
import type { CheckpointRow, IterationRecord, IterationRow, Lineage } from "./types.ts";

export class Iterations {
  #database: Database;
  /** Unix milliseconds, a whole number. */
  #at: () => number;
  #lineage: number | undefined;

  constructor(database: Database, at: () => number) {
    this.#database = database;
    this.#at = at;
  }

  /**
   * A learner starts: finds the newest checkpoint that `isValid` accepts (the caller checks the files' digest), takes
   * back everything that later iterations had used, and begins a new lineage.
   */
  async beginLineage(isValid: (checkpoint: CheckpointRow) => boolean | Promise<boolean>): Promise<Lineage> {
    let checkpoint: CheckpointRow | undefined;
    for (const candidate of this.checkpoints()) {
      if (await isValid(candidate)) {
        checkpoint = candidate;
        break;
      }
    }
    const iteration = checkpoint?.iteration ?? 0;
    return this.#database.write(() => {
      const row = this.#database.get(
        `INSERT INTO lineages (from_lineage, from_iteration, started_at) VALUES (:from, :iteration, :at) RETURNING lineage`,
        { from: checkpoint?.lineage ?? null, iteration, at: this.#at() },
      );
      const lineage = Number(row?.lineage);
      const unconsumed = this.#database.change(
        "UPDATE samples SET used = NULL, used_iteration = NULL WHERE used_iteration > :iteration",
        { iteration },
      );
      this.#database.change("DELETE FROM previous_solutions WHERE iteration > :iteration", { iteration });
      for (const table of ["iterations", "checkpoints"]) {
        this.#database.change(
          `UPDATE ${table} SET superseded_by = :lineage WHERE iteration > :iteration AND superseded_by IS NULL`,
          { lineage, iteration },
        );
      }
      // Without a checkpoint not even the starting policy's stands.
      if (checkpoint === undefined)
        this.#database.change("UPDATE checkpoints SET superseded_by = :lineage WHERE superseded_by IS NULL", {
          lineage,
        });
      this.#lineage = lineage;
      return { lineage, iteration, checkpoint, unconsumed };
    });
  }

  /** For a process that trains nothing any more: the newest lineage stays as it is. @throws StoreError `conflict` */
  continueLineage(): number {
    const row = this.#database.get("SELECT max(lineage) AS lineage FROM lineages");
    if (row?.lineage === null || row?.lineage === undefined)
      throw new StoreError("conflict", `${this.#database.path} has no lineage: no learner has begun this run`);
    this.#lineage = Number(row.lineage);
    return this.#lineage;
  }

  /** The one begun here. @throws StoreError `conflict` before beginLineage */
  get lineage(): number {
    if (this.#lineage === undefined) throw new StoreError("conflict", "no lineage: call beginLineage first");
    return this.#lineage;
  }

  /** Those that a restart can go back to, newest first. */
  checkpoints(): CheckpointRow[] {
    return this.#database
      .all(
        "SELECT * FROM checkpoints WHERE superseded_by IS NULL AND NOT deleted ORDER BY iteration DESC, lineage DESC",
      )
      .map(checkpointOf);
  }

  /** Of the checkpoints that a restart can go back to, keeps the newest `n`. @returns their paths; other files may go */
  keepCheckpoints(n: number): string[] {
    const paths = this.checkpoints().map(({ path }) => path);
    const keep = paths.slice(0, n);
    this.#database.write(() => {
      for (const path of paths.slice(n))
        this.#database.change("UPDATE checkpoints SET deleted = 1 WHERE path = :path", { path });
    });
    return keep;
  }

  /**
   * An iteration is over: its metrics, what it trained on, what it left out and, if it was saved, its checkpoint become
   * part of the store together or not at all. Submissions that are not needed any more go.
   * @throws StoreError `conflict` if it is not the iteration after the last one, or a sample was used before
   */
  commitIteration(record: IterationRecord, checkpoint?: { digest: string; path: string }): void {
    const { lineage } = this;
    const { iteration, sampleIds, droppedIds = [], metrics } = record;
    this.#database.write(() => {
      const last = this.#lastIteration();
      if (iteration !== last + 1)
        throw new StoreError("conflict", `iteration ${iteration} cannot be committed: the last one was ${last}`);
      this.#database.change(
        "INSERT INTO iterations (lineage, iteration, metrics, committed_at) VALUES (:lineage, :iteration, :metrics, :at)",
        { lineage, iteration, metrics: JSON.stringify(metrics), at: this.#at() },
      );
      sampleIds.forEach((id, position) => {
        this.#use(id, "trained", iteration);
        this.#database.change("INSERT INTO batches VALUES (:lineage, :iteration, :position, :id)", {
          lineage,
          iteration,
          position,
          id,
        });
      });
      for (const id of droppedIds) this.#use(id, "dropped", iteration);
      if (checkpoint !== undefined) this.#commitCheckpoint(iteration, checkpoint);
    });
  }

  /** A checkpoint of the newest iteration, or of the starting policy (0), outside of commitIteration. */
  commitCheckpoint(checkpoint: { iteration: number; digest: string; path: string }): void {
    this.#database.write(() => {
      const last = this.#lastIteration();
      if (checkpoint.iteration !== last)
        throw new StoreError(
          "conflict",
          `a checkpoint of iteration ${checkpoint.iteration}: the weights are at ${last}`,
        );
      this.#commitCheckpoint(checkpoint.iteration, checkpoint);
    });
  }

  #lastIteration(): number {
    const row = this.#database.get(
      `SELECT coalesce((SELECT max(iteration) FROM iterations WHERE lineage = :lineage),
         (SELECT from_iteration FROM lineages WHERE lineage = :lineage)) AS last`,
      { lineage: this.lineage },
    );
    return Number(row?.last);
  }

  #use(id: string, use: "trained" | "dropped", iteration: number): void {
    const changed = this.#database.change(
      `UPDATE samples SET used = :use, used_iteration = :iteration
       WHERE id = :id AND used IS NULL AND state IN ('finished', 'notExecuted')`,
      { id, use, iteration },
    );
    if (changed !== 1)
      throw new StoreError("conflict", `sample ${id} cannot be ${use}: it is not finished, or was used before`);
  }

  #commitCheckpoint(iteration: number, { digest, path }: { digest: string; path: string }): void {
    this.#database.change(
      `INSERT INTO checkpoints (lineage, iteration, digest, path, committed_at) VALUES (:lineage, :iteration, :digest, :path, :at)
       ON CONFLICT DO UPDATE SET digest = :digest, path = :path, committed_at = :at, deleted = 0`,
      { lineage: this.lineage, iteration, digest, path, at: this.#at() },
    );
    this.#database.change(
      `DELETE FROM submissions WHERE execution IN (
         SELECT id FROM samples WHERE used_iteration <= :iteration AND id NOT IN (
           SELECT s.id FROM samples s JOIN grades g ON g.sample = s.id JOIN
             (SELECT task, min(score) AS lowest, max(score) AS highest FROM samples JOIN grades ON sample = id
              WHERE valid GROUP BY task) best ON best.task = s.task
           WHERE g.valid AND g.score IN (best.lowest, best.highest)))`,
      { iteration },
    );
  }

  /** Iterations that the weights have behind them, oldest first; those that a restart took back left out. */
  iterationRows(): IterationRow[] {
    return this.#database
      .all("SELECT * FROM iterations WHERE superseded_by IS NULL ORDER BY iteration")
      .map(iterationOf);
  }
}
