/**
 * One actor's stream: what it says, what it is told. One bad message ends this stream with a status that names it, and
 * nothing else.
 */
import type * as grpc from "@grpc/grpc-js";
import { ChannelError } from "../../proto/errors.ts";
import { normalizedName } from "../../proto/packages.ts";
import {
  CHUNK_BYTES,
  type FromActorReceived,
  type FromLearnerMessage,
  type longrun,
  PROTOCOL_VERSION,
} from "../../proto/service.ts";
import type { AttemptKey, LeasedExecution } from "../store/types.ts";
import { ServerError } from "./errors.ts";
import { Flood, type FloodLimits } from "./flood.ts";
import { HandIns, type HandInsOptions } from "./hand-ins.ts";
import { parseHeartbeat, parseHello, whole } from "./messages.ts";

export type WorkCall = grpc.ServerDuplexStream<FromActorReceived, FromLearnerMessage>;

export interface ActorStreamOptions
  extends Pick<HandInsOptions, "leases" | "limitsOf" | "uploads" | "log" | "now" | "write" | "onLost"> {
  /** In the certificate that the stream was opened with: the one actor that may speak here. */
  certificateName: string;
  lineage: string;
  packages: readonly string[];
  heartbeatSeconds: number;
  idleSeconds: number;
  helloSeconds: number;
  maxSlots: number;
  /** There is no room in `uploads.all`. @returns whether another stream that holds more has given some back */
  onFull(stream: ActorStream, bytes: number): boolean;
  flood: FloodLimits;
  /** Said hello and was welcomed. */
  onHello(stream: ActorStream): void;
  /** Has room for a lease, perhaps. */
  onReady(stream: ActorStream): void;
  /** Its numbers have changed. */
  onProgress(stream: ActorStream): void;
  onEnd(stream: ActorStream): void;
  /** @param error a ServerError `protocol`, or a fault of ours */
  onFailure(stream: ActorStream, error: unknown): void;
}

export class ActorStream {
  readonly #call: WorkCall;
  /** Empty until Hello. */
  actor = "";
  isolationLevel = "";
  /** Layers of isolation that its machine does not have. */
  isolationMissing: string[] = [];
  /** Of Python and its packages, as the actor found them. */
  versions: Record<string, string> = {};
  slots = 0;
  /** slot-seconds since the actor started */
  busySeconds = 0;
  aliveSeconds = 0;
  draining = false;
  /** Said goodbye. */
  drained = false;
  ended = false;
  /** When the newest message came. */
  heardAt: number;
  #freeSlots = 0;
  #options: ActorStreamOptions;
  readonly handIns: HandIns;
  readonly #flood: Flood;

  constructor(call: WorkCall, options: ActorStreamOptions) {
    this.#call = call;
    this.#options = options;
    this.handIns = new HandIns(this, {
      ...options,
      onFull: (bytes) => options.onFull(this, bytes),
      onFailure: (error) => options.onFailure(this, error),
      acknowledge: (attempt, reason) => this.#acknowledge(attempt, reason),
      revoke: (attempt, reason) => this.revoke(attempt, reason),
    });
    this.heardAt = options.now();
    this.#flood = new Flood(options.flood, this.heardAt);
    call.on("data", (message: FromActorReceived) => this.#receive(message));
    for (const event of ["end", "cancelled", "close", "error"]) call.on(event, () => this.end());
  }

  /** The one actor that may speak here. */
  get certificateName(): string {
    return this.#options.certificateName;
  }

  /** Leases that it may be given now. */
  get freeSlots(): number {
    if (this.actor === "" || this.draining || this.ended) return 0;
    return Math.max(0, Math.min(this.#freeSlots, this.slots - this.#options.leases.runningOf(this.actor)));
  }

  lease(execution: LeasedExecution): void {
    this.#freeSlots--;
    const { execution: id, number } = execution;
    this.#options.log.debug({ execution: id, attempt: number, actor: this.actor }, "leased");
    this.#send({
      lease: {
        attempt: execution,
        task: execution.task,
        program: Buffer.from(execution.program),
        markerNonce: execution.nonce,
        limits: this.#options.limitsOf(execution.task),
        seed: execution.executionSeed,
      },
    });
  }

  revoke(attempt: AttemptKey, reason: string): void {
    this.handIns.drop(attempt);
    this.#send({ revoke: { attempt, reason } });
  }

  drain(reason: string): void {
    this.draining = true;
    this.#send({ drain: { reason } });
  }

  /** The stream is over, from either side. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.handIns.dropAll();
    this.#call.end();
    this.#options.onEnd(this);
  }

  /** Ends the stream with a status that is not OK. */
  abort(code: grpc.status, details: string): void {
    if (this.ended) return;
    this.ended = true;
    this.handIns.dropAll();
    this.#call.emit("error", { code, details });
    this.#options.onEnd(this);
  }

  /** What it says is on disk then. */
  #send(message: FromLearnerMessage): void {
    this.#options.leases.afterCommit(() => {
      if (!this.ended) this.#call.write(message);
    });
  }

  #receive(message: FromActorReceived): void {
    if (this.ended) return;
    this.heardAt = this.#options.now();
    try {
      this.#checkFlood(message);
      this.#dispatch(message);
    } catch (error) {
      this.#options.onFailure(this, error);
    }
  }

  #dispatch(message: FromActorReceived): void {
    if (this.actor === "" && message.message !== "hello")
      throw new ServerError("protocol", "the first message is not Hello");
    switch (message.message) {
      case "hello":
        this.#hello(message.hello);
        break;
      case "ready":
        this.#freeSlots = whole(message.ready.freeSlots, "free_slots", this.#options.maxSlots);
        this.draining ||= message.ready.draining === true;
        this.#options.onReady(this);
        break;
      case "heartbeat":
        this.#heartbeat(message.heartbeat);
        break;
      case "result":
        this.handIns.result(message.result);
        break;
      case "chunk":
        this.handIns.chunk(message.chunk);
        break;
      case "drained":
        this.draining = true;
        this.drained = true;
        this.end();
        break;
      default:
        throw new ServerError("protocol", "a message of a kind that this learner does not know");
    }
  }

  /** A message costs as much as the attempts that it names; a whole chunk nothing, its upload was announced. */
  #checkFlood({ message, heartbeat, chunk }: FromActorReceived): void {
    let cost = 1;
    if (message === "heartbeat") cost += heartbeat?.running?.length ?? 0;
    if (message === "chunk" && chunk?.data?.length === CHUNK_BYTES && this.handIns.uploadOf(chunk)) cost = 0;
    if (!this.#flood.exceeds(this.heardAt, cost)) return;
    const { messagesPerSecond, floodSeconds } = this.#options.flood;
    throw new ServerError(
      "flood",
      `more than ${messagesPerSecond} messages a second for ${floodSeconds} s: no actor has so much to say`,
    );
  }

  #hello(hello: longrun.v1alpha1.Hello.$Properties): void {
    if (this.actor !== "") throw new ServerError("protocol", "a second Hello on one stream");
    const it = parseHello(hello, this.#options.maxSlots);
    this.#checkName(it.actor);
    this.#checkPackages(it.packages);
    this.actor = it.actor;
    this.slots = it.slots;
    this.isolationLevel = it.isolationLevel;
    this.isolationMissing = it.isolationMissing;
    this.versions = it.versions;
    const revoked = this.#options.leases.reconcile(it.actor, it.holding);
    this.#send({
      welcome: {
        protocolVersion: PROTOCOL_VERSION,
        lineage: this.#options.lineage,
        heartbeatSeconds: this.#options.heartbeatSeconds,
        leaseSeconds: this.#options.leases.leaseSeconds,
        idleSeconds: this.#options.idleSeconds,
        revoked,
      },
    });
    this.#options.onHello(this);
  }

  /** Whoever has one actor's certificate can speak for no other, whose leases a Hello in its name would end. */
  #checkName(actor: string): void {
    const { certificateName } = this.#options;
    if (actor === certificateName) return;
    throw new ChannelError(
      "permissionDenied",
      `the certificate is of ${certificateName.slice(0, 80)} and Hello says ${actor}: start the actor with the certificate of its own name (on Kubernetes Secret ${actor}-tls; an actor of longrun 0.1 has none and is replaced by the controller)`,
    );
  }

  /** Nothing is promised that programs do not find. @param installed nothing: of an actor of 0.1, which does not say */
  #checkPackages(installed: Record<string, string>): void {
    if (Object.keys(installed).length === 0) return;
    const missing = this.#options.packages.filter((name) => !Object.hasOwn(installed, normalizedName(name)));
    if (missing.length > 0)
      throw new ServerError(
        "packages",
        `its sandbox lacks ${missing.join(", ")}, which spec.actors.packages promises: give it an image that has them (spec.actors.sandboxImage, built of the target sandbox-paper; on one machine spec.actors.packages: Paper), or name what it has in spec.prompts.packages`,
      );
  }

  #heartbeat(heartbeat: longrun.v1alpha1.Heartbeat.$Properties): void {
    const { running, busySeconds, aliveSeconds } = parseHeartbeat(heartbeat, this.slots);
    const stale = this.#options.leases.extend(this.actor, running);
    // A result that is known already is acknowledged when it is handed in.
    for (const attempt of stale) {
      if (this.#options.leases.attempts.judge(this.actor, attempt) !== "duplicate")
        this.revoke(attempt, "it does not count any more");
    }
    this.busySeconds = busySeconds;
    this.aliveSeconds = aliveSeconds;
    this.#options.onProgress(this);
  }

  #acknowledge(attempt: AttemptKey, reason: string): void {
    this.#send({ ack: { attempt, accepted: reason === "accepted", reason } });
  }
}
