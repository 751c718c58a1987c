/**
 * The SQLite file under the store: opening, transactions, the writer's fence, and SQLite's errors in the store's words.
 *
 * WAL, so that people and `longrun report` can read while the learner writes. `synchronous = FULL`: with NORMAL a WAL
 * database survives a crash of the process but may lose its last commits when the machine stops, and an actor deletes
 * a result as soon as it is acknowledged; a commit costs one fsync, and there are few per execution.
 */
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from "node:sqlite";
import { StoreError } from "./errors.ts";
import { APPLICATION_ID, OLDEST_VERSION, SCHEMA, SCHEMA_VERSION, UPGRADES } from "./schema.ts";

export type Row = Record<string, SQLOutputValue>;
export type Parameters = Record<string, SQLInputValue>;

export interface DatabaseOptions {
  readOnly?: boolean;
  /** How long a write waits for another process that holds the file's lock. */
  busySeconds?: number;
  /** The file grows no further than this; then as if the disk were full. */
  maxBytes?: number;
  /** Another check of who may write, made where the file's own fence is checked. @throws StoreError `fenced` */
  checkFence?: () => void;
}

// Primary result codes, https://www.sqlite.org/rescode.html
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_FULL = 13;
const SQLITE_CONSTRAINT = 19;

function storeError(path: string, cause: unknown): unknown {
  if (!(cause instanceof Error) || !("errcode" in cause)) return cause;
  const primary = Number(cause.errcode) & 0xff;
  const because = { cause };
  if (primary === SQLITE_BUSY)
    return new StoreError(
      "busy",
      `${path} is locked by another process: close what has it open, then try again`,
      because,
    );
  if (primary === SQLITE_FULL)
    return new StoreError(
      "diskFull",
      `the disk of ${path} is full: free space or enlarge the volume, then resume`,
      because,
    );
  if (primary === SQLITE_READONLY)
    return new StoreError("readOnly", `${path} cannot be written: check its permissions and its mount`, because);
  if (primary === SQLITE_CONSTRAINT)
    return new StoreError("conflict", `the store refuses the write: ${cause.message}`, because);
  return new StoreError("io", `${path}: ${cause.message}`, because);
}

/** What `work` throws. */
function faultOf(work: () => void): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}

export class Database {
  readonly path: string;
  #sqlite: DatabaseSync;
  #statements = new Map<string, StatementSync>();
  #fence = 0;
  #writing = false;
  #afterCommit: (() => void)[] = [];
  #undo: (() => void)[] = [];
  #readOnly: boolean;
  #checkOther: () => void;

  /** Opens or makes the file; unless `readOnly`, takes the store over from whoever wrote to it before. */
  constructor(path: string, { readOnly = false, busySeconds = 10, maxBytes, checkFence }: DatabaseOptions = {}) {
    this.path = path;
    this.#checkOther = checkFence ?? (() => {});
    this.#readOnly = readOnly;
    try {
      this.#sqlite = new DatabaseSync(path, {
        readOnly,
        timeout: busySeconds * 1000,
        enableForeignKeyConstraints: true,
      });
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
    if (!this.#readOnly && this.#pragma("user_version") === 0 && this.#pragma("schema_version") === 0) {
      this.#exclusive(() => {
        // Another process may have been faster.
        if (this.#pragma("user_version") !== 0) return;
        this.#sqlite.exec(
          `${SCHEMA} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION};`,
        );
      });
    }
    if (this.#pragma("application_id") !== APPLICATION_ID)
      throw new StoreError("open", `${this.path} is no store of longrun: give the store.sqlite of a run folder`);
    const version = this.#pragma("user_version");
    if (version < OLDEST_VERSION || version > SCHEMA_VERSION)
      throw new StoreError(
        "schemaVersion",
        `${this.path} has schema version ${version}, this longrun reads ${OLDEST_VERSION} to ${SCHEMA_VERSION}: use the longrun that made it`,
      );
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
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#sqlite.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #run<T>(work: () => T): T {
    try {
      return work();
    } catch (cause) {
      throw storeError(this.path, cause);
    }
  }

  all(sql: string, parameters: Parameters = {}): Row[] {
    return this.#run(() => this.#statement(sql).all(parameters));
  }

  get(sql: string, parameters: Parameters = {}): Row | undefined {
    return this.#run(() => this.#statement(sql).get(parameters));
  }

  /** @returns number of changed rows. Inside `write` only. */
  change(sql: string, parameters: Parameters = {}): number {
    if (!this.#writing) throw new StoreError("conflict", "a change outside of a transaction: call it within write()");
    return this.#run(() => Number(this.#statement(sql).run(parameters).changes));
  }

  /** One transaction: all of `work` is committed, on disk, when this returns; none of it if it throws. */
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
    }
    const faults = this.#afterCommit.map(faultOf).filter((fault) => fault !== undefined);
    if (faults.length > 0) throw faults[0];
    return value;
  }

  /**
   * Several pieces of work in one transaction, which waits for the disk once. One that throws leaves nothing behind and
   * does not disturb the others. @returns what each has thrown, undefined where it has not
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

  /** Calls `then` when what is being written is on disk, and never if that fails; at once outside of a transaction. */
  afterCommit(then: () => void): void {
    if (this.#writing) this.#afterCommit.push(then);
    else then();
  }

  /** What is changed in memory beside the file: calls `undo` if what is being written does not get there. */
  onRollback(undo: () => void): void {
    if (this.#writing) this.#undo.push(undo);
  }

  /** The newest first. */
  #undoDownTo(count: number): void {
    for (const undo of this.#undo.splice(count).reverse()) undo();
  }

  /** @throws StoreError `fenced` if another process has opened the store to write since */
  checkFence(): void {
    this.#checkOther();
    const current = this.#run(() => this.#currentFence());
    if (current !== this.#fence)
      throw new StoreError(
        "fenced",
        `${this.path} was taken over by a newer learner (fence ${current}, ours is ${this.#fence}): stop this one`,
      );
  }

  close(): void {
    if (this.#sqlite.isOpen) this.#sqlite.close();
  }
}
