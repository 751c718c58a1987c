/**
 * The learner's gRPC server: leases executions to actors, takes their results into the store, and serves the status.
 *
 *     const server = await startServer({ store, status, address: "127.0.0.1:0", tlsDirectory, limitsOf, log });
 *     await server.waitForFinished(batchSize);
 *     await server.close();
 *
 * The store decides (store/leases.ts); this part only speaks. Whatever happens to a stream, the store's leases say
 * what becomes of the executions that its actor holds.
 */
import { setTimeout as sleep } from "node:timers/promises";
import * as grpc from "@grpc/grpc-js";
import { nameOf, requireRole, serverCredentials } from "../../proto/channel.ts";
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
import { actorStates, statusOfActor } from "./actor-states.ts";
import { ActorStream, type WorkCall } from "./actor-stream.ts";
import { controlHandlers } from "./control.ts";
import { deal } from "./dealer.ts";
import { ServerError, statusOf } from "./errors.ts";
import type { ActorState, ServerOptions } from "./options.ts";
import { parseResult } from "./results.ts";
import { isOutOfMemory, type Loss, type Termination, Terminations } from "./terminations.ts";
import { Turn } from "./turn.ts";
import { UploadMemory } from "./upload.ts";
import { type Blocked, type WaitOptions, waitForChange, whatBlocks } from "./waiting.ts";

/** Streams of one certificate that have not said Hello yet, at once. */
const STREAMS_WITHOUT_HELLO = 4;
/** A connection without a call for so long is closed. */
const IDLE_CONNECTION_SECONDS = 300;

/** How often the end of the last executions is looked for. */
const HAND_IN_LOOK_SECONDS = 0.2;

/** Listens. Leases of a learner before this one run on for `leaseGraceSeconds` from here. @throws ServerError `listen` */
export async function startServer(options: ServerOptions): Promise<LearnerServer> {
  const server = new LearnerServer(options);
  await server.listen();
  return server;
}

export class LearnerServer {
  #options: Required<ServerOptions>;
  #grpc: grpc.Server;
  #port = 0;
  /** Connected, by actor. */
  #streams = new Map<string, ActorStream>();
  /** Streams whose actor has not said hello. */
  #strangers = new Set<ActorStream>();
  #draining: string | undefined;
  /** Unix time since which no actor is connected; undefined while one is. */
  #aloneSinceMs: number | undefined = Date.now();
  /** Actors that are to go, with the reason: also when they connect later. */
  #leaving = new Map<string, string>();
  #terminations = new Terminations();
  #closed = false;
  readonly #turn: Turn;
  /** Of all streams together. */
  readonly #uploads: UploadMemory;
  #tick: NodeJS.Timeout | undefined;
  /** Why the store cannot be used any more. */
  #failure: Error | undefined;

  constructor(options: ServerOptions) {
    this.#options = {
      heartbeatSeconds: 5,
      idleSeconds: 300,
      helloSeconds: 10,
      maxSlots: 256,
      streamUploadBytes: 64 * 2 ** 20,
      uploadBytes: 512 * 2 ** 20,
      messagesPerSecond: 5000,
      floodSeconds: 10,
      maxStreams: 4096,
      tickSeconds: Math.min(1, options.store.leases.leaseSeconds / 4),
      closeSeconds: 1,
      tlsRefreshSeconds: 10,
      packages: [],
      channel: {},
      ...options,
    };
    this.#uploads = new UploadMemory(this.#options.uploadBytes);
    this.#grpc = new grpc.Server({
      ...channelOptions(this.#options.channel),
      "grpc.max_concurrent_streams": this.#options.maxStreams,
      "grpc.max_connection_idle_ms": IDLE_CONNECTION_SECONDS * 1000,
    });
    this.#grpc.addService(ActorProtocolService, { work: (call: WorkCall) => this.#work(call) });
    this.#grpc.addService(LearnerStatusService, { ...options.status.handlers });
    this.#grpc.addService(LearnerControlService, {
      ...controlHandlers({
        drainActor: (actor, reason) => this.drain(reason, actor),
        suspend: options.suspend,
        reportTermination: (termination) => this.#reportTermination(termination),
        reportDisruption: (actor) => options.store.leases.disrupted(actor),
      }),
    });
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
    events.on("queued", () => this.#turn.deal());
    // A result frees its slot only when it is accepted, which can be after the actor said that it has room.
    events.on("finished", () => this.#turn.deal());
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
    this.#port = await new Promise<number>((resolve, reject) => {
      this.#grpc.bindAsync(address, credentials, (cause, port) => {
        if (cause === null) resolve(port);
        else
          reject(
            new ServerError("listen", `${address} cannot be listened on: ${cause.message}; give another --listen`, {
              cause,
            }),
          );
      });
    });
    store.leases.startGrace();
    this.#tick = setInterval(() => this.#onTick(), tickSeconds * 1000);
  }

  /** Bytes that submissions hold which are not in the store yet. */
  get uploadBytes(): number {
    return this.#uploads.heldBytes;
  }

  get port(): number {
    return this.#port;
  }

  /** Actors that are connected, and those that are not and still hold leases. */
  actors(): ActorState[] {
    return actorStates(this.#streams.values(), this.#options.store.leases.running());
  }

  /**
   * Resolves at the next result, lost attempt or discarded execution. What blocks is logged and shown in the status.
   * @throws ServerError `stalled` as `options` say; the reason of `signal` if it fires
   */
  async waitForChange(options: WaitOptions = {}): Promise<void> {
    const { log, status, store } = this.#options;
    if (this.#failure !== undefined) throw this.#failure;
    let shown = false;
    const onBlocked = (blocked: Blocked, waitsSinceMs: number) => {
      const { reason, message } = blocked;
      // One wait may end with a lost attempt and the next begin, and no actor is there all the while.
      const sinceMs = (reason === "NoActors" ? this.#aloneSinceMs : undefined) ?? waitsSinceMs;
      const seconds = Math.round((Date.now() - sinceMs) / 1000);
      // Programs that run are no trouble: worth a line, not a warning.
      log[reason === "Executing" ? "info" : "warn"]({ reason, seconds }, message);
      status.update({ message, blocked: reason, blockedSinceUnixMs: sinceMs });
      shown = true;
      options.onBlocked?.(blocked, sinceMs);
    };
    await waitForChange(store, () => this.actors(), { ...options, onBlocked });
    if (shown) status.update({ message: "", blocked: "", blockedSinceUnixMs: 0 });
  }

  /**
   * Resolves when `wanted` finished, unused samples can be drawn, or as soon as nothing is in flight that could become
   * one (the others were lost): then with fewer. @returns how many. @throws as waitForChange
   */
  async waitForFinished(wanted: number, options: WaitOptions & Selection = {}): Promise<number> {
    const { store } = this.#options;
    for (;;) {
      const there = store.takeable(options);
      if (there >= wanted || store.unfinished({ purpose: options.purpose }) === 0) return there;
      await this.waitForChange(options);
    }
  }

  /** Why no further result is there yet. */
  whatBlocks(): Blocked {
    return whatBlocks(this.#options.store.totals(), this.actors());
  }

  /**
   * No new leases: to all actors, or to one, also if they connect later. They finish, hand in and exit.
   * @returns whether any of them is connected
   */
  drain(reason: string, actor?: string): boolean {
    if (actor === undefined) this.#draining = reason;
    else this.#leaving.set(actor, reason);
    const told = [...this.#streams.values()].filter((stream) => actor === undefined || stream.actor === actor);
    for (const stream of told) if (!stream.draining) stream.drain(reason);
    return told.length > 0;
  }

  /**
   * Resolves when no execution runs any more, and after `seconds` in any case: what runs on then is run again by the
   * learner that goes on with the run. Shown in the status.
   */
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

  /** Ends all streams; actors keep what they run and come back. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#tick);
    this.#turn.close();
    for (const stream of [...this.#streams.values(), ...this.#strangers])
      stream.abort(grpc.status.UNAVAILABLE, "the learner stops");
    await new Promise<void>((resolve) => {
      const late = setTimeout(() => this.#grpc.forceShutdown(), this.#options.closeSeconds * 1000);
      this.#grpc.tryShutdown(() => {
        clearTimeout(late);
        resolve();
      });
    });
  }

  #work(call: WorkCall): void {
    const { store, limitsOf, packages, heartbeatSeconds, idleSeconds, helloSeconds, maxSlots, log } = this.#options;
    const { streamUploadBytes, messagesPerSecond, floodSeconds } = this.#options;
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
      certificateName,
      leases: store.leases,
      lineage: String(store.lineage),
      limitsOf,
      packages,
      heartbeatSeconds,
      idleSeconds,
      helloSeconds,
      maxSlots,
      uploads: { stream: new UploadMemory(streamUploadBytes), all: this.#uploads },
      onFull: (it, bytes) => this.#makeRoom(it, bytes),
      flood: { messagesPerSecond, floodSeconds },
      log,
      now: () => performance.now(),
      onHello: (it) => this.#onHello(it),
      write: (work, onFailure) => this.#turn.write(work, onFailure),
      onReady: () => this.#turn.deal(),
      onProgress: () => this.#options.status.changed(),
      onLost: (loss) => this.#onLost(loss),
      onEnd: (it) => this.#onEnd(it),
      onFailure: (it, error) => {
        log.warn({ actor: it.actor, peer: call.getPeer(), err: error }, "an actor's stream is ended");
        this.#noteFailure(error);
        const { code, details } = statusOf(error);
        it.abort(code, details);
      },
    });
    const strangers = [...this.#strangers].filter((it) => it.certificateName === certificateName);
    // Of one that dials again and again the first ones are broken, or it is no actor.
    if (strangers.length >= STREAMS_WITHOUT_HELLO)
      strangers[0]!.abort(grpc.status.ABORTED, `newer streams of ${certificateName} wait for their Hello`);
    this.#strangers.add(stream);
  }

  /** Of the stream whose submissions hold most one goes, if that is more than `bytes`: nobody keeps others out. */
  #makeRoom(asking: ActorStream, bytes: number): boolean {
    const others = [...this.#streams.values()].filter((it) => it !== asking && it.handIns.uploadBytes > bytes);
    return others.sort((a, b) => b.handIns.uploadBytes - a.handIns.uploadBytes).some((it) => it.handIns.yieldUpload());
  }

  #onHello(stream: ActorStream): void {
    this.#strangers.delete(stream);
    const older = this.#streams.get(stream.actor);
    this.#streams.set(stream.actor, stream);
    this.#aloneSinceMs = undefined;
    older?.abort(grpc.status.ABORTED, `a newer stream of ${stream.actor} replaces this one`);
    this.#options.log.info(
      { actor: stream.actor, slots: stream.slots, isolation: stream.isolationLevel },
      "actor connected",
    );
    const leaving = this.#draining ?? this.#leaving.get(stream.actor);
    if (leaving !== undefined) stream.drain(leaving);
    this.#options.status.changed();
  }

  #onEnd(stream: ActorStream): void {
    this.#strangers.delete(stream);
    // Not if a newer stream of the same actor has taken its place.
    if (this.#streams.get(stream.actor) !== stream) return;
    this.#streams.delete(stream.actor);
    if (this.#streams.size === 0) this.#aloneSinceMs = Date.now();
    if (stream.drained) this.#leaving.delete(stream.actor);
    this.#options.log.info({ actor: stream.actor }, "actor disconnected");
    this.#options.status.changed();
  }

  /** An actor lost an attempt. @returns its result, if it is known already that the program took its sandbox down */
  #onLost(loss: Loss): longrun.v1alpha1.ResultHeader.$Properties | undefined {
    const cause = this.#terminations.lost(loss);
    return cause && isOutOfMemory(cause) ? outOfMemory(loss, cause) : undefined;
  }

  /** A sandbox's container ended. @returns whether that has given an attempt, lost before, its outcome */
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
    for (const stream of this.#strangers) {
      if (now - stream.heardAt > helloSeconds * 1000)
        stream.abort(grpc.status.DEADLINE_EXCEEDED, `no Hello within ${helloSeconds} s`);
    }
    for (const stream of this.#streams.values()) {
      stream.handIns.endUploads();
      if (now - stream.heardAt > store.leases.leaseSeconds * 1000)
        stream.abort(grpc.status.DEADLINE_EXCEEDED, `no heartbeat for ${store.leases.leaseSeconds} s`);
    }
  }

  /** The loop learns of it in its next wait; a lock that was held too long is no reason to stop. */
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

/** An attempt as log lines name it, here as in actors. */
const named = ({ execution, number, actor }: HeldAttempt) => ({ execution, attempt: number, actor });

/** What an actor reported as lost, as the program's own end. */
function outOfMemory({ header }: Loss, { reason, exitCode }: Termination): longrun.v1alpha1.ResultHeader.$Properties {
  const detail = `the sandbox's container was killed for memory (${reason}, exit code ${exitCode})`;
  return { ...header, outcome: messages.Outcome.OUT_OF_MEMORY, submission: undefined, detail };
}
