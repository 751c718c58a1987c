/**
 * The learner's gRPC server: leases executions to actors, stores their results, and serves the status.
 *
 *     const server = await startServer({ store, status, address: "127.0.0.1:0", tlsDirectory, limitsOf, log });
 *     await server.waitForFinished(batchSize);
 *     await server.close();
 *
 * The store's leases (store/leases.ts) decide about executions; the server only transports messages. When a stream breaks, the leases
 * determine what happens to its actor's executions.
 */
import { setTimeout as sleep } from "node:timers/promises";
import * as grpc from "@grpc/grpc-js";
import { ADDRESS_FORM, readAddress } from "../../proto/address.ts";
import { bind, nameOf, requireRole, serverCredentials } from "../../proto/channel.ts";
import {
  ActorProtocolService,
  channelOptions,
  LearnerControlService,
  LearnerStatusService,
  type longrun,
  messages,
} from "../../proto/service.ts";
import { StoreError } from "../store/errors.ts";
import type { Selection } from "../store/samples.ts";
import type { HeldAttempt } from "../store/types.ts";
import { actorStates, type KnownActor, statusOfActor } from "./actor-states.ts";
import { ActorStream, type WorkCall } from "./actor-stream.ts";
import { controlHandlers } from "./control.ts";
import { ServerError, statusOf } from "./errors.ts";
import { parseResult, type ResultHeader } from "./messages.ts";
import { DEFAULTS, type ServerOptions } from "./options.ts";
import { isOutOfMemory, type LostAttempt, type Termination, Terminations } from "./terminations.ts";
import { deal, Turn } from "./turn.ts";
import { UploadMemory } from "./upload.ts";
import { type Blocked, type WaitOptions, waitForChange } from "./waiting.ts";

/** Most streams of one certificate without a Hello. */
const STREAMS_WITHOUT_HELLO = 4;
const IDLE_CONNECTION_SECONDS = 300;
const HAND_IN_LOOK_SECONDS = 0.2;

/** Starts to listen. Leases from before a restart continue for `leaseGraceSeconds`. @throws ServerError `listen` */
export async function startServer(options: ServerOptions): Promise<LearnerServer> {
  const server = new LearnerServer(options);
  await server.listen();
  return server;
}

export class LearnerServer {
  readonly #options: Required<ServerOptions>;
  readonly #grpc: grpc.Server;
  /** Set by `listen`. */
  port = 0;
  readonly #streams = new Map<string, ActorStream>();
  readonly #strangers = new Set<ActorStream>();
  /** Why all actors are drained; undefined if they are not. */
  #draining: string | undefined;
  /** Actors that are drained individually, with the reason. They may connect later. */
  readonly #leaving = new Map<string, string>();
  /** Unix time since which no actor is connected; undefined while one is. */
  #aloneSinceMs: number | undefined = Date.now();
  readonly #terminations = new Terminations();
  readonly #turn: Turn;
  readonly #uploads: UploadMemory;
  #tick: NodeJS.Timeout | undefined;
  #closed = false;
  #failure: Error | undefined;

  constructor(options: ServerOptions) {
    const tickSeconds = Math.min(1, options.store.leases.leaseSeconds / 4);
    this.#options = { ...DEFAULTS, tickSeconds, ...options };
    this.#uploads = new UploadMemory(this.#options.uploadBytes);
    this.#grpc = new grpc.Server({
      ...channelOptions(this.#options.channel),
      "grpc.max_concurrent_streams": this.#options.maxStreams,
      "grpc.max_connection_idle_ms": IDLE_CONNECTION_SECONDS * 1000,
    });
    this.#grpc.addService(ActorProtocolService, { work: (call: WorkCall) => this.#work(call) });
    this.#grpc.addService(LearnerStatusService, { ...options.status.handlers });
    const control = controlHandlers({
      drainActor: (actor, reason) => this.drain(reason, actor),
      suspend: options.suspend,
      reportTermination: (termination) => this.#reportTermination(termination),
      reportDisruption: (actor) => options.store.leases.disrupted(actor),
    });
    this.#grpc.addService(LearnerControlService, { ...control });
    this.#turn = new Turn({
      store: options.store,
      deal: () => {
        deal(options.store.leases, this.#streams.values());
        options.status.changed();
      },
      onFailure: (error) => this.#noteFailure(error),
    });
    options.status.addSource(() => this.#statusFields());
    const { events } = options.store;
    // A result frees its slot when it is accepted, possibly after the actor reported free slots.
    for (const event of ["queued", "finished"] as const) events.on(event, () => this.#turn.deal());
    events.on("attemptLost", (attempt, reason, state) => {
      options.log.warn({ ...named(attempt), reason, state }, "an attempt was lost");
      this.#streams.get(attempt.actor)?.handIns.lost(attempt);
      options.status.changed();
    });
    events.on("revoked", (attempts, reason) => {
      for (const attempt of attempts) this.#streams.get(attempt.actor)?.revoke(attempt, reason);
      options.status.changed();
    });
  }

  async listen(): Promise<void> {
    const { address, tlsDirectory, tlsRefreshSeconds, store, tickSeconds } = this.#options;
    const credentials = serverCredentials(tlsDirectory, tlsRefreshSeconds);
    const parsed = readAddress(address);
    if (parsed === undefined) throw new ServerError("listen", `--listen ${address}: ${ADDRESS_FORM}`);
    try {
      this.port = await bind(this.#grpc, parsed, credentials);
    } catch (cause) {
      const message = `${address} cannot be listened on: ${(cause as Error).message}; give another --listen`;
      throw new ServerError("listen", message, { cause });
    }
    store.leases.startGrace();
    this.#tick = setInterval(() => this.#onTick(), tickSeconds * 1000);
  }

  /**
   * Runs `work` on the store in the commit that ends this turn of the event loop, together with the turn's results and the leases of
   * executions that `work` queues. @returns when it is on disk @throws the error of `work`, or the commit's StoreError
   */
  write(work: () => void): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const { leases } = this.#options.store;
    this.#turn.write(() => {
      work();
      leases.afterCommit(resolve);
    }, reject);
    return promise;
  }

  get uploadBytes(): number {
    return this.#uploads.heldBytes;
  }

  actors(): KnownActor[] {
    const connected = Array.from(this.#streams.values(), ({ state }) => state);
    return actorStates(connected, this.#options.store.leases.running());
  }

  /** Like `waitForChange` of waiting.ts, and meanwhile shows the obstacle in log and status. */
  async waitForChange(options: WaitOptions = {}): Promise<void> {
    const { log, status, store } = this.#options;
    if (this.#failure !== undefined) throw this.#failure;
    let shown = false;
    const onBlocked = (blocked: Blocked, waitsSinceMs: number) => {
      const { reason, message } = blocked;
      // A lost attempt may end one wait and start the next while no actor is connected.
      const sinceMs = (reason === "NoActors" ? this.#aloneSinceMs : undefined) ?? waitsSinceMs;
      const seconds = Math.round((Date.now() - sinceMs) / 1000);
      // Running programs are normal: log a line, not a warning.
      log[reason === "Executing" ? "info" : "warn"]({ reason, seconds }, message);
      status.update({ message, blocked: reason, blockedSinceUnixMs: sinceMs });
      shown = true;
      options.onBlocked?.(blocked, sinceMs);
    };
    await waitForChange(store, () => this.actors(), { ...options, onBlocked });
    if (shown) status.update({ message: "", blocked: "", blockedSinceUnixMs: 0 });
  }

  /** Resolves when `wanted` samples can be drawn, or nothing more is in flight. @returns the number of samples that can be drawn */
  async waitForFinished(wanted: number, options: WaitOptions & Selection = {}): Promise<number> {
    const { store } = this.#options;
    for (;;) {
      const takeable = store.takeable(options);
      if (takeable >= wanted || store.unfinished({ purpose: options.purpose }) === 0) return takeable;
      await this.waitForChange(options);
    }
  }

  /** Gives no new leases to all actors, or to one, even if they connect later. @returns whether any is connected */
  drain(reason: string, actor?: string): boolean {
    if (actor === undefined) this.#draining = reason;
    else this.#leaving.set(actor, reason);
    const told = [...this.#streams.values()].filter((stream) => actor === undefined || stream.actor === actor);
    for (const stream of told) if (!stream.draining) stream.drain(reason);
    return told.length > 0;
  }

  /** Resolves when no execution runs any more, at the latest after `seconds`. The status shows how many still run. */
  async waitForHandIns(seconds: number, signal: AbortSignal): Promise<void> {
    const { store, status } = this.#options;
    const deadline = performance.now() + seconds * 1000;
    for (;;) {
      const running = store.leases.running().length;
      if (running === 0 || performance.now() >= deadline || signal.aborted) return;
      status.update({ message: `waits for ${running} executions to end` });
      await sleep(Math.min(HAND_IN_LOOK_SECONDS, seconds) * 1000, undefined, { signal }).catch(() => {});
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#tick);
    this.#turn.close();
    for (const stream of [...this.#streams.values(), ...this.#strangers])
      stream.end({ code: grpc.status.UNAVAILABLE, details: "the learner stops" });
    await new Promise<void>((resolve) => {
      const late = setTimeout(() => this.#grpc.forceShutdown(), this.#options.closeSeconds * 1000);
      this.#grpc.tryShutdown(() => {
        clearTimeout(late);
        resolve();
      });
    });
  }

  #work(call: WorkCall): void {
    let certificateName: string;
    try {
      requireRole(call, "actor");
      certificateName = nameOf(call);
      if (this.#closed) throw new ServerError("stopped", "the learner stops");
    } catch (error) {
      call.emit("error", statusOf(error));
      return;
    }
    const stream = new ActorStream(call, {
      ...this.#options,
      certificateName,
      uploads: { stream: new UploadMemory(this.#options.streamUploadBytes), all: this.#uploads },
      onFull: (it, bytes) => this.#makeRoom(it, bytes),
      onHello: (it) => this.#onHello(it),
      write: (work, onFailure) => this.#turn.write(work, onFailure),
      onReady: () => this.#turn.deal(),
      onProgress: () => this.#options.status.changed(),
      onLost: (loss) => this.#onLost(loss),
      onEnd: (it) => this.#onEnd(it),
      onFailure: (it, error) => {
        this.#options.log.warn({ actor: it.actor, peer: call.getPeer(), err: error }, "an actor's stream is ended");
        this.#noteFailure(error);
        it.end(statusOf(error));
      },
    });
    const strangers = [...this.#strangers].filter((it) => it.certificateName === certificateName);
    // Its oldest streams are broken, or the client is no actor.
    if (strangers.length >= STREAMS_WITHOUT_HELLO) {
      const details = `newer streams of ${certificateName} wait for their Hello`;
      strangers[0].end({ code: grpc.status.ABORTED, details });
    }
    this.#strangers.add(stream);
  }

  /** Makes the stream that holds most submissions drop one, if it holds more than `bytes`, so that no actor keeps others out. */
  #makeRoom(asking: ActorStream, bytes: number): boolean {
    const bytesOf = ({ handIns }: ActorStream) => handIns.uploads.heldBytes;
    const others = [...this.#streams.values()].filter((it) => it !== asking && bytesOf(it) > bytes);
    return others.sort((a, b) => bytesOf(b) - bytesOf(a)).some((it) => it.handIns.yieldUpload());
  }

  #onHello(stream: ActorStream): void {
    this.#strangers.delete(stream);
    const older = this.#streams.get(stream.actor);
    this.#streams.set(stream.actor, stream);
    this.#aloneSinceMs = undefined;
    older?.end({ code: grpc.status.ABORTED, details: `a newer stream of ${stream.actor} replaces this one` });
    const { slots, isolationLevel } = stream.state;
    this.#options.log.info({ actor: stream.actor, slots, isolation: isolationLevel }, "actor connected");
    const leaving = this.#draining ?? this.#leaving.get(stream.actor);
    if (leaving !== undefined) stream.drain(leaving);
    this.#options.status.changed();
  }

  #onEnd(stream: ActorStream): void {
    this.#strangers.delete(stream);
    // A newer stream of the same actor may have replaced it.
    if (this.#streams.get(stream.actor) !== stream) return;
    this.#streams.delete(stream.actor);
    if (this.#streams.size === 0) this.#aloneSinceMs = Date.now();
    if (stream.drained) this.#leaving.delete(stream.actor);
    this.#options.log.info({ actor: stream.actor }, "actor disconnected");
    this.#options.status.changed();
  }

  /** @returns the result of a lost attempt, if its container was reported as killed for lack of memory */
  #onLost(loss: LostAttempt): ResultHeader | undefined {
    const cause = this.#terminations.lost(loss);
    return cause && isOutOfMemory(cause) ? outOfMemory(loss, cause) : undefined;
  }

  /** Handles a report of an ended sandbox container. @returns whether it gave a lost attempt its outcome */
  #reportTermination(termination: Termination): boolean {
    const { store, limitsOf, log } = this.#options;
    const loss = this.#terminations.reported(termination);
    if (loss === undefined || !isOutOfMemory(termination)) return false;
    const expected = store.leases.attempts.expectation(loss.attempt.execution);
    const longestSeconds = (loss.lostAtMs - loss.leasedAtMs) / 1000;
    const result =
      expected &&
      parseResult(outOfMemory(loss, termination), expected.insertedMarkers, limitsOf(expected.task), longestSeconds);
    if (result === undefined || !store.leases.settle(loss.actor, loss.attempt, result)) return false;
    log.info({ ...named({ ...loss.attempt, actor: loss.actor }), slot: loss.slot }, result.detail);
    return true;
  }

  #onTick(): void {
    try {
      this.#options.store.checkFence();
      this.#options.store.leases.expire();
      this.#turn.deal();
    } catch (error) {
      this.#noteFailure(error);
    }
    const now = performance.now();
    const { helloSeconds, store } = this.#options;
    const { leaseSeconds } = store.leases;
    const code = grpc.status.DEADLINE_EXCEEDED;
    for (const stream of this.#strangers)
      if (now - stream.heardAt > helloSeconds * 1000)
        stream.end({ code, details: `no Hello within ${helloSeconds} s` });
    for (const stream of this.#streams.values()) {
      stream.handIns.endUploads();
      if (now - stream.heardAt > leaseSeconds * 1000)
        stream.end({ code, details: `no heartbeat for ${leaseSeconds} s` });
    }
  }

  /** Ends the loop's wait with the error, because the store failed. A lock that was held too long is no reason to stop. */
  #noteFailure(error: unknown): void {
    if (!(error instanceof StoreError) || error.code === "busy" || this.#failure !== undefined) return;
    this.#failure = error;
    this.#options.log.error({ err: error }, "the store cannot be used any more");
    this.#options.store.events.emit("failed", error);
  }

  #statusFields(): longrun.v1alpha1.Status.$Properties {
    const { store } = this.#options;
    const { queued, running, completed, lost, retried } = store.totals();
    const disrupted = store.leases.disruptions();
    return {
      executions: { queued, running, completed, lost, retried, disrupted },
      actors: this.actors().map(statusOfActor),
    };
  }
}

/** Returns an attempt's fields for log lines; the actors' logs use the same names. */
const named = ({ execution, number, actor }: HeldAttempt) => ({ execution, attempt: number, actor });

function outOfMemory({ header }: LostAttempt, { reason, exitCode }: Termination): ResultHeader {
  const detail = `the sandbox's container was killed for memory (${reason}, exit code ${exitCode})`;
  return { ...header, outcome: messages.Outcome.OUT_OF_MEMORY, submission: undefined, detail };
}
