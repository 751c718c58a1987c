/**
 * A run's memory: samples, executions, results, iterations and checkpoints in one SQLite file (tables in
 * schema.ts). A learner can rebuild everything else from this file and the checkpoint that it names.
 *
 *     const store = openStore(join(runFolder, "store.sqlite"), { leaseSeconds, leaseGraceSeconds, maxAttempts });
 *     const { lineage, iteration, checkpoint } = await store.beginLineage(digestIsRight);
 *     store.addSamples(samples);                        // the server leases them to actors
 *     store.events.on("finished", (id) => ...);         // -> grade -> store.setGrade(id, grade)
 *     const batch = store.nextBatch(B);                 // oldest dispatched first
 *     store.commitIteration({ iteration, sampleIds, metrics });
 *     store.commitCheckpoint({ iteration, digest, path });   // from here on a restart begins with it
 *
 * Every call is synchronous and one transaction, which is on disk when the call returns. Failures are StoreErrors.
 */
import { EventEmitter } from "node:events";
import { inflateSync } from "node:zlib";
import { Database, type DatabaseOptions, type Parameters } from "./database.ts";
import { StoreError } from "./errors.ts";
import { PolicyVersions } from "./iterations.ts";
import { LEASE_DEFAULTS, type LeaseOptions, Leases } from "./leases.ts";
import {
  AVAILABLE,
  countSamples,
  insertSample,
  SAMPLE,
  SELECTED,
  type Selection,
  sampleOf,
  selection,
} from "./samples.ts";
import type {
  Counts,
  Grade,
  NewSample,
  OpenGroup,
  PreviousSolution,
  PrivateScore,
  Sample,
  SampleOutcome,
  StoreEvents,
} from "./types.ts";

/** `readOnly` looks at a store that another process may be writing, and takes nothing over. */
export type StoreOptions = DatabaseOptions & Partial<Omit<LeaseOptions, "events">>;

export const openStore = (path: string, options: StoreOptions = {}): Store => new Store(path, options);

export class Store extends PolicyVersions {
  readonly path: string;
  readonly events = new EventEmitter<StoreEvents>();
  readonly leases: Leases;

  constructor(path: string, options: StoreOptions) {
    // This clock does not jump when the machine's is set.
    const { now = () => performance.timeOrigin + performance.now() } = options;
    const database = new Database(path, options);
    super(database, now);
    this.path = path;
    this.leases = new Leases(database, { ...LEASE_DEFAULTS, ...options, now, events: this.events });
  }

  /** Runs several calls of this store in one commit. @returns the error of each; a call that throws changes nothing */
  together(works: readonly (() => void)[]): unknown[] {
    return this.database.together(works);
  }

  /** Stores samples and queues their executions, in this order. */
  addSamples(samples: readonly NewSample[]): void {
    this.database.write(() => {
      for (const sample of samples) insertSample(this.database, sample, this.at());
    });
    if (samples.some(({ state }) => state === "queued")) this.leases.afterCommit(() => this.events.emit("queued"));
  }

  /** Returns the place in the order of dispatch that no sample has reached. */
  nextSequence(): number {
    return this.database.get<{ n: number }>("SELECT coalesce(max(sequence), 0) + 1 AS n FROM samples")!.n;
  }

  counts(purpose = "training"): Counts {
    return countSamples(this.database, purpose);
  }

  totals(): Counts {
    return countSamples(this.database);
  }

  takeable(which: Selection = {}): number {
    return this.#count(AVAILABLE, which);
  }

  unfinished(which: Selection = {}): number {
    return this.#count(`${SELECTED} AND s.state IN ('queued', 'leased') AND s.used IS NULL`, which);
  }

  /** Returns at most `n` finished or notExecuted, unused samples, oldest first. commitIteration uses them up. */
  nextBatch(n: number, which: Selection = {}): Sample[] {
    return this.#samples(`${SAMPLE} WHERE ${AVAILABLE} ORDER BY s.sequence LIMIT :n`, { ...selection(which), n });
  }

  /** Returns the groups with a sample that is queued, leased, or finished and unused, in the order of dispatch. */
  openGroups(which: Selection = {}): OpenGroup[] {
    return this.database.all<OpenGroup>(
      `SELECT coalesce(s.prompt_group, s.id) AS id, s.iteration,
         count(*) FILTER (WHERE s.state IN ('queued', 'leased')) AS unfinished,
         count(*) FILTER (WHERE s.state IN ('finished', 'notExecuted')) AS finished
       FROM samples s WHERE ${SELECTED} AND s.state IN ('queued', 'leased', 'finished', 'notExecuted') AND s.used IS NULL
       GROUP BY 1 ORDER BY min(s.sequence)`,
      selection(which),
    );
  }

  /** Returns the finished, unused samples of the named groups, in the order of dispatch. */
  groupSamples(groups: readonly string[], which: Selection = {}): Sample[] {
    return this.#samples(
      `${SAMPLE} WHERE ${AVAILABLE} AND coalesce(s.prompt_group, s.id) IN (SELECT value FROM json_each(:groups))
       ORDER BY s.sequence`,
      { ...selection(which), groups: JSON.stringify(groups) },
    );
  }

  /** Returns finished or notExecuted samples without a grade, e.g. because the learner stopped in between. */
  ungraded(): Sample[] {
    const sql = `${SAMPLE} WHERE s.ungraded AND s.state IN ('finished', 'notExecuted') ORDER BY s.sequence`;
    return this.#samples(sql, {});
  }

  samplesFor(purpose: string): Sample[] {
    return this.#samples(`${SAMPLE} WHERE s.purpose = :purpose ORDER BY s.sequence`, { purpose });
  }

  /** Returns the samples that `iteration` trained on, in the order of its batch. */
  samplesOf(iteration: number): Sample[] {
    return this.#samples(
      `${SAMPLE} JOIN batches b ON b.sample = s.id
       JOIN iterations i ON i.lineage = b.lineage AND i.iteration = b.iteration
       WHERE b.iteration = :iteration AND i.superseded_by IS NULL ORDER BY b.position`,
      { iteration },
    );
  }

  /** Returns the samples of every purpose in the order of dispatch; `failed`: only graded samples that are not valid. */
  allSamples({ failed = false } = {}): Sample[] {
    return this.#samples(`${SAMPLE} WHERE NOT :failed OR g.valid = 0 ORDER BY s.sequence`, { failed });
  }

  /** Returns what became of every sample, in the order of dispatch, without texts and tokens. */
  outcomes(): SampleOutcome[] {
    const depth = this.database.hasColumn("samples", "depth") ? "s.depth" : "NULL AS depth";
    const sql = `SELECT s.id, s.purpose, s.task, s.kind, s.previous, ${depth}, s.state, s.created_at AS createdAt,
        s.finished_at AS finishedAt, s.program IS NOT NULL AS hasProgram, r.duration_seconds AS durationSeconds,
        g.valid, g.score, g.reason, g.family
      FROM samples s LEFT JOIN results r ON r.execution = s.id LEFT JOIN grades g ON g.sample = s.id ORDER BY s.sequence`;
    return this.database.all<SampleOutcome>(sql).map((row) => ({
      ...row,
      hasProgram: Boolean(row.hasProgram),
      valid: row.valid === null ? null : Boolean(row.valid),
    }));
  }

  /** Returns the newest `n` samples that are graded and not valid, in the order of dispatch. */
  newestFailed(n: number): Sample[] {
    return this.#samples(`${SAMPLE} WHERE g.valid = 0 ORDER BY s.sequence DESC LIMIT :n`, { n }).reverse();
  }

  sample(id: string): Sample | undefined {
    return this.#samples(`${SAMPLE} WHERE s.id = :id`, { id })[0];
  }

  /** @throws StoreError `conflict` if a sample does not exist */
  samples(ids: readonly string[]): Sample[] {
    return ids.map((id) => {
      const sample = this.sample(id);
      if (sample === undefined) throw new StoreError("conflict", `sample ${id} is not in the store`);
      return sample;
    });
  }

  /** Returns the file that a sample's program wrote; undefined if there was none or it is not kept any more. */
  submission(id: string): Buffer | undefined {
    const row = this.database.get<{ deflated: Uint8Array; bytes: number }>(
      `SELECT deflated, submission_bytes AS bytes FROM submissions JOIN results USING (execution) WHERE execution = :id`,
      { id },
    );
    // zlib accepts no limit of 0.
    return row && inflateSync(row.deflated, { maxOutputLength: Math.max(1, row.bytes) });
  }

  /** Stores a grade, and the score on the private part of the answers, if there is one. If it is called again, the newest grade counts. */
  setGrade(id: string, grade: Grade, privateScore?: PrivateScore): void {
    const { valid, score, reward, reason, family, guards = [], clamped = false, capped = false } = grade;
    const row = { sample: id, valid, score, reward, reason, family, guards: JSON.stringify(guards), clamped, capped };
    this.database.write(() => {
      this.database.insert("grades", row, "OR REPLACE");
      if (privateScore) this.database.insert("private_scores", { sample: id, ...privateScore }, "OR REPLACE");
      this.database.change("UPDATE samples SET ungraded = NULL WHERE id = :id", { id });
    });
  }

  /**
   * For reports alone: returns a sample's score on the private part of the answers. Undefined if it is not valid or was graded without a
   * private part, or if the store, opened for reading, is of an earlier version.
   */
  privateScore(id: string): PrivateScore | undefined {
    if (!this.database.hasTable("private_scores")) return undefined;
    const row = this.database.get("SELECT score, reason FROM private_scores WHERE sample = :id", { id });
    return row && { ...(row.score !== null && { score: Number(row.score) }), reason: String(row.reason) };
  }

  /** For reports alone: returns the public score minus the private one of each valid sample of a task that has both. */
  gaps(task: string): number[] {
    const rows = this.database.all<{ gap: number }>(
      `SELECT g.score - p.score AS gap FROM private_scores p JOIN grades g USING (sample) JOIN samples s ON s.id = p.sample
       WHERE s.task = :task AND g.valid AND gap IS NOT NULL`,
      { task },
    );
    return rows.map(({ gap }) => gap);
  }

  /** Returns the valid sample with the best score, over all purposes; the first of equals. Its submission is always kept. */
  bestSample(task: string, direction: "Higher" | "Lower"): Sample | undefined {
    const best = this.database.get<{ id: string }>(
      `SELECT s.id FROM submissions CROSS JOIN samples s ON s.id = execution JOIN grades g ON g.sample = s.id
       WHERE s.task = :task AND g.valid AND g.score IS NOT NULL
       ORDER BY g.score ${direction === "Higher" ? "DESC" : "ASC"}, s.sequence LIMIT 1`,
      { task },
    );
    return best && this.sample(best.id);
  }

  /** Returns the seconds that each execution of a policy version for training had run when it was discarded or lost. */
  abandonedSeconds(version: number): number[] {
    const rows = this.database.all<{ seconds: number }>(
      `SELECT max(a.elapsed_seconds) AS seconds FROM samples s JOIN attempts a ON a.execution = s.id
       WHERE ${SELECTED} AND s.state IN ('lost', 'discarded') AND s.used IS NULL
         AND NOT EXISTS (SELECT * FROM results r WHERE r.execution = s.id)
       GROUP BY s.sequence HAVING seconds IS NOT NULL ORDER BY s.sequence`,
      selection({ since: version, until: version }),
    );
    return rows.map(({ seconds }) => seconds);
  }

  /** Returns the score of the sample that `id` was made from, or of its nearest ancestor with one; undefined for a draft. */
  scoreBefore(id: string): number | undefined {
    let found: { previous: string | null; valid: number | null; score: number | null } | undefined;
    const sql = `SELECT s.previous, g.valid, g.score FROM samples s LEFT JOIN grades g ON g.sample = s.id WHERE s.id = :id`;
    for (let at: string | null | undefined = id; at; at = found?.previous) {
      found = this.database.get(sql, { id: at });
      if (at !== id && found?.valid && found.score !== null) return found.score;
    }
    return undefined;
  }

  /** Returns the scores of a task's valid samples that an iteration of a lineage trained on, in the order of the batch. */
  batchScores(task: string, { lineage, iteration }: { lineage: number; iteration: number }): number[] {
    const rows = this.database.all<{ score: number }>(
      `SELECT g.score FROM batches b JOIN samples s ON s.id = b.sample JOIN grades g ON g.sample = b.sample
       WHERE b.lineage = :lineage AND b.iteration = :iteration AND s.task = :task AND g.valid AND g.score IS NOT NULL
       ORDER BY b.position`,
      { task, lineage, iteration },
    );
    return rows.map(({ score }) => score);
  }

  /** `iteration` trains on the sample; a restart that goes back before `iteration` removes the solution again. */
  addPreviousSolution({ id, iteration }: { id: string; iteration: number }): void {
    const sql = `INSERT INTO previous_solutions (sample, task, iteration)
      SELECT id, task, :iteration FROM samples WHERE id = :id ON CONFLICT DO NOTHING`;
    this.database.write(() => this.database.change(sql, { id, iteration }));
  }

  previousSolutions(task: string, limit: number): PreviousSolution[] {
    return this.database.all<PreviousSolution>(
      `SELECT p.sample AS id, p.task, s.plan, s.program, r.terminal_output AS terminalOutput, g.score,
         r.duration_seconds AS durationSeconds
       FROM previous_solutions p JOIN samples s ON s.id = p.sample JOIN results r ON r.execution = p.sample
       JOIN grades g ON g.sample = p.sample
       WHERE p.task = :task ORDER BY p.position DESC LIMIT :limit`,
      { task, limit },
    );
  }

  /** `iteration` trained on the samples; a restart that goes back before `iteration` removes them again. */
  addFailedSolutions(ids: readonly string[], iteration: number): void {
    if (ids.length === 0) return;
    const sql = `INSERT INTO failed_solutions (sample, task, iteration)
      SELECT id, task, :iteration FROM samples WHERE id = :id ON CONFLICT DO NOTHING`;
    this.database.write(() => {
      for (const id of ids) this.database.change(sql, { id, iteration });
    });
  }

  /** Returns failed programs of a task, newest first, but none that already follows `maxDepth` debug prompts in a row. */
  failedSolutions(task: string, { limit, maxDepth }: { limit: number; maxDepth: number }): Sample[] {
    return this.#samples(
      `${SAMPLE} JOIN failed_solutions f ON f.sample = s.id
       WHERE f.task = :task AND coalesce(s.depth, 0) < :maxDepth ORDER BY f.position DESC LIMIT :limit`,
      { task, limit, maxDepth },
    );
  }

  /** Returns the tasks that the store has samples of. */
  taskNames(): Set<string> {
    const rows = this.database.all<{ task: string }>("SELECT DISTINCT task FROM samples");
    return new Set(rows.map(({ task }) => task));
  }

  /**
   * Discards samples that would still be executed, graded or trained on, if their task is not among `tasks`: the run has no grader for
   * them. Results, scores and previous solutions stay. @returns the number of discarded samples
   */
  discardOtherTasks(tasks: readonly string[]): number {
    const reason = "its task was removed from the run";
    const { ids, held } = this.database.write(() => {
      const sql = `UPDATE samples SET state = 'discarded', finished_at = coalesce(finished_at, :at)
        WHERE task NOT IN (SELECT value FROM json_each(:tasks)) AND (state IN ('queued', 'leased')
          OR (state IN ('finished', 'notExecuted') AND used IS NULL
            AND (purpose = 'training' OR id NOT IN (SELECT sample FROM grades)))) RETURNING id`;
      const rows = this.database.all<{ id: string }>(sql, { tasks: JSON.stringify(tasks), at: this.at() });
      const ids = rows.map(({ id }) => id);
      return { ids, held: this.leases.markRevoked(ids, reason) };
    });
    this.leases.revoked(held, reason);
    return ids.length;
  }

  /** `collection: Discard`: discards every unfinished execution of `purpose`. @returns how many */
  discardUnfinished(reason: string, purpose = "training"): number {
    const { ids, held } = this.database.write(() => {
      const sql = `UPDATE samples SET state = 'discarded', finished_at = :at
        WHERE purpose = :purpose AND state IN ('queued', 'leased') AND used IS NULL RETURNING id`;
      const ids = this.database.all<{ id: string }>(sql, { purpose, at: this.at() }).map(({ id }) => id);
      return { ids, held: this.leases.markRevoked(ids, reason) };
    });
    this.leases.revoked(held, reason);
    return ids.length;
  }

  /** @throws StoreError `fenced` if a newer learner has taken the store over. Every write checks it too */
  checkFence(): void {
    this.database.checkFence();
  }

  close(): void {
    this.events.removeAllListeners();
    this.database.close();
  }

  #samples(sql: string, parameters: Parameters): Sample[] {
    return this.database.all(sql, parameters).map(sampleOf);
  }

  #count(where: string, which: Selection): number {
    const sql = `SELECT count(*) AS n FROM samples s WHERE ${where}`;
    return this.database.get<{ n: number }>(sql, selection(which))!.n;
  }
}
