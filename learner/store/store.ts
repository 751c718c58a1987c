/**
 * The learner's memory: samples, executions, results, iterations and checkpoints in one SQLite file (tables in
 * schema.ts). Everything else that a learner knows can be rebuilt from it and the checkpoint that it names.
 *
 *     const store = openStore(join(runFolder, "store.sqlite"), { leaseSeconds, leaseGraceSeconds, maxAttempts });
 *     const { lineage, iteration, checkpoint } = await store.beginLineage(digestIsRight);
 *     store.addSamples(samples);                        // the server leases them to actors
 *     store.events.on("finished", (id) => ...);         // -> grade -> store.setGrade(id, grade)
 *     const batch = store.nextBatch(B);                 // oldest dispatched first
 *     store.commitIteration({ iteration, sampleIds, metrics }, { digest, path });
 *
 * Calls are synchronous and each is one transaction, on disk when it returns. Failures are StoreErrors.
 */
import { EventEmitter } from "node:events";
import { inflateSync } from "node:zlib";
import { Database, type Parameters } from "./database.ts";
import { StoreError } from "./errors.ts";
import { Iterations } from "./iterations.ts";
import { Leases } from "./leases.ts";
import { openGroupOf, previousSolutionOf, sampleOf } from "./rows.ts";
import { AVAILABLE, countSamples, insertSample, SAMPLE, SELECTED, type Selection, selection } from "./samples.ts";
import type {
  CheckpointRow,
  Counts,
  Grade,
  IterationRecord,
  IterationRow,
  Lineage,
  NewSample,
  ObservedDuration,
  OpenGroup,
  PreviousSolution,
  Sample,
  StoreEvents,
} from "./types.ts";

/** `learner.maxDisruptions` of a run that does not say: a program that ends its own node comes to an end. */
export const MAX_DISRUPTIONS = 100;

export interface StoreOptions {
  /** To look at a store that another process may be writing; takes nothing over. */
  readOnly?: boolean;
  leaseSeconds?: number;
  leaseGraceSeconds?: number;
  /** See LeaseOptions. [for ever] */
  longestSeconds?: number;
  maxAttempts?: number;
  maxDisruptions?: number;
  busySeconds?: number;
  maxBytes?: number;
  /** See DatabaseOptions. */
  checkFence?: () => void;
  /** Unix milliseconds. The default does not jump when the machine's clock is set. */
  now?: () => number;
}

export function openStore(path: string, options: StoreOptions = {}): Store {
  return new Store(path, options);
}

export class Store {
  readonly path: string;
  readonly events = new EventEmitter<StoreEvents>();
  /** The server's side: who runs what. */
  readonly leases: Leases;
  #database: Database;
  #iterations: Iterations;
  #now: () => number;

  constructor(path: string, options: StoreOptions) {
    this.path = path;
    this.#now = options.now ?? (() => performance.timeOrigin + performance.now());
    this.#database = new Database(path, options);
    this.#iterations = new Iterations(this.#database, () => this.#at());
    this.leases = new Leases(this.#database, {
      leaseSeconds: options.leaseSeconds ?? 60,
      leaseGraceSeconds: options.leaseGraceSeconds ?? 30,
      longestSeconds: options.longestSeconds ?? Number.POSITIVE_INFINITY,
      maxAttempts: options.maxAttempts ?? 3,
      maxDisruptions: options.maxDisruptions ?? MAX_DISRUPTIONS,
      now: this.#now,
      events: this.events,
    });
  }

  /** Calls of this store in one commit; one that throws does not disturb the others. @returns what each has thrown */
  together(works: readonly (() => void)[]): unknown[] {
    return this.#database.together(works);
  }

  // Policy versions: Iterations says what each does ----------------------------------------------------------------

  beginLineage(isValid: (checkpoint: CheckpointRow) => boolean | Promise<boolean>): Promise<Lineage> {
    return this.#iterations.beginLineage(isValid);
  }

  continueLineage(): number {
    return this.#iterations.continueLineage();
  }

  get lineage(): number {
    return this.#iterations.lineage;
  }

  checkpoints(): CheckpointRow[] {
    return this.#iterations.checkpoints();
  }

  keepCheckpoints(n: number): string[] {
    return this.#iterations.keepCheckpoints(n);
  }

  commitIteration(record: IterationRecord, checkpoint?: { digest: string; path: string }): void {
    this.#iterations.commitIteration(record, checkpoint);
  }

  commitCheckpoint(checkpoint: { iteration: number; digest: string; path: string }): void {
    this.#iterations.commitCheckpoint(checkpoint);
  }

  iterationRows(): IterationRow[] {
    return this.#iterations.iterationRows();
  }

  // Samples -----------------------------------------------------------------------------------------------------

  /** Stores samples and queues their executions, in this order. */
  addSamples(samples: readonly NewSample[]): void {
    this.#database.write(() => {
      for (const sample of samples) insertSample(this.#database, sample, this.#at());
    });
    if (samples.some(({ state }) => state === "queued")) this.events.emit("queued");
  }

  counts(purpose = "training"): Counts {
    return countSamples(this.#database, "WHERE purpose = :purpose", { purpose });
  }

  /** Of all purposes together. */
  totals(): Counts {
    return countSamples(this.#database, "", {});
  }

  /** How many finished samples nextBatch could draw. */
  takeable(which: Selection = {}): number {
    return Number(this.#database.get(`SELECT count(*) AS n FROM samples s WHERE ${AVAILABLE}`, selection(which))?.n);
  }

  /** How many are queued or leased. */
  unfinished(which: Selection = {}): number {
    const sql = `SELECT count(*) AS n FROM samples s WHERE ${SELECTED} AND s.state IN ('queued', 'leased')`;
    return Number(this.#database.get(sql, selection(which))?.n);
  }

  /**
   * The `n` finished (or never executed), unused samples that were dispatched first; fewer if there are fewer. They
   * stay available until commitIteration uses them.
   */
  nextBatch(n: number, which: Selection = {}): Sample[] {
    return this.#samples(`${SAMPLE} WHERE ${AVAILABLE} ORDER BY s.sequence LIMIT :n`, { ...selection(which), n });
  }

  /** Groups of which a sample is queued, leased, or finished and unused, in the order of dispatch. */
  openGroups(which: Selection = {}): OpenGroup[] {
    return this.#database
      .all(
        `SELECT coalesce(s.prompt_group, s.id) AS id, s.iteration,
           count(*) FILTER (WHERE s.state IN ('queued', 'leased')) AS unfinished,
           count(*) FILTER (WHERE s.state IN ('finished', 'notExecuted')) AS finished
         FROM samples s WHERE ${SELECTED} AND s.state IN ('queued', 'leased', 'finished', 'notExecuted') AND s.used IS NULL
         GROUP BY 1 ORDER BY min(s.sequence)`,
        selection(which),
      )
      .map(openGroupOf);
  }

  /** The finished, unused samples of the named groups, in the order of dispatch. */
  groupSamples(groups: readonly string[], which: Selection = {}): Sample[] {
    return this.#samples(
      `${SAMPLE} WHERE ${AVAILABLE} AND coalesce(s.prompt_group, s.id) IN (SELECT value FROM json_each(:groups))
       ORDER BY s.sequence`,
      { ...selection(which), groups: JSON.stringify(groups) },
    );
  }

  /** Finished or notExecuted samples that no grade was written for, e.g. because the learner stopped in between. */
  ungraded(purpose?: string): Sample[] {
    return this.#samples(
      `${SAMPLE} WHERE s.state IN ('finished', 'notExecuted') AND g.sample IS NULL
         AND (:purpose IS NULL OR s.purpose = :purpose) ORDER BY s.sequence`,
      { purpose: purpose ?? null },
    );
  }

  /** All samples of a purpose in order of dispatch, whatever became of them. */
  samplesFor(purpose: string): Sample[] {
    return this.#samples(`${SAMPLE} WHERE s.purpose = :purpose ORDER BY s.sequence`, { purpose });
  }

  /** What `iteration` trained on, in the order of its batch. */
  samplesOf(iteration: number): Sample[] {
    return this.#samples(
      `${SAMPLE} JOIN batches b ON b.sample = s.id
       JOIN iterations i ON i.lineage = b.lineage AND i.iteration = b.iteration
       WHERE b.iteration = :iteration AND i.superseded_by IS NULL ORDER BY b.position`,
      { iteration },
    );
  }

  /** In the order of `ids`. @throws StoreError `conflict` if one is not there */
  samples(ids: readonly string[]): Sample[] {
    return ids.map((id) => {
      const [sample] = this.#samples(`${SAMPLE} WHERE s.id = :id`, { id });
      if (sample === undefined) throw new StoreError("conflict", `sample ${id} is not in the store`);
      return sample;
    });
  }

  /** The submission of a sample's program, as it was written; undefined if there was none or it is not kept any more. */
  submission(id: string): Buffer | undefined {
    const row = this.#database.get(
      `SELECT deflated, submission_bytes FROM submissions JOIN results USING (execution) WHERE execution = :id`,
      { id },
    );
    if (row === undefined) return undefined;
    // zlib takes no 0 for a limit.
    return inflateSync(row.deflated as Uint8Array, { maxOutputLength: Math.max(1, Number(row.submission_bytes)) });
  }

  /** May be called again: the newest grade stands. */
  setGrade(id: string, grade: Grade): void {
    this.#database.write(() => {
      this.#database.change(
        `INSERT OR REPLACE INTO grades (sample, valid, score, reward, reason, family, guards, clamped, capped)
         VALUES (:id, :valid, :score, :reward, :reason, :family, :guards, :clamped, :capped)`,
        {
          id,
          valid: Number(grade.valid),
          score: grade.score ?? null,
          reward: grade.reward,
          reason: grade.reason,
          family: grade.family ?? null,
          guards: JSON.stringify(grade.guards ?? []),
          clamped: Number(grade.clamped ?? false),
          capped: Number(grade.capped ?? false),
        },
      );
    });
  }

  /** The valid sample with the best score so far, over all purposes unless one is named; the first of equals. */
  bestSample(task: string, direction: "Higher" | "Lower", purpose?: string): Sample | undefined {
    const order = direction === "Higher" ? "DESC" : "ASC";
    return this.#samples(
      `${SAMPLE} WHERE s.task = :task AND g.valid AND g.score IS NOT NULL AND (:purpose IS NULL OR s.purpose = :purpose)
       ORDER BY g.score ${order}, s.sequence LIMIT 1`,
      { task, purpose: purpose ?? null },
    )[0];
  }

  /** Running times of executions, for Completion weights and histograms. */
  observedDurations(which: Selection = {}): ObservedDuration[] {
    return this.#database
      .all(
        `SELECT s.id, coalesce(r.duration_seconds, max(a.elapsed_seconds)) AS seconds, r.execution IS NOT NULL AS completed
         FROM samples s LEFT JOIN results r ON r.execution = s.id LEFT JOIN attempts a ON a.execution = s.id
         WHERE ${SELECTED} AND s.state IN ('finished', 'lost', 'discarded')
         GROUP BY s.id HAVING seconds IS NOT NULL ORDER BY s.sequence`,
        selection(which),
      )
      .map((row) => ({ id: String(row.id), seconds: Number(row.seconds), completed: Boolean(row.completed) }));
  }

  // Previous solutions ------------------------------------------------------------------------------------------

  /** `iteration`: the one that trains on it; a restart that goes back before it takes it out again. */
  addPreviousSolution({ id, iteration }: { id: string; iteration: number }): void {
    this.#database.write(() => {
      this.#database.change(
        "INSERT INTO previous_solutions (sample, task, iteration) SELECT id, task, :iteration FROM samples WHERE id = :id ON CONFLICT DO NOTHING",
        { id, iteration },
      );
    });
  }

  /** The newest `limit`, newest first. */
  previousSolutions(task: string, limit: number): PreviousSolution[] {
    return this.#database
      .all(
        `SELECT p.sample, p.task, s.plan, s.program, r.terminal_output, r.duration_seconds, g.score
         FROM previous_solutions p JOIN samples s ON s.id = p.sample JOIN results r ON r.execution = p.sample
         JOIN grades g ON g.sample = p.sample
         WHERE p.task = :task ORDER BY p.position DESC LIMIT :limit`,
        { task, limit },
      )
      .map(previousSolutionOf);
  }

  // Giving up ---------------------------------------------------------------------------------------------------

  /** `collection: Discard`: throws away everything of `purpose` that has not finished. @returns how many */
  discardUnfinished(reason: string, purpose = "training"): number {
    return this.#discard("purpose = :purpose", { purpose }, reason);
  }

  /** The same for named executions; those that have finished stay. @returns how many were thrown away */
  abandon(ids: readonly string[], reason: string): number {
    return this.#discard("id IN (SELECT value FROM json_each(:ids))", { ids: JSON.stringify(ids) }, reason);
  }

  #discard(which: string, parameters: Parameters, reason: string): number {
    const { executions, held } = this.#database.write(() => {
      const executions = this.#database
        .all(
          `UPDATE samples SET state = 'discarded', finished_at = :at WHERE state IN ('queued', 'leased') AND ${which} RETURNING id`,
          { ...parameters, at: this.#at() },
        )
        .map((row) => String(row.id));
      return { executions, held: this.leases.markRevoked(executions, reason) };
    });
    this.leases.revoked(held, reason);
    return executions.length;
  }

  /** @throws StoreError `fenced` if a newer learner has taken the store over. Every write checks it, too */
  checkFence(): void {
    this.#database.checkFence();
  }

  close(): void {
    this.events.removeAllListeners();
    this.#database.close();
  }

  #samples(sql: string, parameters: Parameters): Sample[] {
    return this.#database.all(sql, parameters).map(sampleOf);
  }

  #at(): number {
    return Math.round(this.#now());
  }
}
