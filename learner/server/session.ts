/**
 * One actor's stream: what it says, what it is told. One bad message ends this stream with a status that names it, and
 * nothing else; an attempt that the message was about counts as lost, so that it cannot come back for ever.
 */
import type * as grpc from "@grpc/grpc-js";
import { ChannelError } from "../../proto/errors.ts";
import { normalizedName } from "../../proto/packages.ts";
import {
  type FromActorReceived,
  type FromLearnerMessage,
  type longrun,
  messages,
  PROTOCOL_VERSION,
} from "../../proto/service.ts";
import type { Logger } from "../log.ts";
import type { Leases } from "../store/leases.ts";
import type { AttemptKey, LeasedExecution } from "../store/types.ts";
import { ServerError } from "./errors.ts";
import { type Limits, parseAttempt, parseResult } from "./results.ts";
import type { Loss } from "./terminations.ts";
import { type Submission, Upload } from "./upload.ts";

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
  log: Logger;
  now: () => number;
  /** Has `work` done a moment later, with what others want written; `onFailure` if nothing of it is on disk. */
  write(work: () => void, onFailure: (error: unknown) => void): void;
  /** What sandboxes should have imported; undefined while that is not known. */
  warmModules(): readonly string[] | undefined;
  /** Was given a lease. */
  onLease(execution: LeasedExecution): void;
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

interface PendingUpload {
  attempt: AttemptKey;
  header: longrun.v1alpha1.ResultHeader.$Properties;
  upload: Upload;
}

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
  #uploads = new Map<string, PendingUpload>();
  #damaged = new Map<string, number>();

  constructor(stream: ActorStream, options: SessionOptions) {
    this.stream = stream;
    this.#options = options;
    this.heardAt = options.now();
    stream.on("data", (message: FromActorReceived) => this.#receive(message));
    for (const event of ["end", "cancelled", "close", "error"]) stream.on(event, () => this.end());
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
    this.#options.onLease(execution);
  }

  /** Programs import other modules than before. */
  warm(modules: readonly string[]): void {
    this.#send({ warm: { modules: [...modules] } });
  }

  revoke(attempt: AttemptKey, reason: string): void {
    this.#uploads.delete(attempt.fence);
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
    this.#uploads.clear();
    this.stream.end();
    this.#options.onEnd(this);
  }

  /** Ends the stream with a status that is not OK. */
  abort(code: grpc.status, details: string): void {
    if (this.ended) return;
    this.ended = true;
    this.#uploads.clear();
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
        this.#freeSlots = message.ready.freeSlots ?? 0;
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

  #hello(hello: longrun.v1alpha1.Hello.$Properties): void {
    const { actor = "", protocolVersion, slots, holding } = hello;
    if (this.actor !== "") throw new ServerError("protocol", "a second Hello on one stream");
    if (protocolVersion !== PROTOCOL_VERSION)
      throw new ServerError(
        "protocol",
        `the actor speaks protocol ${protocolVersion}, this learner ${PROTOCOL_VERSION}: run the same version of both`,
      );
    if (!actor || !/^[A-Za-z0-9][-.A-Za-z0-9]{0,251}$/.test(actor))
      throw new ServerError("protocol", `actor is '${actor?.slice(0, 80)}': letters, digits, dots and dashes only`);
    this.#checkName(actor);
    if (!slots || slots > this.#options.maxSlots)
      throw new ServerError("protocol", `slots is ${slots}: give 1 to ${this.#options.maxSlots}`);
    this.#checkPackages(hello.packages ?? {});
    const held = this.#attempts(holding, slots);
    this.actor = actor;
    this.slots = slots;
    this.isolationLevel = hello.isolationLevel ?? "";
    // Values of a metric's label: few, and of a shape.
    this.isolationMissing = (hello.isolationMissing ?? []).filter((it) => /^[A-Za-z]{1,40}$/.test(it)).slice(0, 32);
    this.versions = hello.versions ?? {};
    const revoked = this.#options.leases.reconcile(actor, held);
    const modules = this.#options.warmModules();
    this.#send({
      welcome: {
        protocolVersion: PROTOCOL_VERSION,
        lineage: this.#options.lineage,
        heartbeatSeconds: this.#options.heartbeatSeconds,
        leaseSeconds: this.#options.leases.leaseSeconds,
        idleSeconds: this.#options.idleSeconds,
        revoked,
        ...(modules && { warm: { modules: [...modules] } }),
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
        `its sandbox lacks ${missing.join(", ")}, which spec.actors.packages promises: give it an image that has them (spec.actors.sandboxImage, such as longrun/sandbox-paper; on one machine spec.actors.packages: Paper), or name what it has in spec.prompts.packages`,
      );
  }

  /** An actor runs one attempt per slot and may hold as many finished ones that await their acknowledgement, or more. */
  #attempts(list: readonly longrun.v1alpha1.Attempt.$Properties[] | null | undefined, slots: number): AttemptKey[] {
    const attempts = list ?? [];
    if (attempts.length > 16 * slots + 64)
      throw new ServerError("protocol", `${attempts.length} attempts on an actor with ${slots} slots`);
    return attempts.map(parseAttempt);
  }

  #heartbeat(heartbeat: longrun.v1alpha1.Heartbeat.$Properties): void {
    const running = heartbeat.running ?? [];
    const keys = this.#attempts(
      running.map(({ attempt }) => attempt ?? {}),
      this.slots,
    );
    const stale = this.#options.leases.extend(
      this.actor,
      keys.map((key, index) => ({ ...key, elapsedSeconds: running[index].elapsedSeconds ?? undefined })),
    );
    // A result that is known already is acknowledged when it is handed in.
    for (const attempt of stale) {
      if (this.#options.leases.judge(this.actor, attempt) !== "duplicate")
        this.revoke(attempt, "it does not count any more");
    }
    this.busySeconds = heartbeat.busySeconds ?? 0;
    this.aliveSeconds = heartbeat.aliveSeconds ?? 0;
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
      const submission = header.submission;
      if (!submission) return this.#write(attempt, () => this.#accept(attempt, header));
      if (this.#uploads.size >= 16 * this.slots + 64)
        throw new ServerError("protocol", "too many unfinished submissions");
      const { submissionBytes } = this.#options.limitsOf(this.#expectation(attempt).task);
      this.#uploads.set(attempt.fence, { attempt, header, upload: new Upload(submission, submissionBytes) });
    });
  }

  #chunk(chunk: longrun.v1alpha1.SubmissionChunk.$Properties): void {
    const pending = this.#uploads.get(parseAttempt(chunk.attempt).fence);
    // Of a result that was refused or revoked meanwhile: the actor knows or will know.
    if (pending === undefined) return;
    const { attempt, header, upload } = pending;
    this.#guarded(attempt, () => {
      if (!upload.add(chunk.index ?? 0, chunk.data ?? new Uint8Array())) return;
      this.#uploads.delete(attempt.fence);
      void upload.finish().then(
        (submission) => {
          try {
            if (submission === undefined) this.#refuseDamaged(attempt);
            else this.#write(attempt, () => this.#accept(attempt, header, submission));
          } catch (error) {
            this.#options.onFailure(this, error);
          }
        },
        (error: unknown) => this.#options.onFailure(this, error),
      );
    });
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

  #accept(attempt: AttemptKey, header: longrun.v1alpha1.ResultHeader.$Properties, submission?: Submission): void {
    const { leases, limitsOf } = this.#options;
    const { task, insertedMarkers } = this.#expectation(attempt);
    const known = parseResult(header, insertedMarkers, limitsOf(task));
    const cause = known ? undefined : (this.#explainLoss(attempt, header) ?? this.#blameProgram(attempt, header));
    const result = known ?? (cause && parseResult(cause, insertedMarkers, limitsOf(task)));
    if (result === undefined) {
      const reason = header.detail || "lost by the actor";
      const broke = header.sandboxBroke === true;
      this.#acknowledge(
        attempt,
        leases.fail(this.actor, attempt, broke ? `${SANDBOX_BROKE}: ${reason}` : reason, broke),
      );
      return;
    }
    if (submission !== undefined) {
      result.submissionBytes = submission.bytes;
      result.submissionSha256 = submission.sha256;
    }
    this.#damaged.delete(attempt.fence);
    this.#acknowledge(attempt, leases.accept(this.actor, attempt, result, submission?.deflated));
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
  #write(attempt: AttemptKey, work: () => void): void {
    this.#options.write(work, (cause) => {
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
