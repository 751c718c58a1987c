/**
 * Who runs what: the state machine of executions and their attempts (table at ExecutionState).
 *
 * A result counts if and only if its attempt is the newest of its execution, was not revoked, and the execution has no
 * result yet. An attempt whose lease expired is therefore not lost for good until somebody else leases the execution.
 *
 * Deadlines live in memory only: a heartbeat costs no write, and after a restart every lease begins anew with the grace
 * period, because actors could not reach the learner while it was down. Heartbeats extend a lease, but no further than
 * `longestSeconds` after it was given (or to the end of that grace period): an actor cannot sit on an execution for ever.
 */
import type { EventEmitter } from "node:events";
import { Attempts, type End } from "./attempts.ts";
import type { Database } from "./database.ts";
import { Disruptions, NO_HEARTBEAT, NOT_HELD } from "./disruptions.ts";
import { StoreError } from "./errors.ts";
import { RunningAttempts } from "./running.ts";
import type { Acceptance, AttemptKey, HeldAttempt, LeasedExecution, ReportedResult, StoreEvents } from "./types.ts";

export interface LeaseOptions {
  /** An attempt without a heartbeat for this long goes back to the queue. `learner.leaseSeconds` */
  leaseSeconds: number;
  /** How long attempts run on after a restart without a sign of life. `learner.leaseGraceSeconds` */
  leaseGraceSeconds: number;
  /** An attempt is lost so long after its lease, whatever heartbeats say: time limit and `learner.leaseSlackSeconds`. */
  longestSeconds: number;
  /** After so many lost attempts the execution is lost. `learner.maxAttempts` */
  maxAttempts: number;
  /** After so many disrupted attempts, too, which do not count as lost. `learner.maxDisruptions` */
  maxDisruptions: number;
  /** Unix milliseconds. */
  now: () => number;
  events: EventEmitter<StoreEvents>;
}

export class Leases {
  #database: Database;
  #options: LeaseOptions;
  #running = new RunningAttempts();
  readonly #disruptions: Disruptions;
  /** Their rows in the database. */
  readonly attempts: Attempts;
  /** Unix milliseconds: an attempt that was leased before the first may run until the second. */
  #grace = { from: 0, until: 0 };

  constructor(database: Database, options: LeaseOptions) {
    this.#database = database;
    this.#options = options;
    this.#disruptions = new Disruptions(database, options);
    this.attempts = new Attempts(database);
    for (const { leasedAtMs, ...attempt } of this.attempts.running()) this.#hold(attempt, leasedAtMs);
  }

  #hold(attempt: HeldAttempt, leasedAtMs: number): void {
    const endAt = this.#endOf(leasedAtMs);
    this.#running.add({ ...attempt, leasedAt: leasedAtMs, deadline: this.#deadline(endAt), endAt });
    this.#database.onRollback(() => this.#running.delete(attempt.fence));
  }

  /** At once, not after the commit: what comes later in the same transaction must not find it running. */
  #release(fence: string): void {
    const lease = this.#running.get(fence);
    if (lease === undefined) return;
    this.#running.delete(fence);
    this.#database.onRollback(() => this.#running.add(lease));
  }

  /** Unix milliseconds from which an attempt that was leased then counts as lost. */
  #endOf(leasedAtMs: number): number {
    const endAt = leasedAtMs + this.#options.longestSeconds * 1000;
    return leasedAtMs < this.#grace.from ? Math.max(endAt, this.#grace.until) : endAt;
  }

  #deadline(endAt: number): number {
    return Math.min(endAt, this.#options.now() + this.#options.leaseSeconds * 1000);
  }

  get leaseSeconds(): number {
    return this.#options.leaseSeconds;
  }

  get maxAttempts(): number {
    return this.#options.maxAttempts;
  }

  /** How long a program of this attempt can have run until now: since the lease, and no longer than `longestSeconds`. */
  longestDuration(attempt: AttemptKey): number {
    const leasedAtMs = this.attempts.leasedAtMs(attempt);
    if (leasedAtMs === undefined) return 0;
    return Math.min(this.#options.longestSeconds, Math.max(0, (this.#options.now() - leasedAtMs) / 1000));
  }

  /** Actors can reach the learner from now on: every running attempt has `leaseGraceSeconds` to show itself. */
  startGrace(): void {
    const from = this.#options.now();
    this.#grace = { from, until: from + this.#options.leaseGraceSeconds * 1000 };
    for (const lease of this.#running.all()) {
      lease.deadline = this.#grace.until;
      lease.endAt = Math.max(lease.endAt, this.#grace.until);
    }
  }

  /** Whether its lease goes on. */
  isRunning({ fence }: AttemptKey): boolean {
    return this.#running.has(fence);
  }

  /** Attempts that are running, as far as known. */
  running(actor?: string): HeldAttempt[] {
    return actor === undefined ? this.#running.all() : this.#running.of(actor);
  }

  /** How many of them `actor` has. */
  runningOf(actor: string): number {
    return this.#running.countOf(actor);
  }

  /** Calls `then` when what is being written is on disk; at once where nothing is. */
  afterCommit(then: () => void): void {
    this.#database.afterCommit(then);
  }

  /** Leases the oldest queued execution to `actor` as a new attempt. @returns undefined if nothing is queued */
  take(actor: string): LeasedExecution | undefined {
    return this.takeAll([actor])[0];
  }

  /**
   * The oldest queued executions, one for each of `actors`, in one commit. @returns those of the first actors, as many
   * as were queued
   */
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
        this.#hold({ ...keyOnly(attempt), actor: actors[index]! }, this.#options.now());
    });
    return leased;
  }

  /**
   * A heartbeat of `actor` names what it runs: those leases go on.
   * @returns the named attempts that do not count any more: the actor should stop them
   */
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
   * `actor` connected and says what it holds. Those run on; what it was leased and does not hold is lost at once.
   * @returns the held attempts that do not count any more. One whose result is known already is not among them: it is
   *   acknowledged as a duplicate when it is handed in. Nor is one that has run too long, if nobody else was given its
   *   execution: its result may be there, and would be taken
   */
  reconcile(actor: string, holding: readonly AttemptKey[]): AttemptKey[] {
    const stale = this.extend(actor, holding).filter((attempt) => {
      return (
        this.attempts.find(actor, attempt)?.state !== "accepted" && this.attempts.judge(actor, attempt) !== "accepted"
      );
    });
    const held = new Set(holding.map((attempt) => attempt.fence));
    this.#lose(
      this.running(actor).filter((attempt) => !held.has(attempt.fence)),
      { state: "failed", reason: NOT_HELD },
    );
    return stale;
  }

  /** Takes back what was leased and never reached the actor, or whose actor said that it is gone. */
  fail(
    actor: string,
    attempt: AttemptKey,
    reason: string,
    of: Pick<End, "sandboxBroke" | "disrupted"> = {},
  ): Acceptance {
    const verdict = this.#database.write(() => this.attempts.judge(actor, attempt));
    // An expired one was queued again already.
    if (verdict === "accepted" && this.#running.has(attempt.fence))
      this.#lose([{ ...keyOnly(attempt), actor }], { state: "failed", reason, ...of });
    return verdict;
  }

  /**
   * `actor` was taken away: its pod was evicted or preempted, or its node is lost. What it does not hand in does not
   * count as an attempt, whether its lease has ended already or will. Can be called again.
   */
  disrupted(actor: string): void {
    const requeued = this.#database.write(() => this.#disruptions.note(actor));
    if (requeued) this.afterCommit(() => this.#options.events.emit("queued"));
  }

  /** Nobody waits for what runs, as after a suspension: it is queued again, costs no attempt, and is told to stop. */
  disruptAll(reason: string): void {
    const held = this.#running.all();
    this.#lose(held, { state: "expired", reason, disrupted: true });
    if (held.length > 0) this.afterCommit(() => this.#options.events.emit("revoked", held, reason));
  }

  /** How many attempts were disrupted, over all purposes. */
  disruptions(): number {
    return this.#disruptions.count();
  }

  /**
   * A result arrived. When this returns `accepted` it is on disk.
   * @param deflated the submission, zlib
   */
  accept(actor: string, attempt: AttemptKey, result: ReportedResult, deflated?: Uint8Array): Acceptance {
    const verdict = this.#database.write(() => {
      const judged = this.attempts.judge(actor, attempt);
      if (judged !== "accepted") return judged;
      this.attempts.finish(actor, attempt, result, this.#now(), deflated);
      return judged;
    });
    if (verdict === "accepted") {
      this.#release(attempt.fence);
      this.afterCommit(() => this.#options.events.emit("finished", attempt.execution));
    }
    return verdict;
  }

  /**
   * The result of an attempt that was lost: it has turned out that the program itself was the cause. It counts like one
   * that was handed in; a newer attempt of the execution is revoked.
   * @returns false if it does not count: the execution has a result already, or was thrown away
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

  /** Ends the leases that missed their heartbeats or are too old. Call it every second or so. @returns how many */
  expire(): number {
    const now = this.#options.now();
    const late = this.#running.all().filter((lease) => lease.deadline <= now);
    const overdue = late.filter((lease) => lease.endAt <= now);
    this.#lose(
      late.filter((lease) => lease.endAt > now),
      { state: "expired", reason: NO_HEARTBEAT },
    );
    const reason = `no result within ${this.#options.longestSeconds} s (time limit and learner.leaseSlackSeconds)`;
    this.#lose(overdue, { state: "expired", reason });
    if (overdue.length > 0) this.afterCommit(() => this.#options.events.emit("revoked", overdue, reason));
    return late.length;
  }

  /** How long ago the earliest deadline was; 0 if none has passed. More than a moment: nobody calls `expire`. */
  overdueSeconds(): number {
    const now = this.#options.now();
    return Math.max(0, ...this.#running.all().map(({ deadline }) => now - deadline)) / 1000;
  }

  /** Part of a transaction that ends executions early: marks their running attempts. Call `revoked` after the commit. */
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

  #end(attempt: HeldAttempt, end: End): void {
    const { elapsedSeconds } = this.#running.get(attempt.fence) ?? {};
    this.attempts.end(attempt, end, { elapsedSeconds, at: this.#now() });
  }

  #now(): number {
    return Math.round(this.#options.now());
  }

  /** An expired attempt that still counts runs again: its execution leaves the queue. */
  #revive(actor: string, attempt: AttemptKey): boolean {
    if (this.attempts.judge(actor, attempt) !== "accepted") return false;
    const leasedAtMs = this.attempts.leasedAtMs(attempt) ?? 0;
    if (this.#endOf(leasedAtMs) <= this.#options.now()) return false;
    this.#database.write(() => this.attempts.revive(attempt));
    this.#hold({ ...keyOnly(attempt), actor }, leasedAtMs);
    return true;
  }

  /** Attempts ended without a result: queue their executions again, or give them up. */
  #lose(attempts: HeldAttempt[], end: Omit<End, "state"> & { state: "expired" | "failed" }): void {
    if (attempts.length === 0) return;
    const ended = this.#database.write(() =>
      attempts.map((attempt) => {
        const disrupted = end.disrupted || this.#disruptions.explain(attempt.actor, end.reason);
        this.#end(attempt, { ...end, disrupted });
        const state = this.#disruptions.settleLoss(attempt.execution, this.#now());
        if (state === undefined) throw new StoreError("conflict", `execution ${attempt.execution} is not in the store`);
        return state;
      }),
    );
    attempts.forEach((attempt, index) => {
      this.#release(attempt.fence);
      this.afterCommit(() => this.#options.events.emit("attemptLost", attempt, end.reason, ended[index]!));
    });
    if (ended.includes("queued")) this.afterCommit(() => this.#options.events.emit("queued"));
  }
}

const keyOnly = ({ execution, number, fence }: AttemptKey): AttemptKey => ({ execution, number, fence });
