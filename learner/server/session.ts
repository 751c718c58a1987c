/**
 * One actor's stream: what it says, what it is told. One bad message ends this stream with a status that names it, and
 * nothing else; an attempt that the message was about counts as lost, so that it cannot come back for ever.
 */
import type * as grpc from "@grpc/grpc-js";
import { ChannelError } from "../../proto/errors.ts";
import { normalizedName } from "../../proto/packages.ts";
import {
  CHUNK_BYTES,
  type FromActorReceived,
  type FromLearnerMessage,
  type longrun,
  messages,
  PROTOCOL_VERSION,
} from "../../proto/service.ts";
import type { Logger } from "../log.ts";
import type { Leases } from "../store/leases.ts";
import type { AttemptKey, LeasedExecution, Result } from "../store/types.ts";
import { ServerError } from "./errors.ts";
import { Flood, type FloodLimits } from "./flood.ts";
import { mostAttempts, parseAttempt, parseHeartbeat, parseHello, whole } from "./messages.ts";
import { type PendingUpload, PendingUploads } from "./pending-uploads.ts";
import { boundedHeader, type Limits, parseResult } from "./results.ts";
import type { Loss } from "./terminations.ts";
import { type Submission, Upload, type UploadMemory } from "./upload.ts";

export type ActorStream = grpc.ServerDuplexStream<FromActorReceived, FromLearnerMessage>;

export interface SessionOptions {
  /** In the certificate that the stream was opened with: the one actor that may speak here. */
  certificateName: string;
  leases: Leases;
  lineage: string;
  limitsOf: (task: string) => Limits;
  packages: readonly string[];
  heartbeatSeconds: number;
  idleSeconds: number;
  helloSeconds: number;
  maxSlots: number;
  /** What unfinished submissions may hold: of this stream, and of all streams. */
  uploads: { stream: UploadMemory; all: UploadMemory };
  /** There is no room in `uploads.all`. @returns whether another stream that holds more has given some back */
  onFull(session: Session, bytes: number): boolean;
  flood: FloodLimits;
  log: Logger;
  now: () => number;
  /** Has `work` done a moment later, with what others want written; `onFailure` if nothing of it is on disk. */
  write(work: () => void, onFailure: (error: unknown) => void): void;
  /** Said hello and was welcomed. */
  onHello(session: Session): void;
  /** Has room for a lease, perhaps. */
  onReady(session: Session): void;
  /** Its numbers have changed. */
  onProgress(session: Session): void;
  /** An attempt was lost. @returns its result, if the program itself is known to be the cause */
  onLost(loss: Loss): longrun.v1alpha1.ResultHeader.$Properties | undefined;
  onEnd(session: Session): void;
  /** @param error a ServerError `protocol`, or a fault of ours */
  onFailure(session: Session, error: unknown): void;
}

/** How often a submission may arrive damaged before its attempt counts as lost. */
const DAMAGED_UPLOADS = 3;

/** Memory that a result takes beside its texts and its submission. */
const RESULT_BYTES = 4096;

/** Reason of an Ack: there is no room for the submission now. */
const BUSY = "busy";

const SANDBOX_BROKE = "the sandbox broke under the program";

export class Session {
  readonly stream: ActorStream;
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
  #options: SessionOptions;
  readonly #uploads: PendingUploads;
  #damaged = new Map<string, number>();
  readonly #flood: Flood;

  constructor(stream: ActorStream, options: SessionOptions) {
    this.stream = stream;
    this.#options = options;
    this.#uploads = new PendingUploads({
      ...options.uploads,
      onFull: (heldBytes) => options.onFull(this, heldBytes),
    });
    this.heardAt = options.now();
    this.#flood = new Flood(options.flood, this.heardAt);
    stream.on("data", (message: FromActorReceived) => this.#receive(message));
    for (const event of ["end", "cancelled", "close", "error"]) stream.on(event, () => this.end());
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
    this.#uploads.drop(attempt.fence);
    this.#send({ revoke: { attempt, reason } });
  }

  /** The lease of this attempt is over: what has come of its submission is not kept. The actor may send it again. */
  lost(attempt: AttemptKey): void {
    if (this.#uploads.drop(attempt.fence)) this.#acknowledge(attempt, BUSY);
  }

  drain(reason: string): void {
    this.draining = true;
    this.#send({ drain: { reason } });
  }

  /** The stream is over, from either side. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.#uploads.dropAll();
    this.stream.end();
    this.#options.onEnd(this);
  }

  /** Ends the stream with a status that is not OK. */
  abort(code: grpc.status, details: string): void {
    if (this.ended) return;
    this.ended = true;
    this.#uploads.dropAll();
    this.stream.emit("error", { code, details });
    this.#options.onEnd(this);
  }

  /** What it says is on disk then. */
  #send(message: FromLearnerMessage): void {
    this.#options.leases.afterCommit(() => {
      if (!this.ended) this.stream.write(message);
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
        this.#result(message.result);
        break;
      case "chunk":
        this.#chunk(message.chunk);
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
    if (message === "chunk" && chunk?.data?.length === CHUNK_BYTES && this.#uploadOf(chunk)) cost = 0;
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
      if (this.#options.leases.judge(this.actor, attempt) !== "duplicate")
        this.revoke(attempt, "it does not count any more");
    }
    this.busySeconds = busySeconds;
    this.aliveSeconds = aliveSeconds;
    this.#options.onProgress(this);
  }

  #result(header: longrun.v1alpha1.ResultHeader.$Properties): void {
    const attempt = parseAttempt(header.attempt);
    const verdict = this.#options.leases.judge(this.actor, attempt);
    if (verdict !== "accepted") {
      this.#acknowledge(attempt, verdict);
      return;
    }
    this.#guarded(attempt, () => {
      const { task, insertedMarkers } = this.#expectation(attempt);
      const limits = this.#options.limitsOf(task);
      const longest = this.#options.leases.longestDuration(attempt);
      const result = parseResult(header, insertedMarkers, limits, longest);
      if (result === undefined) return this.#write(attempt, () => this.#lose(attempt, boundedHeader(header)));
      if (!header.submission) return this.#write(attempt, () => this.#accept(attempt, result));
      const upload = new Upload(header.submission, limits.submissionBytes);
      this.#uploads.drop(attempt.fence);
      if (this.#uploads.size >= mostAttempts(this.slots))
        throw new ServerError("protocol", "too many unfinished submissions");
      const { terminalOutput, detail, submissionRefused, markers } = result;
      const texts = [terminalOutput, detail, submissionRefused, ...markers.map(({ value }) => value)];
      const bytes = upload.compressedBytes + RESULT_BYTES + 2 * texts.join("").length;
      const pending = { attempt, result, upload, bytes, since: this.heardAt };
      if (!this.#uploads.add(pending)) this.#acknowledge(attempt, BUSY);
    });
  }

  /** Ends uploads that no lease bounds: their attempts were lost before their results came. */
  endUploads(): void {
    const { leases, now } = this.#options;
    for (const { attempt } of this.#uploads.olderThan(now() - leases.leaseSeconds * 1000))
      if (!leases.isRunning(attempt)) this.revoke(attempt, "its submission did not come in time");
  }

  /** Memory that its unfinished submissions hold. */
  get uploadBytes(): number {
    return this.#uploads.heldBytes;
  }

  /** Gives up the newest unfinished submission, which the actor may send again. Returns whether there was one. */
  yieldUpload(): boolean {
    const { newest } = this.#uploads;
    if (newest === undefined) return false;
    this.lost(newest.attempt);
    return true;
  }

  #uploadOf(chunk: longrun.v1alpha1.SubmissionChunk.$Properties): PendingUpload | undefined {
    return this.#uploads.get(chunk.attempt?.fence ?? "");
  }

  #chunk(chunk: longrun.v1alpha1.SubmissionChunk.$Properties): void {
    const key = parseAttempt(chunk.attempt);
    const pending = this.#uploadOf(chunk);
    // Of a result that was refused or revoked meanwhile: the actor knows or will know.
    if (pending === undefined) return;
    const { attempt, upload } = pending;
    if (key.execution !== attempt.execution || key.number !== attempt.number)
      throw new ServerError("protocol", `chunk of ${key.execution} with the fence of ${attempt.execution}`);
    this.#guarded(attempt, () => {
      if (!upload.add(chunk.index ?? 0, chunk.data ?? new Uint8Array())) return;
      this.#uploads.complete(attempt.fence);
      void this.#finish(pending);
    });
  }

  /** Checks and writes a submission whose chunks have all come. Its memory counts until it is written. */
  async #finish({ attempt, result, upload, bytes }: PendingUpload): Promise<void> {
    try {
      const submission = await upload.finish();
      if (submission === undefined) this.#refuseDamaged(attempt);
      else
        await new Promise<void>((resolve) => {
          const accept = () => {
            this.#accept(attempt, result, submission);
            this.#options.leases.afterCommit(resolve);
          };
          this.#write(attempt, accept, resolve);
        });
    } catch (error) {
      this.#options.onFailure(this, error);
    } finally {
      this.#uploads.release(bytes);
    }
  }

  #refuseDamaged(attempt: AttemptKey): void {
    const times = (this.#damaged.get(attempt.fence) ?? 0) + 1;
    this.#damaged.set(attempt.fence, times);
    const { execution, number } = attempt;
    const { log } = this.#options;
    log.warn({ execution, attempt: number, actor: this.actor, times }, "a submission arrived damaged");
    if (times >= DAMAGED_UPLOADS) {
      this.#options.leases.fail(this.actor, attempt, "its submission arrived damaged");
      this.#damaged.delete(attempt.fence);
      this.#acknowledge(attempt, "revoked");
    } else this.#acknowledge(attempt, "digest");
  }

  #accept(attempt: AttemptKey, result: Result, submission?: Submission): void {
    if (submission !== undefined) {
      result.submissionBytes = submission.bytes;
      result.submissionSha256 = submission.sha256;
    }
    this.#damaged.delete(attempt.fence);
    this.#acknowledge(attempt, this.#options.leases.accept(this.actor, attempt, result, submission?.deflated));
  }

  /** The actor says that the attempt was lost. The program may have been the cause: then that is its result. */
  #lose(attempt: AttemptKey, header: longrun.v1alpha1.ResultHeader.$Properties): void {
    const { leases, limitsOf } = this.#options;
    const cause = this.#explainLoss(attempt, header) ?? this.#blameProgram(attempt, header);
    const { task, insertedMarkers } = this.#expectation(attempt);
    const result = cause && parseResult(cause, insertedMarkers, limitsOf(task), leases.longestDuration(attempt));
    if (result !== undefined) {
      this.#accept(attempt, result);
      return;
    }
    const reason = header.detail || "lost by the actor";
    const sandboxBroke = header.sandboxBroke === true;
    const said = sandboxBroke ? `${SANDBOX_BROKE}: ${reason}` : reason;
    const disrupted = header.disrupted === true && !sandboxBroke;
    this.#acknowledge(attempt, leases.fail(this.actor, attempt, said, { sandboxBroke, disrupted }));
  }

  #explainLoss(attempt: AttemptKey, header: longrun.v1alpha1.ResultHeader.$Properties) {
    const { slot } = header;
    const leasedAtMs = this.#options.leases.leasedAtMs(attempt);
    if (slot === undefined || slot === null || leasedAtMs === undefined) return undefined;
    return this.#options.onLost({ actor: this.actor, slot, attempt, header, leasedAtMs, lostAtMs: Date.now() });
  }

  /** @returns the result of a program under which every sandbox that tried it has ended: it is the program */
  #blameProgram(attempt: AttemptKey, header: longrun.v1alpha1.ResultHeader.$Properties) {
    const { leases } = this.#options;
    if (!header.sandboxBroke || leases.brokenSandboxes(attempt.execution) + 1 < leases.maxAttempts) return undefined;
    const detail = `${SANDBOX_BROKE}, ${leases.maxAttempts} times in a row: ${header.detail ?? ""}`;
    return { ...header, outcome: messages.Outcome.FAILED, submission: undefined, detail };
  }

  #expectation(attempt: AttemptKey) {
    const expected = this.#options.leases.expectation(attempt.execution);
    if (expected === undefined) throw new ServerError("protocol", `there is no execution ${attempt.execution}`);
    return expected;
  }

  #acknowledge(attempt: AttemptKey, reason: string): void {
    this.#send({ ack: { attempt, accepted: reason === "accepted", reason } });
  }

  /** Done at the end of this turn of the event loop, in one commit with what else has come. */
  #write(attempt: AttemptKey, work: () => void, onFailure: () => void = () => {}): void {
    this.#options.write(work, (cause) => {
      onFailure();
      try {
        this.#guarded(attempt, () => {
          throw cause;
        });
      } catch (error) {
        this.#options.onFailure(this, error);
      }
    });
  }

  /** What breaks the protocol in the handling of an attempt's result loses that attempt, too. */
  #guarded(attempt: AttemptKey, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (error instanceof ServerError) this.#options.leases.fail(this.actor, attempt, error.message.slice(0, 200));
      throw error;
    }
  }
}
