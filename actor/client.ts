/**
 * The actor's end of the protocol (proto/longrun.proto). The actor opens one stream to the learner.
 *
 * A broken stream stops no program. The client dials again until the learner answers, names the attempts that it holds, and hands in the
 * results of the meantime. It keeps each result until the learner acknowledges it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { FromLearnerReceived, longrun } from "../proto/service.ts";
import { type ExecutionResult, idleShareOf, lostResult, type Progress } from "./execution.ts";
import { HandIn, type HeldExecution } from "./hand-in.ts";
import { HeldExecutions, type HeldLimits } from "./held-executions.ts";
import { LearnerStream, type LearnerStreamOptions, LONGEST_SAID } from "./learner-stream.ts";
import { type Attempt, type Lease, parseAttempt } from "./lease.ts";
import { headerOf } from "./result-header.ts";
import { type PackedSubmission, packSubmission } from "./submission.ts";

/** Why `run` ended. */
type EndReason = "drained" | "idle" | "stopped";

export interface ClientOptions extends LearnerStreamOptions, HeldLimits {
  /** Number of the `slots` that can work now; call `offer` when it changes. Absent: all slots. */
  usableSlots?: () => number;
  /** Runs a lease. Must not reject. */
  execute: (lease: Lease, signal: AbortSignal, onProgress: (progress: Progress) => void) => Promise<ExecutionResult>;
  /** The actor drains by itself after this many leases. Absent: never. */
  maxExecutions?: number | undefined;
  /** How long a drained actor waits for a learner before it gives up its results, and its programs if it was told to stop. */
  handInSeconds?: number;
  /** How long programs may run after `terminate` before they are given back. Absent: until they end. */
  finishSeconds?: number | undefined;
  /** Whether the actor leaves after `Welcome.idle_seconds` without a lease. False if another process sets the number of actors. [true] */
  leavesWhenIdle?: boolean;
}

export interface ClientState {
  connected: boolean;
  draining: boolean;
  /** Programs that run now. */
  running: number;
  /** Results that the learner has not acknowledged. */
  unacknowledged: number;
  /** Streams that broke after the learner's welcome. */
  brokenStreams: number;
  /** Slot-seconds since the actor started. */
  busySeconds: number;
  aliveSeconds: number;
}

/** How long the learner may take to acknowledge attempts that the actor gave back. */
const GIVE_BACK_SECONDS = 2;
const DAMAGED_UPLOADS = 3;
/** The learner may send this many leases for each slot before it learns that a slot broke; the leases wait. */
const LEASES_PER_SLOT = 2;
const LONGEST_IDLE_SECONDS = 86_400;

export class ActorClient {
  readonly #options: ClientOptions;
  readonly #held: HeldExecutions;
  readonly #end = Promise.withResolvers<EndReason>();
  readonly #stream: LearnerStream;
  #draining = false;
  /** Why the actor was asked to stop. */
  #terminating: string | undefined;
  /** Why the actor gives back the programs that it kills now. */
  #givingBack: string | undefined;
  #ended = false;
  #leased = 0;
  #mostLeases: number;
  #refused = 0;
  readonly #handIn: HandIn;
  #idleTimer: NodeJS.Timeout | undefined;
  #idleSeconds = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#mostLeases = options.maxExecutions ?? Number.POSITIVE_INFINITY;
    this.#held = new HeldExecutions(options);
    this.#stream = new LearnerStream(options, {
      holding: () => this.#held.all.map(({ attempt }) => attempt),
      heartbeat: () => this.#held.heartbeat(),
      onWelcome: (welcome) => this.#onWelcome(welcome),
      onMessage: (message) => this.#onMessage(message),
      onEnd: () => clearTimeout(this.#idleTimer),
    });
    const isHeld = (held: HeldExecution) => !this.#ended && this.#held.has(held);
    this.#handIn = new HandIn(() => this.#stream.call, isHeld, options.random ?? Math.random);
  }

  /** Works until the actor is drained, idle or stopped. Throws ActorError `refused` or `packages` if the learner turns the actor away. */
  async run(): Promise<EndReason> {
    const dialling = this.#stream.dialForEver();
    try {
      return await Promise.race([this.#end.promise, dialling as Promise<never>]);
    } finally {
      this.#ended = true;
      clearTimeout(this.#idleTimer);
      this.#stream.close();
      for (const held of this.#held.all) held.abort.abort();
    }
  }

  /** Takes no more leases. `run` ends when all held results are handed in. */
  drain(reason: string): void {
    if (this.#draining) return;
    this.#draining = true;
    // Leases for earlier offers may be on their way.
    this.#mostLeases = Math.min(this.#mostLeases, this.#leased + this.#options.slots);
    this.#options.log?.info({ reason, held: this.#held.size }, "draining");
    this.#finishIfDrained();
    void this.#giveUpWhenCutOff();
  }

  /**
   * Handles a request to end this process: drains, and after `finishSeconds` gives back unfinished programs. Leases that arrive later are
   * given back at once.
   */
  terminate(reason: string): void {
    if (this.#terminating !== undefined) return;
    this.#terminating = reason;
    this.#sayDraining();
    this.drain(reason);
    this.#mostLeases = this.#leased;
    const { finishSeconds } = this.#options;
    if (finishSeconds === undefined) return;
    const over = () => this.giveBack(`${reason}: its program was not finished ${finishSeconds} s later`);
    setTimeout(over, finishSeconds * 1000).unref();
  }

  /** Kills the running programs and reports to the learner that the programs are not to blame; `run` ends soon. */
  giveBack(reason: string): void {
    if (this.#givingBack !== undefined) return;
    this.#givingBack = reason;
    this.terminate(reason);
    this.#options.log?.info({ reason, running: this.#held.running }, "gives back what it runs");
    for (const held of this.#held.all) if (!held.result) held.abort.abort();
    if (this.#stream.isConnected) setTimeout(() => this.stop(), GIVE_BACK_SECONDS * 1000).unref();
    else this.stop();
  }

  /** Ends `run` at once and kills the running programs. */
  stop(): void {
    this.#finish("stopped");
  }

  /** Returns the number of attempts that run or wait for their acknowledgement. */
  get held(): number {
    return this.#held.size;
  }

  /** Returns the client's state, for metrics. */
  get state(): ClientState {
    const { busySeconds, aliveSeconds } = this.#held.heartbeat();
    return {
      connected: this.#stream.isConnected,
      draining: this.#draining,
      running: this.#held.running,
      unacknowledged: this.#held.all.filter(({ result }) => result !== undefined).length,
      brokenStreams: this.#stream.broken,
      busySeconds,
      aliveSeconds,
    };
  }

  // --- The stream ---------------------------------------------------------------------------------------------------

  #onWelcome(welcome: longrun.v1alpha1.Welcome.$Properties): void {
    this.#idleSeconds = Math.min(welcome.idleSeconds ?? 0, LONGEST_IDLE_SECONDS);
    for (const attempt of welcome.revoked ?? []) this.#forget(attempt, "it was revoked while the stream was broken");
    const lineage = welcome.lineage?.slice(0, LONGEST_SAID);
    this.#options.log?.info({ lineage, held: this.#held.size }, "connected to the learner");
    for (const held of this.#held.all) if (held.result) void this.#handIn.send(held);
    this.offer();
    if (this.#terminating !== undefined) this.#sayDraining();
    this.#restartIdleTimer();
    this.#finishIfDrained();
  }

  #onMessage(message: FromLearnerReceived): void {
    const said = (reason: string | null | undefined, otherwise: string) => reason?.slice(0, LONGEST_SAID) || otherwise;
    if (message.message === "lease") this.#onLease(message.lease);
    else if (message.message === "ack") this.#onAck(message.ack);
    else if (message.message === "revoke") this.#forget(message.revoke.attempt, said(message.revoke.reason, "revoked"));
    else if (message.message === "drain") this.drain(said(message.drain.reason, "asked to by the learner"));
  }

  // --- Work ---------------------------------------------------------------------------------------------------------

  /** Tells the learner how many leases the actor can take. */
  offer(): void {
    const { slots, usableSlots = () => slots } = this.#options;
    const freeSlots = Math.min(usableSlots() - this.#held.running, this.#mostLeases - this.#leased, this.#held.room);
    if (!this.#draining) this.#stream.send({ ready: { freeSlots: Math.max(0, freeSlots) } });
  }

  /** Withdraws earlier offers. */
  #sayDraining(): void {
    this.#stream.send({ ready: { freeSlots: 0, draining: true } });
  }

  #onLease(lease: longrun.v1alpha1.Lease.$Properties): void {
    const attempt = parseAttempt(lease.attempt);
    if (attempt && (this.#held.of(attempt) || this.#ended)) return;
    const { slots } = this.#options;
    if (!attempt) this.#refuse(attempt, "it names no attempt");
    else if (this.#leased >= this.#mostLeases) this.#refuse(attempt, "this actor takes no more leases");
    else if (this.#held.running >= LEASES_PER_SLOT * slots)
      this.#refuse(attempt, `more leases than ${slots} slots can take`);
    else if (this.#held.room === 0) this.#refuse(attempt, "too many results wait for their acknowledgement");
    else void this.#work({ ...lease, attempt });
  }

  /** Refuses a lease that the actor did not offer to take. Reports the loss if a stream is open, and keeps nothing. */
  #refuse(attempt: Attempt | undefined, why: string): void {
    const refused = ++this.#refused;
    // Log the first refusal, then only powers of two.
    if (Number.isInteger(Math.log2(refused)))
      this.#options.log?.warn({ execution: attempt?.execution, refused, reason: why }, "a lease was refused");
    if (!attempt || this.#stream.call?.writableNeedDrain) return;
    const disrupted = this.#terminating !== undefined;
    const result = { ...lostResult(`the lease was refused: ${why}`), disrupted };
    this.#stream.send({ result: headerOf(attempt, result, undefined, this.#options.isolationLevel) });
  }

  async #work(lease: Lease): Promise<void> {
    const { attempt } = lease;
    const held = this.#held.begin(attempt);
    if (++this.#leased === this.#options.maxExecutions) this.drain(`--executions ${this.#leased}`);
    clearTimeout(this.#idleTimer);
    let result = await this.#options.execute(lease, held.abort.signal, (now) => {
      held.progress = now;
    });
    // A program that ended before the kill has a result of its own.
    if (this.#givingBack !== undefined && result.outcome === "lost" && !result.sandboxBroke)
      result = { ...result, detail: this.#givingBack, disrupted: true };
    let submission: PackedSubmission | undefined;
    try {
      submission = result.submission && (await packSubmission(result.submission));
    } catch (error) {
      result = lostResult(`its submission could not be packed: ${(error as Error).message}`);
    }
    this.#held.end(held);
    const { outcome, slot, durationSeconds, detail } = result;
    const ran = { execution: attempt.execution, attempt: attempt.number, outcome, slot, durationSeconds, detail };
    this.#options.log?.info({ ...ran, idleShare: idleShareOf(result) }, "executed");
    if (this.#held.has(held)) {
      held.result = { header: headerOf(attempt, result, submission, this.#options.isolationLevel), submission };
      await this.#handIn.send(held);
    }
    this.offer();
    this.#restartIdleTimer();
    this.#finishIfDrained();
  }

  #onAck({ attempt, accepted, reason }: longrun.v1alpha1.Ack.$Properties): void {
    const held = this.#held.of(attempt);
    if (!held?.result) return;
    if (!accepted && reason === "digest" && ++held.damagedUploads < DAMAGED_UPLOADS) {
      void this.#handIn.send(held);
      return;
    }
    if (!accepted && reason === "busy") {
      void this.#handIn.sendLater(held);
      return;
    }
    if (!accepted && reason !== "duplicate")
      this.#options.log?.warn(
        { execution: held.attempt.execution, reason: reason?.slice(0, LONGEST_SAID) },
        "the learner did not take a result",
      );
    this.#drop(held);
    this.#restartIdleTimer();
    this.#finishIfDrained();
  }

  #forget(attempt: longrun.v1alpha1.Attempt.$Properties | null | undefined, reason: string): void {
    const held = this.#held.of(attempt);
    if (!held) return;
    this.#options.log?.info({ execution: held.attempt.execution, reason }, "revoked");
    this.#drop(held);
    held.abort.abort();
    this.#finishIfDrained();
  }

  /** Forgets the attempt. Offers room for a lease if the actor was full because of it. */
  #drop(held: HeldExecution): void {
    const wasFull = this.#held.room < this.#options.slots;
    this.#held.delete(held);
    if (wasFull) this.offer();
  }

  // --- The end ------------------------------------------------------------------------------------------------------

  #restartIdleTimer(): void {
    clearTimeout(this.#idleTimer);
    const { leavesWhenIdle = true } = this.#options;
    const isIdle = this.#held.size === 0 && this.#held.running === 0 && this.#stream.isConnected;
    if (leavesWhenIdle && this.#idleSeconds > 0 && isIdle)
      this.#idleTimer = setTimeout(() => this.#leave("idle"), this.#idleSeconds * 1000);
  }

  #finishIfDrained(): void {
    if (this.#draining && this.#held.size === 0 && this.#held.running === 0) this.#leave("drained");
  }

  /** Says goodbye if a stream is open. */
  #leave(reason: EndReason): void {
    const { call } = this.#stream;
    if (!call) {
      this.#finish(reason);
      return;
    }
    call.write({ drained: {} }, () => call.end());
    // The learner usually ends its side in answer, but need not.
    const finish = () => this.#finish(reason);
    call.once("status", finish);
    setTimeout(finish, 1000).unref();
  }

  /** Gives up if no learner is left to take the results, because the run is over or deleted. */
  async #giveUpWhenCutOff(): Promise<void> {
    const { handInSeconds = 60, finishSeconds, log } = this.#options;
    while (!this.#ended) {
      const { cutOffSince } = this.#stream;
      const cutOffMs = cutOffSince === undefined ? 0 : performance.now() - cutOffSince;
      const mustStop = this.#terminating !== undefined && finishSeconds !== undefined;
      if (cutOffMs >= handInSeconds * 1000 && (this.#held.running === 0 || mustStop)) {
        log?.warn({ held: this.#held.size }, "the learner stays away; programs and results are given up");
        return this.#finish("drained");
      }
      await sleep(Math.min(1, handInSeconds) * 1000, undefined, { ref: false });
    }
  }

  #finish(reason: EndReason): void {
    this.#ended = true;
    this.#end.resolve(reason);
    this.#stream.close();
  }
}
