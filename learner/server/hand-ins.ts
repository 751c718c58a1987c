/**
 * Results from one actor's stream, and submissions in chunks. A result that breaks the protocol also loses its attempt, so that the actor
 * does not send it for ever.
 */
import type { Logger } from "pino";
import type { Limits } from "../../proto/execution.ts";
import { type longrun, messages } from "../../proto/service.ts";
import type { Leases } from "../store/leases.ts";
import type { AttemptKey, ReportedResult } from "../store/types.ts";
import { ServerError } from "./errors.ts";
import { boundedHeader, mostAttempts, parseAttempt, parseResult, type ResultHeader } from "./messages.ts";
import type { LostAttempt } from "./terminations.ts";
import { type PendingUpload, PendingUploads, type Submission, Upload, type UploadLimits } from "./upload.ts";

export interface HandInsOptions {
  leases: Leases;
  limitsOf: (task: string) => Limits;
  uploads: UploadLimits;
  log: Logger;
  /** Runs `work` at the end of this turn, in one commit with the work of other streams; see Turn. */
  write(work: () => void, onFailure: (error: unknown) => void): void;
  /** @returns the attempt's result, if the program itself is known to have caused the loss */
  onLost(loss: LostAttempt): ResultHeader | undefined;
  /** @param error a ServerError `protocol`, or a fault of the learner */
  onFailure(error: unknown): void;
  acknowledge(attempt: AttemptKey, reason: string): void;
  revoke(attempt: AttemptKey, reason: string): void;
}

/** The actor's stream. */
interface From {
  readonly actor: string;
  readonly slots: number;
  /** When the stream's newest message arrived, in milliseconds of `performance.now`. */
  readonly heardAt: number;
}

/** How many damaged uploads of a submission make its attempt lost. */
const DAMAGED_UPLOADS = 3;

/** Memory of a result in addition to its texts and submission. */
const RESULT_BYTES = 4096;

/** Reason in an Ack: there is no room for the submission now, so the actor must send it again. */
const BUSY = "busy";

const SANDBOX_BROKE = "the sandbox broke under the program";

export class HandIns {
  readonly #from: From;
  readonly #options: HandInsOptions;
  /** Unfinished submissions. */
  readonly uploads: PendingUploads;
  #damaged = new Map<string, number>();

  constructor(from: From, options: HandInsOptions) {
    this.#from = from;
    this.#options = options;
    this.uploads = new PendingUploads(options.uploads);
  }

  /** Drops the chunks of an attempt whose lease has ended. The actor may send them again. */
  lost(attempt: AttemptKey): void {
    if (this.uploads.drop(attempt)) this.#options.acknowledge(attempt, BUSY);
  }

  result(header: ResultHeader): void {
    const attempt = parseAttempt(header.attempt);
    const verdict = this.#options.leases.attempts.judge(this.#from.actor, attempt);
    if (verdict !== "accepted") {
      this.#options.acknowledge(attempt, verdict);
      return;
    }
    this.#guarded(attempt, () => {
      const result = this.#parse(attempt, header);
      if (result === undefined) return this.#write(attempt, () => this.#lose(attempt, boundedHeader(header)));
      if (!header.submission) return this.#write(attempt, () => this.#accept(attempt, result));
      const { task } = this.#expectation(attempt);
      const upload = new Upload(header.submission, this.#options.limitsOf(task).submissionBytes);
      this.uploads.drop(attempt);
      if (this.uploads.byFence.size >= mostAttempts(this.#from.slots))
        throw new ServerError("protocol", "too many unfinished submissions");
      const { terminalOutput, detail, submissionRefused, markers } = result;
      const texts = [terminalOutput, detail, submissionRefused, ...markers.map(({ value }) => value)];
      const bytes = upload.compressedBytes + RESULT_BYTES + 2 * texts.join("").length;
      const pending = { attempt, result, upload, bytes, since: this.#from.heardAt };
      if (!this.uploads.add(pending)) this.#options.acknowledge(attempt, BUSY);
    });
  }

  /** Ends uploads without a lease: their attempts were lost before their results arrived. */
  endUploads(): void {
    const { leases, revoke } = this.#options;
    const latest = performance.now() - leases.leaseSeconds * 1000;
    for (const { attempt, since } of [...this.uploads.byFence.values()])
      if (since <= latest && !leases.isRunning(attempt)) revoke(attempt, "its submission did not come in time");
  }

  /** Drops the newest unfinished submission, which the actor may send again. Returns whether there was one. */
  yieldUpload(): boolean {
    const newest = [...this.uploads.byFence.values()].at(-1);
    if (newest === undefined) return false;
    this.lost(newest.attempt);
    return true;
  }

  chunk(chunk: longrun.v1alpha1.SubmissionChunk.$Properties): void {
    const key = parseAttempt(chunk.attempt);
    const pending = this.uploads.byFence.get(key.fence);
    // The result was refused or revoked meanwhile; the actor is informed of that separately.
    if (pending === undefined) return;
    const { attempt, upload } = pending;
    if (key.execution !== attempt.execution || key.number !== attempt.number)
      throw new ServerError("protocol", `chunk of ${key.execution} with the fence of ${attempt.execution}`);
    this.#guarded(attempt, () => {
      if (!upload.add(chunk.index ?? 0, chunk.data ?? new Uint8Array())) return;
      this.uploads.byFence.delete(attempt.fence);
      void this.#finish(pending);
    });
  }

  /** Checks and writes a complete submission. Its memory counts until it is written. */
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
      this.uploads.release(bytes);
    }
  }

  #refuseDamaged(attempt: AttemptKey): void {
    const times = (this.#damaged.get(attempt.fence) ?? 0) + 1;
    this.#damaged.set(attempt.fence, times);
    const { execution, number } = attempt;
    const { log, leases, acknowledge } = this.#options;
    log.warn({ execution, attempt: number, actor: this.#from.actor, times }, "a submission arrived damaged");
    const isOver = times >= DAMAGED_UPLOADS;
    if (isOver) leases.fail(this.#from.actor, attempt, "its submission arrived damaged");
    if (isOver) this.#damaged.delete(attempt.fence);
    acknowledge(attempt, isOver ? "revoked" : "digest");
  }

  #accept(attempt: AttemptKey, result: ReportedResult, submission?: Submission): void {
    if (submission !== undefined) {
      result.submissionBytes = submission.bytes;
      result.submissionSha256 = submission.sha256;
    }
    this.#damaged.delete(attempt.fence);
    const verdict = this.#options.leases.accept(this.#from.actor, attempt, result, submission?.deflated);
    this.#options.acknowledge(attempt, verdict);
  }

  /** Handles an actor's report of a lost attempt. If the program was the cause, the attempt gets a result. */
  #lose(attempt: AttemptKey, header: ResultHeader): void {
    const cause = this.#explainLoss(attempt, header) ?? this.#blameProgram(attempt, header);
    const result = cause && this.#parse(attempt, cause);
    if (result !== undefined) {
      this.#accept(attempt, result);
      return;
    }
    const reason = header.detail || "lost by the actor";
    const sandboxBroke = header.sandboxBroke === true;
    const said = sandboxBroke ? `${SANDBOX_BROKE}: ${reason}` : reason;
    const disrupted = header.disrupted === true && !sandboxBroke;
    const verdict = this.#options.leases.fail(this.#from.actor, attempt, said, { sandboxBroke, disrupted });
    this.#options.acknowledge(attempt, verdict);
  }

  #explainLoss(attempt: AttemptKey, header: ResultHeader): ResultHeader | undefined {
    const { slot } = header;
    const leasedAtMs = this.#options.leases.attempts.leasedAtMs(attempt);
    if (slot === undefined || slot === null || leasedAtMs === undefined) return undefined;
    return this.#options.onLost({ actor: this.#from.actor, slot, attempt, header, leasedAtMs, lostAtMs: Date.now() });
  }

  /** Returns a failure if every sandbox that tried the program broke while running it. */
  #blameProgram(attempt: AttemptKey, header: ResultHeader): ResultHeader | undefined {
    const { leases } = this.#options;
    if (!header.sandboxBroke || leases.attempts.brokenSandboxes(attempt.execution) + 1 < leases.maxAttempts)
      return undefined;
    const detail = `${SANDBOX_BROKE}, ${leases.maxAttempts} times in a row: ${header.detail ?? ""}`;
    return { ...header, outcome: messages.Outcome.FAILED, submission: undefined, detail };
  }

  /** @returns undefined if the outcome is LOST */
  #parse(attempt: AttemptKey, header: ResultHeader): ReportedResult | undefined {
    const { task, insertedMarkers } = this.#expectation(attempt);
    const { leases, limitsOf } = this.#options;
    return parseResult(header, insertedMarkers, limitsOf(task), leases.longestDuration(attempt));
  }

  #expectation(attempt: AttemptKey) {
    const expected = this.#options.leases.attempts.expectation(attempt.execution);
    if (expected === undefined) throw new ServerError("protocol", `there is no execution ${attempt.execution}`);
    return expected;
  }

  #write(attempt: AttemptKey, work: () => void, onFailure: () => void = () => {}): void {
    this.#options.write(work, (cause) => {
      onFailure();
      try {
        this.#refuse(attempt, cause);
      } catch (error) {
        this.#options.onFailure(error);
      }
    });
  }

  #guarded(attempt: AttemptKey, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#refuse(attempt, error);
    }
  }

  /** Throws `error`. An error of the protocol also loses the attempt. */
  #refuse(attempt: AttemptKey, error: unknown): never {
    if (error instanceof ServerError) this.#options.leases.fail(this.#from.actor, attempt, error.message.slice(0, 200));
    throw error;
  }
}
