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
import { Leases } from "./leases.ts";
import { checkpointOf, iterationOf, openGroupOf, previousSolutionOf, sampleOf, toBlob } from "./rows.ts";
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

export interface StoreOptions {
  /** To look at a store that another process may be writing; takes nothing over. */
  readOnly?: boolean;
  leaseSeconds?: number;
  leaseGraceSeconds?: number;
  maxAttempts?: number;
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

const SAMPLE = `SELECT s.*, r.*, g.* FROM samples s
  LEFT JOIN results r ON r.execution = s.id LEFT JOIN grades g ON g.sample = s.id`;

/** Which samples: of `purpose`, written by the policies of iterations `since` to `until`, both included. */
export interface Selection {
  purpose?: string;
  since?: number;
  until?: number;
}

const SELECTED = "s.purpose = :purpose AND s.iteration BETWEEN :since AND :until";

/** What training can draw from. */
const AVAILABLE = `${SELECTED} AND s.state IN ('finished', 'notExecuted') AND s.used IS NULL`;

const selection = ({ purpose = "training", since = 0, until = Number.MAX_SAFE_INTEGER }: Selection) => ({
  purpose,
  since,
  until,
});

export class Store {
  readonly path: string;
  readonly events = new EventEmitter<StoreEvents>();
  /** The server's side: who runs what. */
  readonly leases: Leases;
  #database: Database;
  #now: () => number;
  #lineage: number | undefined;

  constructor(path: string, options: StoreOptions) {
    this.path = path;
    this.#now = options.now ?? (() => performance.timeOrigin + performance.now());
    this.#database = new Database(path, options);
    this.leases = new Leases(this.#database, {
      leaseSeconds: options.leaseSeconds ?? 60,
      leaseGraceSeconds: options.leaseGraceSeconds ?? 30,
      maxAttempts: options.maxAttempts ?? 3,
      now: this.#now,
      events: this.events,
    });
  }

  // Policy versions ---------------------------------------------------------------------------------------------

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
      throw new StoreError("conflict", `${this.path} has no lineage: no learner has begun this run`);
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

  /** What `iteration` trained on, in the order of its batch. */
  samplesOf(iteration: number): Sample[] {
    return this.#samples(
      `${SAMPLE} JOIN batches b ON b.sample = s.id
       JOIN iterations i ON i.lineage = b.lineage AND i.iteration = b.iteration
       WHERE b.iteration = :iteration AND i.superseded_by IS NULL ORDER BY b.position`,
      { iteration },
    );
  }

  // Samples -----------------------------------------------------------------------------------------------------

  /** Stores samples and queues their executions, in this order. */
  addSamples(samples: readonly NewSample[]): void {
    this.#database.write(() => {
      for (const sample of samples) this.#addSample(sample);
    });
    if (samples.some(({ state }) => state === "queued")) this.events.emit("queued");
  }

  #addSample(sample: NewSample): void {
    if (sample.responseTokens.length !== sample.behaviourLogProbs.length)
      throw new StoreError("conflict", `sample ${sample.id}: responseTokens and behaviourLogProbs differ in length`);
    if (sample.state === "queued" && sample.instrumented === undefined)
      throw new StoreError("conflict", `sample ${sample.id}: queued without an instrumented program`);
    const at = this.#at();
    this.#database.change(
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

  counts(purpose = "training"): Counts {
    return this.#count("WHERE purpose = :purpose", { purpose });
  }

  /** Of all purposes together. */
  totals(): Counts {
    return this.#count("", {});
  }

  #count(where: string, parameters: Parameters): Counts {
    const row = this.#database.get(
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
