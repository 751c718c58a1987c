/** The unfinished submissions of one actor's stream, and the memory that they hold. */
import type { AttemptKey, ReportedResult } from "../store/types.ts";
import type { Upload, UploadMemory } from "./upload.ts";

export interface PendingUpload {
  attempt: AttemptKey;
  result: ReportedResult;
  upload: Upload;
  /** Memory that the header announced. */
  bytes: number;
  /** When the header came, in milliseconds of the stream's clock. */
  since: number;
}

export interface UploadLimits {
  /** Memory for the uploads of this stream. */
  stream: UploadMemory;
  /** Memory for the uploads of all streams. */
  all: UploadMemory;
  /** `all` is full. Returns whether another stream that holds more than `heldBytes` has dropped an upload. */
  onFull(heldBytes: number): boolean;
}

/** Uploads by their attempt's fence, oldest first. */
export class PendingUploads {
  readonly #limits: UploadLimits;
  readonly #byFence = new Map<string, PendingUpload>();

  constructor(limits: UploadLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#byFence.size;
  }

  get heldBytes(): number {
    return this.#limits.stream.heldBytes;
  }

  get newest(): PendingUpload | undefined {
    return [...this.#byFence.values()].at(-1);
  }

  get(fence: string): PendingUpload | undefined {
    return this.#byFence.get(fence);
  }

  /** Returns the uploads whose headers came before `sinceMs`. */
  olderThan(sinceMs: number): PendingUpload[] {
    return [...this.#byFence.values()].filter(({ since }) => since <= sinceMs);
  }

  /** Reserves memory for the upload and keeps it. Returns false if there is no room. */
  add(pending: PendingUpload): boolean {
    if (!this.#reserve(pending.bytes)) return false;
    this.#byFence.set(pending.attempt.fence, pending);
    return true;
  }

  /** Forgets a complete upload. Its memory stays reserved until `release`. */
  complete(fence: string): void {
    this.#byFence.delete(fence);
  }

  release(bytes: number): void {
    this.#limits.stream.release(bytes);
    this.#limits.all.release(bytes);
  }

  /** Forgets an upload and frees its memory. Returns whether there was one. */
  drop(fence: string): boolean {
    const pending = this.#byFence.get(fence);
    if (pending === undefined) return false;
    this.#byFence.delete(fence);
    this.release(pending.bytes);
    return true;
  }

  dropAll(): void {
    for (const fence of [...this.#byFence.keys()]) this.drop(fence);
  }

  #reserve(bytes: number): boolean {
    const { stream, all, onFull } = this.#limits;
    if (!stream.take(bytes)) return false;
    while (!all.take(bytes))
      if (!onFull(stream.heldBytes)) {
        stream.release(bytes);
        return false;
      }
    return true;
  }
}
