/** Sends results to the learner and keeps each until the learner acknowledges it. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ActorProtocolClient, longrun } from "../proto/service.ts";
import type { Progress } from "./execution.ts";
import type { Attempt } from "./lease.ts";
import type { PackedSubmission } from "./submission.ts";

export type Stream = ReturnType<ActorProtocolClient["work"]>;

/** Longest pause before a submission is sent again that the learner had no room for. The real pause is 50 to 100 % of it. */
const BUSY_SECONDS = 2;

/** An attempt from its lease to its acknowledgement. */
export interface HeldExecution {
  attempt: Attempt;
  abort: AbortController;
  progress: Progress;
  result?: { header: longrun.v1alpha1.ResultHeader.$Properties; submission?: PackedSubmission };
  damagedUploads: number;
  /** The submission is queued. */
  waits: boolean;
  /** The learner had no room for the submission, so it is sent again later. */
  refusedForNow: boolean;
}

/**
 * Sends results over the current stream, one submission after the other. So the learner holds at most one unfinished upload of an actor.
 */
export class HandIn {
  readonly #stream: () => Stream | undefined;
  readonly #isHeld: (held: HeldExecution) => boolean;
  readonly #random: () => number;
  /** Settles when all started uploads are sent. */
  #uploads: Promise<void> = Promise.resolve();

  /** @param isHeld false once the result was acknowledged or revoked */
  constructor(stream: () => Stream | undefined, isHeld: (held: HeldExecution) => boolean, random: () => number) {
    this.#stream = stream;
    this.#isHeld = isHeld;
    this.#random = random;
  }

  /** Resolves when the result and all submissions before it are sent. Without a stream it does nothing. */
  send(held: HeldExecution): Promise<void> {
    if (held.result!.submission === undefined) return this.#upload(held);
    if (!held.waits) this.#uploads = this.#uploads.then(() => this.#upload(held));
    held.waits = true;
    return this.#uploads;
  }

  /** Sends a result again after a pause, because the learner had no room for it. */
  async sendLater(held: HeldExecution): Promise<void> {
    held.refusedForNow = true;
    await sleep(BUSY_SECONDS * (0.5 + 0.5 * this.#random()) * 1000, undefined, { ref: false });
    await this.send(held);
  }

  async #upload(held: HeldExecution): Promise<void> {
    held.waits = false;
    const stream = this.#stream();
    const { header, submission } = held.result!;
    if (!stream || !this.#isHeld(held)) return;
    held.refusedForNow = false;
    stream.write({ result: header });
    for (const [index, data] of (submission?.chunks ?? []).entries()) {
      // The learner would discard the rest.
      if (this.#stream() !== stream || held.refusedForNow || !this.#isHeld(held)) return;
      if (!stream.write({ chunk: { attempt: held.attempt, index, data } })) await drained(stream);
    }
  }
}

function drained(stream: Stream): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      for (const event of ["drain", "close", "status"]) stream.off(event, done);
      resolve();
    };
    for (const event of ["drain", "close", "status"]) stream.once(event, done);
  });
}
