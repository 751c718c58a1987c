/** One actor's stream of messages in both directions. A bad message ends only this stream, with a status. */
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
import type { ConnectedActor } from "./actor-states.ts";
import { ServerError } from "./errors.ts";
import { floodGate } from "./flood.ts";
import { HandIns, type HandInsOptions } from "./hand-ins.ts";
import { type Introduction, parseHeartbeat, parseHello, whole } from "./messages.ts";
import type { ServerOptions } from "./options.ts";
import type { UploadLimits } from "./upload.ts";

export type WorkCall = grpc.ServerDuplexStream<FromActorReceived, FromLearnerMessage>;

interface ActorStreamOptions
  extends Pick<
      Required<ServerOptions>,
      | ("store" | "limitsOf" | "packages" | "log" | "maxSlots")
      | ("heartbeatSeconds" | "idleSeconds" | "messagesPerSecond" | "floodSeconds")
    >,
    Pick<HandInsOptions, "write" | "onLost"> {
  uploads: Omit<UploadLimits, "onFull">;
  /** Name in the stream's certificate: the only actor that may use the stream. */
  certificateName: string;
  /** Called when `uploads.all` is full. @returns whether another stream that holds more has given up an upload */
  onFull(stream: ActorStream, bytes: number): boolean;
  onHello(stream: ActorStream): void;
  onReady(): void;
  onProgress(): void;
  onEnd(stream: ActorStream): void;
  /** @param error a ServerError `protocol`, or a fault of the learner */
  onFailure(stream: ActorStream, error: unknown): void;
}

export class ActorStream {
  readonly #call: WorkCall;
  readonly #options: ActorStreamOptions;
  readonly #floods: ReturnType<typeof floodGate>;
  readonly handIns: HandIns;
  /** The actor's introduction; undefined until Hello. */
  #hello: Introduction | undefined;
  /** Slot-seconds since the actor started. */
  #busySeconds = 0;
  #aliveSeconds = 0;
  #freeSlots = 0;
  draining = false;
  drained = false;
  ended = false;
  /** When the newest message arrived, in milliseconds of `performance.now`. */
  heardAt = performance.now();

  constructor(call: WorkCall, options: ActorStreamOptions) {
    this.#call = call;
    this.#options = options;
    this.handIns = new HandIns(this, {
      ...options,
      leases: options.store.leases,
      uploads: { ...options.uploads, onFull: (bytes) => options.onFull(this, bytes) },
      onFailure: (error) => options.onFailure(this, error),
      acknowledge: (attempt, reason) => this.#send({ ack: { attempt, accepted: reason === "accepted", reason } }),
      revoke: (attempt, reason) => this.revoke(attempt, reason),
    });
    this.#floods = floodGate(options, this.heardAt);
    call.on("data", (message: FromActorReceived) => this.#receive(message));
    for (const event of ["end", "cancelled", "close", "error"]) call.on(event, () => this.end());
  }

  get certificateName(): string {
    return this.#options.certificateName;
  }

  get actor(): string {
    return this.#hello?.actor ?? "";
  }

  get slots(): number {
    return this.#hello?.slots ?? 0;
  }

  get state(): ConnectedActor {
    const { isolationLevel = "", isolationMissing = [], versions = {} } = this.#hello ?? {};
    return {
      name: this.actor,
      connected: true,
      draining: this.draining,
      slots: this.slots,
      isolationLevel,
      isolationMissing,
      versions,
      busySeconds: this.#busySeconds,
      aliveSeconds: this.#aliveSeconds,
    };
  }

  get freeSlots(): number {
    if (this.actor === "" || this.draining || this.ended) return 0;
    return Math.max(0, Math.min(this.#freeSlots, this.slots - this.#options.store.leases.runningOf(this.actor)));
  }

  lease(execution: LeasedExecution): void {
    this.#freeSlots--;
    const { execution: id, number, task, program, nonce, executionSeed } = execution;
    this.#options.log.debug({ execution: id, attempt: number, actor: this.actor }, "leased");
    const run = { task, program: Buffer.from(program), markerNonce: nonce, seed: executionSeed };
    this.#send({ lease: { attempt: execution, ...run, limits: this.#options.limitsOf(task) } });
  }

  revoke(attempt: AttemptKey, reason: string): void {
    this.handIns.uploads.drop(attempt);
    this.#send({ revoke: { attempt, reason } });
  }

  drain(reason: string): void {
    this.draining = true;
    this.#send({ drain: { reason } });
  }

  /** Ends the stream, or handles its end. @param status the status to end it with, if that is not OK */
  end(status?: Pick<grpc.StatusObject, "code" | "details">): void {
    if (this.ended) return;
    this.ended = true;
    this.handIns.uploads.dropAll();
    if (status) this.#call.emit("error", status);
    else this.#call.end();
    this.#options.onEnd(this);
  }

  /** Sends the message when everything that it mentions is on disk. */
  #send(message: FromLearnerMessage): void {
    this.#options.store.leases.afterCommit(() => {
      if (!this.ended) this.#call.write(message);
    });
  }

  #receive(message: FromActorReceived): void {
    if (this.ended) return;
    this.heardAt = performance.now();
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
        this.#onHello(message.hello);
        break;
      case "ready":
        this.#freeSlots = whole(message.ready.freeSlots, "free_slots", this.#options.maxSlots);
        this.draining ||= message.ready.draining === true;
        this.#options.onReady();
        break;
      case "heartbeat":
        this.#onHeartbeat(message.heartbeat);
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

  /** A message counts by the number of attempts that it names. A whole chunk does not count, because its upload was announced. */
  #checkFlood({ message, heartbeat, chunk }: FromActorReceived): void {
    let cost = 1;
    if (message === "heartbeat") cost += heartbeat?.running?.length ?? 0;
    const isPart = () => this.handIns.uploads.byFence.has(chunk?.attempt?.fence ?? "");
    if (message === "chunk" && chunk?.data?.length === CHUNK_BYTES && isPart()) cost = 0;
    if (!this.#floods(this.heardAt, cost)) return;
    const { messagesPerSecond, floodSeconds } = this.#options;
    const limit = `${messagesPerSecond} messages a second for ${floodSeconds} s`;
    throw new ServerError("flood", `more than ${limit}: no actor has so much to say`);
  }

  #onHello(message: longrun.v1alpha1.Hello.$Properties): void {
    if (this.actor !== "") throw new ServerError("protocol", "a second Hello on one stream");
    const { store, maxSlots, heartbeatSeconds, idleSeconds, onHello } = this.#options;
    const hello = parseHello(message, maxSlots);
    this.#checkName(hello.actor);
    this.#checkPackages(hello.packages);
    this.#hello = hello;
    const revoked = store.leases.reconcile(hello.actor, hello.holding);
    const { leaseSeconds } = store.leases;
    const times = { heartbeatSeconds, leaseSeconds, idleSeconds };
    this.#send({
      welcome: { protocolVersion: PROTOCOL_VERSION, lineage: String(store.lineage), ...times, revoked },
    });
    onHello(this);
  }

  /** A certificate of one actor must not allow a Hello as another actor, which would end that actor's leases. */
  #checkName(actor: string): void {
    const { certificateName } = this.#options;
    if (actor === certificateName) return;
    throw new ChannelError(
      "permissionDenied",
      `the certificate is of ${certificateName.slice(0, 80)} and Hello says ${actor}: start the actor with the certificate of its own name (on Kubernetes Secret ${actor}-tls; an actor of longrun 0.1 has none and is replaced by the controller)`,
    );
  }

  /** Programs must find every promised package. @param installed empty for an actor of longrun 0.1 */
  #checkPackages(installed: Record<string, string>): void {
    if (Object.keys(installed).length === 0) return;
    const missing = this.#options.packages.filter((name) => !Object.hasOwn(installed, normalizedName(name)));
    if (missing.length > 0)
      throw new ServerError(
        "packages",
        `its sandbox lacks ${missing.join(", ")}, which spec.actors.packages promises: give it an image that has them (spec.actors.sandboxImage, built of the target sandbox-paper; on one machine spec.actors.packages: Paper), or name what it has in spec.prompts.packages`,
      );
  }

  #onHeartbeat(heartbeat: longrun.v1alpha1.Heartbeat.$Properties): void {
    const { running, busySeconds, aliveSeconds } = parseHeartbeat(heartbeat, this.slots);
    const { leases } = this.#options.store;
    // An attempt whose result is already known is acknowledged when the result is handed in.
    for (const attempt of leases.extend(this.actor, running))
      if (leases.attempts.judge(this.actor, attempt) !== "duplicate")
        this.revoke(attempt, "it does not count any more");
    this.#busySeconds = busySeconds;
    this.#aliveSeconds = aliveSeconds;
    this.#options.onProgress();
  }
}
