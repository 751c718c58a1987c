/**
 * Assigns executions to actors: the state machine of executions and their attempts (table at ExecutionState).
 *
 * A result counts if its attempt is the newest of its execution and was not revoked, and the execution has no result yet. So an attempt
 * whose lease expired can still hand in its result until another actor leases the execution.
 *
 * Deadlines are kept in memory only, so a heartbeat costs no write. After a restart every lease gets a grace period, because actors could
 * not reach the learner before. Heartbeats extend a lease to at most `longestSeconds` after its start (or to the end of the grace period),
 * so that no actor keeps an execution for ever.
 */
import type { EventEmitter } from "node:events";
import { Attempts, type End, NO_HEARTBEAT, NOT_HELD } from "./attempts.ts";
import type { Database } from "./database.ts";
import { RunningAttempts } from "./running.ts";
import type { Acceptance, AttemptKey, HeldAttempt, LeasedExecution, ReportedResult, StoreEvents } from "./types.ts";

/** Named like the fields of `spec.learner`. */
export const LEASE_DEFAULTS = {
  /** The execution is queued again after this time without a heartbeat. */
  leaseSeconds: 60,
  /** Time for an attempt's first heartbeat after a restart of the learner. */
  leaseGraceSeconds: 30,
  /** Time limit plus `leaseSlackSeconds`: after this time an attempt is lost, whatever its heartbeats say. */
  longestSeconds: Number.POSITIVE_INFINITY,
  /** The execution is lost after this many lost attempts. */
  maxAttempts: 3,
  /** The same limit for disrupted attempts, which do not count as lost: a program that crashes its own node is not tried for ever. */
  maxDisruptions: 100,
};

/** `now`: Unix milliseconds. */
export type LeaseOptions = typeof LEASE_DEFAULTS & { now: () => number; events: EventEmitter<StoreEvents> };

export class Leases {
  readonly #database: Database;
  readonly #options: LeaseOptions;
  readonly #running = new RunningAttempts();
  readonly leaseSeconds: number;
  readonly maxAttempts: number;
  readonly attempts: Attempts;
  /** Unix milliseconds: an attempt that was leased before `from` may run until `until`. */
  #grace = { from: 0, until: 0 };

  constructor(database: Database, options: LeaseOptions) {
    this.#database = database;
    this.#options = options;
    this.leaseSeconds = options.leaseSeconds;
    this.maxAttempts = options.maxAttempts;
    this.attempts = new Attempts(database, options);
    for (const { leasedAtMs, ...attempt } of this.attempts.running()) this.#hold(attempt, leasedAtMs);
  }

  #hold(attempt: HeldAttempt, leasedAtMs: number): void {
    const endAt = this.#endOf(leasedAtMs);
    this.#running.add({ ...attempt, leasedAt: leasedAtMs, deadline: this.#deadline(endAt), endAt });
    this.#database.onRollback(() => this.#running.delete(attempt.fence));
  }

  /** Takes effect before the commit, because later work in the same transaction must not find the attempt running. */
  #release(fence: string): void {
    const lease = this.#running.get(fence);
    if (lease === undefined) return;
    this.#running.delete(fence);
    this.#database.onRollback(() => this.#running.add(lease));
  }

  /** Returns when an attempt that was leased at `leasedAtMs` is lost, whatever its actor says, in Unix milliseconds. */
  #endOf(leasedAtMs: number): number {
    const endAt = leasedAtMs + this.#options.longestSeconds * 1000;
    return leasedAtMs < this.#grace.from ? Math.max(endAt, this.#grace.until) : endAt;
  }

  #deadline(endAt: number): number {
    return Math.min(endAt, this.#options.now() + this.#options.leaseSeconds * 1000);
  }

  /** Returns how many seconds the attempt's program can have run: since the lease, at most `longestSeconds`. */
  longestDuration(attempt: AttemptKey): number {
    const leasedAtMs = this.attempts.leasedAtMs(attempt);
    if (leasedAtMs === undefined) return 0;
    return Math.min(this.#options.longestSeconds, Math.max(0, (this.#options.now() - leasedAtMs) / 1000));
  }

  /**
   * Starts the grace period, because actors can reach the learner from now on: running attempts have `leaseGraceSeconds` for their first
   * heartbeat.
   */
  startGrace(): void {
    const from = this.#options.now();
    this.#grace = { from, until: from + this.#options.leaseGraceSeconds * 1000 };
    for (const lease of this.#running.all()) {
      lease.deadline = this.#grace.until;
      lease.endAt = Math.max(lease.endAt, this.#grace.until);
    }
  }

  isRunning({ fence }: AttemptKey): boolean {
    return this.#running.get(fence) !== undefined;
  }

  running(actor?: string): HeldAttempt[] {
    return actor === undefined ? this.#running.all() : this.#running.of(actor);
  }

  runningOf(actor: string): number {
    return this.#running.of(actor).length;
  }

  afterCommit(then: () => void): void {
    this.#database.afterCommit(then);
  }

  /** Leases the oldest queued executions in one commit, one to each of `actors`, until the queue is empty. */
  takeAll(actors: readonly string[]): LeasedExecution[] {
    if (actors.length === 0 || !this.attempts.hasQueued()) return [];
    const leased = this.#database.write(() => {
      const taken: LeasedExecution[] = [];
      for (const actor of actors) {
        const next = this.attempts.begin(actor, this.#now());
        if (next === undefined) break;
        taken.push(next);
      }
      return taken;
    });
    this.afterCommit(() => {
      for (const [index, attempt] of leased.entries())
        this.#hold({ ...keyOnly(attempt), actor: actors[index] }, this.#options.now());
    });
    if (leased.length > 0) this.#emit("leased");
    return leased;
  }

  /** Handles a heartbeat of `actor`, which extends the leases that it names. @returns the attempts that the actor should stop */
  extend(actor: string, running: readonly (AttemptKey & { elapsedSeconds?: number })[]): AttemptKey[] {
    const stale: AttemptKey[] = [];
    for (const attempt of running) {
      const lease = this.#running.find(actor, attempt);
      if (lease !== undefined) {
        lease.deadline = this.#deadline(lease.endAt);
        const sinceLease = Math.max(0, this.#options.now() - lease.leasedAt) / 1000;
        lease.elapsedSeconds = Math.min(attempt.elapsedSeconds ?? 0, sinceLease);
      } else if (!this.#revive(actor, attempt)) {
        stale.push(keyOnly(attempt));
      }
    }
    return stale;
  }

  /**
   * Handles a connection of `actor` with the attempts that it holds. These continue; its other attempts are lost at once.
   * @returns the attempts that the actor should stop, without those whose result is known or would still count
   */
  reconcile(actor: string, holding: readonly AttemptKey[]): AttemptKey[] {
    const isOver = (attempt: AttemptKey) =>
      this.attempts.find(actor, attempt)?.state !== "accepted" && this.attempts.judge(actor, attempt) !== "accepted";
    const stale = this.extend(actor, holding).filter(isOver);
    const held = new Set(holding.map((attempt) => attempt.fence));
    this.#lose(
      this.running(actor).filter((attempt) => !held.has(attempt.fence)),
      { state: "failed", reason: NOT_HELD },
    );
    return stale;
  }

  /** Handles a lost attempt: it never reached the actor, or the actor reported the loss. */
  fail(actor: string, attempt: AttemptKey, reason: string, cause: Omit<End, "state" | "reason"> = {}): Acceptance {
    const verdict = this.#database.write(() => this.attempts.judge(actor, attempt));
    // The execution of an expired attempt was queued again already.
    if (verdict === "accepted" && this.isRunning(attempt))
      this.#lose([{ ...keyOnly(attempt), actor }], { state: "failed", reason, ...cause });
    return verdict;
  }

  /** Records that `actor` was taken away: its unfinished attempts do not count, whether their leases have ended or will end. */
  disrupted(actor: string): void {
    const requeued = this.#database.write(() => this.attempts.disrupted(actor));
    if (requeued) this.#emit("queued");
  }

  /** Queues every running execution again without counting an attempt, and revokes the attempts, for a suspension. */
  disruptAll(reason: string): void {
    const held = this.#running.all();
    this.#lose(held, { state: "expired", reason, disrupted: true });
    if (held.length > 0) this.#emit("revoked", held, reason);
  }

  disruptions(): number {
    return this.attempts.disruptions();
  }

  /** Handles a result; `accepted` means that it is on disk. @param deflated the submission, zlib */
  accept(actor: string, attempt: AttemptKey, result: ReportedResult, deflated?: Uint8Array): Acceptance {
    const verdict = this.#database.write(() => {
      const judged = this.attempts.judge(actor, attempt);
      if (judged !== "accepted") return judged;
      this.attempts.finish(actor, attempt, result, this.#now(), deflated);
      return judged;
    });
    if (verdict === "accepted") {
      this.#release(attempt.fence);
      this.#emit("finished", attempt.execution);
    }
    return verdict;
  }

  /**
   * Gives a lost attempt a result, because the program itself caused the loss; a newer attempt of the execution is revoked.
   * @returns false if the execution has a result already, or was discarded
   */
  settle(actor: string, attempt: AttemptKey, result: ReportedResult): boolean {
    const newer = this.#database.write(() => {
      const row = this.attempts.find(actor, attempt);
      const open = ["queued", "leased", "lost"].includes(String(row?.execution_state));
      if (!open || !["failed", "expired"].includes(String(row?.state))) return undefined;
      const held = this.markRevoked([attempt.execution], "an earlier attempt's result is known");
      this.attempts.finish(actor, attempt, result, this.#now());
      return held;
    });
    if (newer === undefined) return false;
    this.revoked(newer, "an earlier attempt's result is known");
    this.#options.events.emit("finished", attempt.execution);
    return true;
  }

  /** Ends leases that missed their heartbeats or are too old. Call it about every second. @returns the number of ended leases */
  expire(): number {
    const now = this.#options.now();
    const late = this.#running.all().filter((lease) => lease.deadline <= now);
    const [overdue, silent] = [late.filter(({ endAt }) => endAt <= now), late.filter(({ endAt }) => endAt > now)];
    this.#lose(silent, { state: "expired", reason: NO_HEARTBEAT });
    const reason = `no result within ${this.#options.longestSeconds} s (time limit and learner.leaseSlackSeconds)`;
    this.#lose(overdue, { state: "expired", reason });
    if (overdue.length > 0) this.#emit("revoked", overdue, reason);
    return late.length;
  }

  /** Returns how long ago the earliest deadline passed; 0 if none has. A large value means that `expire` is not called. */
  overdueSeconds(): number {
    const now = this.#options.now();
    return Math.max(0, ...this.#running.all().map(({ deadline }) => now - deadline)) / 1000;
  }

  /** Within a transaction: ends the running attempts of `executions`. Call `revoked` after the commit. */
  markRevoked(executions: readonly string[], reason: string): HeldAttempt[] {
    const wanted = new Set(executions);
    const held = this.running().filter((attempt) => wanted.has(attempt.execution));
    for (const attempt of held) this.#end(attempt, { state: "revoked", reason });
    return held;
  }

  revoked(attempts: HeldAttempt[], reason: string): void {
    for (const attempt of attempts) this.#release(attempt.fence);
    if (attempts.length > 0) this.#options.events.emit("revoked", attempts, reason);
  }

  #emit<E extends keyof StoreEvents>(event: E, ...told: StoreEvents[E]): void {
    this.afterCommit(() => (this.#options.events as EventEmitter).emit(event, ...told));
  }

  #end(attempt: HeldAttempt, end: End): void {
    const { elapsedSeconds } = this.#running.get(attempt.fence) ?? {};
    this.attempts.end(attempt, end, { elapsedSeconds, at: this.#now() });
  }

  #now(): number {
    return Math.round(this.#options.now());
  }

  /** Lets an expired attempt that still counts continue: its execution leaves the queue. */
  #revive(actor: string, attempt: AttemptKey): boolean {
    if (this.attempts.judge(actor, attempt) !== "accepted") return false;
    const leasedAtMs = this.attempts.leasedAtMs(attempt) ?? 0;
    if (this.#endOf(leasedAtMs) <= this.#options.now()) return false;
    this.#database.write(() => this.attempts.revive(attempt));
    this.#hold({ ...keyOnly(attempt), actor }, leasedAtMs);
    return true;
  }

  /** Ends attempts without a result: their executions are queued again, or lost. */
  #lose(attempts: HeldAttempt[], end: End): void {
    if (attempts.length === 0) return;
    const ended = this.#database.write(() =>
      attempts.map((attempt) => {
        const disrupted = end.disrupted || this.attempts.explains(attempt.actor, end.reason);
        this.#end(attempt, { ...end, disrupted });
        return this.attempts.settleLoss(attempt.execution, this.#now());
      }),
    );
    attempts.forEach((attempt, index) => {
      this.#release(attempt.fence);
      this.#emit("attemptLost", attempt, end.reason, ended[index]);
    });
    if (ended.includes("queued")) this.#emit("queued");
  }
}

const keyOnly = ({ execution, number, fence }: AttemptKey): AttemptKey => ({ execution, number, fence });
