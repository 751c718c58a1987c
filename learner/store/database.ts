/**
 * The SQLite file of the store: opening, transactions, the writer's fence, and translation of SQLite's errors.
 *
 * WAL, so that people and `longrun report` can read while the learner writes. `synchronous = FULL`, because an actor deletes a result as
 * soon as it is acknowledged: with NORMAL a WAL database survives a crash of the process but may lose its last commits when the machine
 * stops. A commit costs one fsync, and there are few per execution.
 */
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from "node:sqlite";
import { StoreError, type StoreErrorCode } from "./errors.ts";
import { APPLICATION_ID, OLDEST_VERSION, SCHEMA, SCHEMA_VERSION, UPGRADES } from "./schema.ts";

export type Row = Record<string, SQLOutputValue>;
/** undefined becomes NULL, a boolean 0 or 1. */
export type Parameters = Readonly<Record<string, SQLInputValue | boolean | undefined>>;

const bound = (parameters: Parameters): Record<string, SQLInputValue> =>
  Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [
      name,
      typeof value === "boolean" ? Number(value) : (value ?? null),
    ]),
  );

/** Returns a field's column, e.g. `execution_seed` for `executionSeed`. */
export const columnOf = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export interface DatabaseOptions {
  readOnly?: boolean;
  /** How long a write waits for another process's lock on the file. */
  busySeconds?: number;
  /** Largest size of the file; beyond it writes fail as on a full disk. */
  maxBytes?: number;
  /** An additional check of who may write, beside the file's own fence. @throws StoreError `fenced` */
  checkFence?: () => void;
}

type Described = [code: StoreErrorCode, message: (path: string, cause: Error) => string];
const FULL: Described = [
  "diskFull",
  (path) => `the disk of ${path} is full: free space or enlarge the volume, then resume`,
];
/** Code and message of a StoreError, by SQLite's extended or primary result code (https://www.sqlite.org/rescode.html). */
const ERRORS: Record<number, Described> = {
  5: ["busy", (path) => `${path} is locked by another process: close what has it open, then try again`],
  8: ["readOnly", (path) => `${path} cannot be written: check its permissions and its mount`],
  13: FULL,
  19: ["conflict", (_, cause) => `the store refuses the write: ${cause.message}`],
  4874: FULL, // IOERR_SHMSIZE: the index of the write-ahead log could not grow
};

function storeError(path: string, cause: unknown): unknown {
  if (!(cause instanceof Error) || !("errcode" in cause)) return cause;
  const errcode = Number(cause.errcode);
  const unknown: Described = ["io", () => `${path}: ${cause.message}`];
  const [code, message] = ERRORS[errcode] ?? ERRORS[errcode & 0xff] ?? unknown;
  return new StoreError(code, message(path, cause), { cause });
}

export class Database {
  readonly path: string;
  #sqlite: DatabaseSync;
  #statements = new Map<string, StatementSync>();
  /** Rows that were read since the newest write, by statement and parameters. */
  #known = new Map<string, unknown>();
  /** The fence number that this process wrote to the file when it opened it. */
  #fence = 0;
  #writing = false;
  #afterCommit: (() => void)[] = [];
  #undo: (() => void)[] = [];
  #readOnly: boolean;
  #checkOther: (() => void) | undefined;

  /** Opens or makes the file. Unless `readOnly`, takes the store over from its previous writer. */
  constructor(path: string, { readOnly = false, busySeconds = 10, maxBytes, checkFence }: DatabaseOptions = {}) {
    this.path = path;
    this.#checkOther = checkFence;
    this.#readOnly = readOnly;
    try {
      this.#sqlite = new DatabaseSync(path, { readOnly, timeout: busySeconds * 1000 });
    } catch (cause) {
      throw new StoreError("open", `${path} cannot be opened: the folder must exist and be writable`, { cause });
    }
    try {
      if (!readOnly) this.#sqlite.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
      if (maxBytes !== undefined)
        this.#sqlite.exec(`PRAGMA max_page_count = ${Math.floor(maxBytes / this.#pragma("page_size"))}`);
      this.#prepareSchema();
    } catch (cause) {
      this.#sqlite.close();
      const error = storeError(path, cause);
      throw error instanceof StoreError && error.code === "io"
        ? new StoreError("open", `${path} is no store or is damaged: ${error.message}`, { cause })
        : error;
    }
  }

  #prepareSchema(): void {
    const isNew = () => this.#pragma("user_version") === 0;
    const marks = `PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION};`;
    if (!this.#readOnly && isNew() && this.#pragma("schema_version") === 0)
      // another process may have been faster
      this.#exclusive(() => isNew() && this.#sqlite.exec(`${SCHEMA} ${marks}`));
    if (this.#pragma("application_id") !== APPLICATION_ID)
      throw new StoreError("open", `${this.path} is no store of longrun: give the store.sqlite of a run folder`);
    const version = this.#pragma("user_version");
    if (version < OLDEST_VERSION || version > SCHEMA_VERSION) {
      const read = `this longrun reads ${OLDEST_VERSION} to ${SCHEMA_VERSION}: use the longrun that made it`;
      throw new StoreError("schemaVersion", `${this.path} has schema version ${version}, ${read}`);
    }
    if (this.#readOnly) return;
    this.#exclusive(() => {
      for (let from = this.#pragma("user_version"); from < SCHEMA_VERSION; from++)
        this.#sqlite.exec(`${UPGRADES[from]} PRAGMA user_version = ${from + 1};`);
      this.#sqlite.exec("UPDATE writer SET fence = fence + 1");
      this.#fence = this.#currentFence();
    });
  }

  #pragma(name: string): number {
    return Number(Object.values(this.#sqlite.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
  }

  #currentFence(): number {
    return Number(this.#sqlite.prepare("SELECT fence FROM writer").get()?.fence);
  }

  #exclusive<T>(work: () => T): T {
    this.#sqlite.exec("BEGIN IMMEDIATE");
    try {
      const value = work();
      this.#sqlite.exec("COMMIT");
      return value;
    } catch (error) {
      // A full disk can end the transaction by itself.
      if (this.#sqlite.isTransaction) this.#sqlite.exec("ROLLBACK");
      throw error;
    }
  }

  #statement(sql: string): StatementSync {
    const statement = this.#statements.get(sql) ?? this.#sqlite.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #run<T>(work: () => T): T {
    try {
      return work();
    } catch (cause) {
      throw storeError(this.path, cause);
    }
  }

  /** Returns the rows. `T` has the query's columns. */
  all<T = Row>(sql: string, parameters: Parameters = {}): T[] {
    return this.#run(() => this.#statement(sql).all(bound(parameters))).map((row) => ({ ...row }) as T);
  }

  get<T = Row>(sql: string, parameters: Parameters = {}): T | undefined {
    const row = this.#run(() => this.#statement(sql).get(bound(parameters)));
    return row && ({ ...row } as T);
  }

  /** Like `get`, for a row that exists and is read more often than it changes: a writer reads it again only after a write of its own. */
  known<T>(sql: string, parameters: Parameters = {}): T {
    if (this.#readOnly || this.#writing) return this.get<T>(sql, parameters)!;
    const key = sql + JSON.stringify(parameters);
    const row = (this.#known.get(key) as T | undefined) ?? this.get<T>(sql, parameters)!;
    this.#known.set(key, row);
    return { ...row };
  }

  /** Returns whether there is such a table: a store of an earlier version that is opened for reading may lack it. */
  hasTable(name: string): boolean {
    return this.get("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = :name", { name }) !== undefined;
  }

  /** Returns whether a table has such a column, which a store of an earlier version may lack, too. */
  hasColumn(table: string, name: string): boolean {
    return this.get("SELECT 1 FROM pragma_table_info(:table) WHERE name = :name", { table, name }) !== undefined;
  }

  /** @returns the number of changed rows. Only inside `write`. */
  change(sql: string, parameters: Parameters = {}): number {
    if (!this.#writing) throw new StoreError("conflict", "a change outside of a transaction: call it within write()");
    return this.#run(() => Number(this.#statement(sql).run(bound(parameters)).changes));
  }

  /** Inserts a row whose columns are the fields' names in snake case. Only inside `write`. */
  insert(table: string, row: Parameters, or = ""): void {
    const names = Object.keys(row);
    this.change(`INSERT ${or} INTO ${table} (${names.map(columnOf)}) VALUES (${names.map((name) => `:${name}`)})`, row);
  }

  /** Runs one transaction: when this returns, all of `work` is committed to disk; if it throws, none of it. */
  write<T>(work: () => T): T {
    if (this.#readOnly) throw new StoreError("readOnly", `${this.path} was opened to be read`);
    if (this.#writing) return work();
    this.#writing = true;
    this.#afterCommit = [];
    this.#undo = [];
    let value: T;
    try {
      value = this.#run(() =>
        this.#exclusive(() => {
          this.checkFence();
          return work();
        }),
      );
    } catch (error) {
      this.#undoDownTo(0);
      throw error;
    } finally {
      this.#writing = false;
      this.#known.clear();
    }
    const faults: unknown[] = [];
    for (const then of this.#afterCommit)
      try {
        then();
      } catch (fault) {
        faults.push(fault);
      }
    if (faults.length > 0) throw faults[0];
    return value;
  }

  /**
   * Runs several works in one transaction. One that throws leaves no changes and does not disturb the others. @returns the error of each,
   * or undefined
   */
  together(works: readonly (() => void)[]): unknown[] {
    return this.write(() =>
      works.map((work) => {
        const before = { afterCommit: this.#afterCommit.length, undo: this.#undo.length };
        this.#sqlite.exec("SAVEPOINT piece");
        try {
          work();
          this.#sqlite.exec("RELEASE piece");
          return undefined;
        } catch (error) {
          // A full disk can end the whole transaction by itself.
          if (!this.#sqlite.isTransaction) throw error;
          this.#sqlite.exec("ROLLBACK TO piece; RELEASE piece");
          this.#afterCommit.length = before.afterCommit;
          this.#undoDownTo(before.undo);
          return error;
        }
      }),
    );
  }

  /** Calls `then` when the current transaction is on disk, and never if it fails. Outside of a transaction calls it at once. */
  afterCommit(then: () => void): void {
    if (this.#writing) this.#afterCommit.push(then);
    else then();
  }

  /** For changes in memory that belong to the transaction: calls `undo` if the transaction fails. */
  onRollback(undo: () => void): void {
    if (this.#writing) this.#undo.push(undo);
  }

  #undoDownTo(count: number): void {
    for (const undo of this.#undo.splice(count).reverse()) undo();
  }

  /** @throws StoreError `fenced` if another process has opened the store for writing since */
  checkFence(): void {
    this.#checkOther?.();
    const current = this.#run(() => this.#currentFence());
    if (current !== this.#fence) {
      const fences = `(fence ${current}, ours is ${this.#fence})`;
      throw new StoreError("fenced", `${this.path} was taken over by a newer learner ${fences}: stop this one`);
    }
  }

  close(): void {
    if (this.#sqlite.isOpen) this.#sqlite.close();
  }
}
