/**
 * What one actor hands in over its stream: results, and submissions in chunks. What breaks the protocol in an attempt's
 * result loses that attempt, too, so that it cannot come back for ever.
 */
import type { Logger } from "pino";
import type { Limits } from "../../proto/execution.ts";
import { type longrun, messages } from "../../proto/service.ts";
import type { Leases } from "../store/leases.ts";
import type { AttemptKey, ReportedResult } from "../store/types.ts";
import { ServerError } from "./errors.ts";
import { mostAttempts, parseAttempt } from "./messages.ts";
import { type PendingUpload, PendingUploads } from "./pending-uploads.ts";
import { boundedHeader, parseResult } from "./results.ts";
import type { Loss } from "./terminations.ts";
import { type Submission, Upload, type UploadMemory } from "./upload.ts";

export interface HandInsOptions {
  leases: Leases;
  limitsOf: (task: string) => Limits;
  /** What unfinished submissions may hold: of this stream, and of all streams. */
  uploads: { stream: UploadMemory; all: UploadMemory };
  log: Logger;
  now: () => number;
  /** Has `work` done a moment later, with what others want written; `onFailure` if nothing of it is on disk. */
  write(work: () => void, onFailure: (error: unknown) => void): void;
  /** An attempt was lost. @returns its result, if the program itself is known to be the cause */
  onLost(loss: Loss): longrun.v1alpha1.ResultHeader.$Properties | undefined;
  /** There is no room in `uploads.all`. @returns whether another stream that holds more has given some back */
  onFull(bytes: number): boolean;
  /** @param error a ServerError `protocol`, or a fault of ours */
  onFailure(error: unknown): void;
  acknowledge(attempt: AttemptKey, reason: string): void;
  revoke(attempt: AttemptKey, reason: string): void;
}

/** The actor as it said hello, and when its newest message came. */
interface From {
  readonly actor: string;
  readonly slots: number;
  readonly heardAt: number;
}

/** How often a submission may arrive damaged before its attempt counts as lost. */
const DAMAGED_UPLOADS = 3;

/** Memory that a result takes beside its texts and its submission. */
const RESULT_BYTES = 4096;

/** Reason of an Ack: there is no room for the submission now. */
const BUSY = "busy";

const SANDBOX_BROKE = "the sandbox broke under the program";

export class HandIns {
  readonly #from: From;
  readonly #options: HandInsOptions;
  readonly #uploads: PendingUploads;
  #damaged = new Map<string, number>();

  constructor(from: From, options: HandInsOptions) {
    this.#from = from;
    this.#options = options;
    this.#uploads = new PendingUploads({ ...options.uploads, onFull: options.onFull });
  }

  /** Forgets what has come of this attempt's submission. Returns whether there was something. */
  drop({ fence }: AttemptKey): boolean {
    return this.#uploads.drop(fence);
  }

  dropAll(): void {
    this.#uploads.dropAll();
  }

  /** The lease of this attempt is over: what has come of its submission is not kept. The actor may send it again. */
  lost(attempt: AttemptKey): void {
    if (this.drop(attempt)) this.#options.acknowledge(attempt, BUSY);
  }

  /** A result arrived; its submission, if it has one, follows in chunks. */
  result(header: longrun.v1alpha1.ResultHeader.$Properties): void {
    const attempt = parseAttempt(header.attempt);
    const verdict = this.#options.leases.attempts.judge(this.#from.actor, attempt);
    if (verdict !== "accepted") {
      this.#options.acknowledge(attempt, verdict);
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
      if (this.#uploads.size >= mostAttempts(this.#from.slots))
        throw new ServerError("protocol", "too many unfinished submissions");
      const { terminalOutput, detail, submissionRefused, markers } = result;
      const texts = [terminalOutput, detail, submissionRefused, ...markers.map(({ value }) => value)];
      const bytes = upload.compressedBytes + RESULT_BYTES + 2 * texts.join("").length;
      const pending = { attempt, result, upload, bytes, since: this.#from.heardAt };
      if (!this.#uploads.add(pending)) this.#options.acknowledge(attempt, BUSY);
    });
  }

  /** Ends uploads that no lease bounds: their attempts were lost before their results came. */
  endUploads(): void {
    const { leases, now } = this.#options;
    for (const { attempt } of this.#uploads.olderThan(now() - leases.leaseSeconds * 1000))
      if (!leases.isRunning(attempt)) this.#options.revoke(attempt, "its submission did not come in time");
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

  /** The unfinished submission that a chunk is of. */
  uploadOf(chunk: longrun.v1alpha1.SubmissionChunk.$Properties): PendingUpload | undefined {
    return this.#uploads.get(chunk.attempt?.fence ?? "");
  }

  chunk(chunk: longrun.v1alpha1.SubmissionChunk.$Properties): void {
    const key = parseAttempt(chunk.attempt);
    const pending = this.uploadOf(chunk);
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
      this.#options.onFailure(error);
    } finally {
      this.#uploads.release(bytes);
    }
  }

  #refuseDamaged(attempt: AttemptKey): void {
    const times = (this.#damaged.get(attempt.fence) ?? 0) + 1;
    this.#damaged.set(attempt.fence, times);
    const { execution, number } = attempt;
    const { log } = this.#options;
    log.warn({ execution, attempt: number, actor: this.#from.actor, times }, "a submission arrived damaged");
    if (times >= DAMAGED_UPLOADS) {
      this.#options.leases.fail(this.#from.actor, attempt, "its submission arrived damaged");
      this.#damaged.delete(attempt.fence);
      this.#options.acknowledge(attempt, "revoked");
    } else this.#options.acknowledge(attempt, "digest");
  }

  #accept(attempt: AttemptKey, result: ReportedResult, submission?: Submission): void {
    if (submission !== undefined) {
      result.submissionBytes = submission.bytes;
      result.submissionSha256 = submission.sha256;
    }
    this.#damaged.delete(attempt.fence);
    this.#options.acknowledge(
      attempt,
      this.#options.leases.accept(this.#from.actor, attempt, result, submission?.deflated),
    );
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
    this.#options.acknowledge(attempt, leases.fail(this.#from.actor, attempt, said, { sandboxBroke, disrupted }));
  }

  #explainLoss(attempt: AttemptKey, header: longrun.v1alpha1.ResultHeader.$Properties) {
    const { slot } = header;
    const leasedAtMs = this.#options.leases.attempts.leasedAtMs(attempt);
    if (slot === undefined || slot === null || leasedAtMs === undefined) return undefined;
    return this.#options.onLost({ actor: this.#from.actor, slot, attempt, header, leasedAtMs, lostAtMs: Date.now() });
  }

  /** @returns the result of a program under which every sandbox that tried it has ended: it is the program */
  #blameProgram(attempt: AttemptKey, header: longrun.v1alpha1.ResultHeader.$Properties) {
    const { leases } = this.#options;
    if (!header.sandboxBroke || leases.attempts.brokenSandboxes(attempt.execution) + 1 < leases.maxAttempts)
      return undefined;
    const detail = `${SANDBOX_BROKE}, ${leases.maxAttempts} times in a row: ${header.detail ?? ""}`;
    return { ...header, outcome: messages.Outcome.FAILED, submission: undefined, detail };
  }

  #expectation(attempt: AttemptKey) {
    const expected = this.#options.leases.attempts.expectation(attempt.execution);
    if (expected === undefined) throw new ServerError("protocol", `there is no execution ${attempt.execution}`);
    return expected;
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
        this.#options.onFailure(error);
      }
    });
  }

  /** What breaks the protocol in the handling of an attempt's result loses that attempt, too. */
  #guarded(attempt: AttemptKey, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (error instanceof ServerError)
        this.#options.leases.fail(this.#from.actor, attempt, error.message.slice(0, 200));
      throw error;
    }
  }
}
