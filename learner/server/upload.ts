/**
 * Submissions that arrive in chunks, and their memory: never more than the announced size, which is limited by the task. Inflating and
 * hashing work in pieces: inflated bytes are never kept, a zip bomb ends where it exceeds the announced size, and the event loop runs
 * between two pieces.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createInflate } from "node:zlib";
import { CHUNK_BYTES, type longrun } from "../../proto/service.ts";
import type { AttemptKey, ReportedResult } from "../store/types.ts";
import { refuse, whole } from "./messages.ts";

/** Most compressed bytes that are inflated, and most inflated bytes that are hashed, at a time. */
const PIECE_BYTES = 256 * 1024;

export interface Submission {
  bytes: number;
  sha256: string;
  /** zlib */
  deflated: Uint8Array;
}

/** Memory that several uploads may hold together. An upload counts from its announcement until it is in the store. */
export class UploadMemory {
  readonly #mostBytes: number;
  heldBytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** Reserves memory. A single upload always has room, because its task's limit bounds it. @returns whether there is room */
  take(bytes: number): boolean {
    if (this.heldBytes > 0 && this.heldBytes + bytes > this.#mostBytes) return false;
    this.heldBytes += bytes;
    return true;
  }
}

export class Upload {
  readonly compressedBytes: number;
  readonly #bytes: number;
  readonly #sha256: string;
  readonly #chunks: number;
  /** Allocated with the first chunk; the system provides its pages as they are written. */
  #deflated: Buffer | undefined;
  #received = 0;
  #next = 0;

  /** @throws ServerError `protocol` if the announcement breaks a limit or contradicts itself */
  constructor(info: longrun.v1alpha1.SubmissionInfo.$Properties, maxBytes: number) {
    this.#bytes = whole(info.bytes, "a submission's bytes");
    this.#sha256 = info.sha256 ?? "";
    this.compressedBytes = whole(info.compressedBytes, "a submission's compressed_bytes");
    this.#chunks = whole(info.chunks, "a submission's chunks");
    if (this.#bytes > maxBytes) refuse(`a submission of ${this.#bytes} bytes; submissionBytes allows ${maxBytes}`);
    // zlib adds 5 bytes per 16 KiB of incompressible data, plus a few bytes.
    if (this.compressedBytes > this.#bytes * 1.001 + 1024)
      refuse(`${this.#bytes} bytes of submission in ${this.compressedBytes} compressed ones`);
    if (!/^[0-9a-f]{64}$/.test(this.#sha256)) refuse("a submission without its SHA-256");
    if (this.#chunks < 1 || this.#chunks > Math.ceil(this.compressedBytes / 1024) + 1)
      refuse(`${this.#chunks} chunks for ${this.compressedBytes} bytes`);
  }

  /** @returns whether all chunks have arrived */
  add(index: number, data: Uint8Array): boolean {
    if (index !== this.#next) refuse(`chunk ${index} of a submission came when ${this.#next} was due`);
    if (data.length > CHUNK_BYTES || this.#received + data.length > this.compressedBytes)
      refuse(`chunk ${index} of a submission is longer than announced`);
    this.#deflated ??= Buffer.allocUnsafeSlow(this.compressedBytes);
    this.#deflated.set(data, this.#received);
    this.#received += data.length;
    return ++this.#next === this.#chunks;
  }

  /** @returns undefined if the submission differs from its announcement or digest */
  async finish(): Promise<Submission | undefined> {
    const deflated = this.#deflated?.subarray(0, this.#received) ?? new Uint8Array();
    this.#deflated = undefined;
    const found = await digestOf(deflated, this.#bytes);
    if (found?.bytes !== this.#bytes || found.sha256 !== this.#sha256) return undefined;
    return { bytes: this.#bytes, sha256: this.#sha256, deflated };
  }
}

/** Returns size and SHA-256 of the inflated bytes; undefined if the data are no zlib, end early, or exceed `mostBytes`. */
async function digestOf(deflated: Uint8Array, mostBytes: number): Promise<Omit<Submission, "deflated"> | undefined> {
  const hash = createHash("sha256");
  const inflate = createInflate({ chunkSize: PIECE_BYTES });
  let bytes = 0;
  inflate.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > mostBytes) inflate.destroy(new RangeError("more than was announced"));
    else hash.update(piece);
  });
  try {
    const ended = once(inflate, "end");
    ended.catch(() => {});
    for (let at = 0; at < deflated.length; at += PIECE_BYTES)
      if (!inflate.write(deflated.subarray(at, at + PIECE_BYTES))) await Promise.race([once(inflate, "drain"), ended]);
    inflate.end();
    await ended;
    return { bytes, sha256: hash.digest("hex") };
  } catch {
    return undefined;
  } finally {
    inflate.destroy();
  }
}

export interface PendingUpload {
  attempt: AttemptKey;
  result: ReportedResult;
  upload: Upload;
  bytes: number;
  /** When the header arrived, in milliseconds of `performance.now`. */
  since: number;
}

export interface UploadLimits {
  stream: UploadMemory;
  all: UploadMemory;
  /** Called when `all` is full. Returns whether another stream that holds more than `heldBytes` has dropped an upload. */
  onFull(heldBytes: number): boolean;
}

/** The unfinished uploads of one stream. */
export class PendingUploads {
  readonly #limits: UploadLimits;
  /** Uploads by their attempt's fence, oldest first. An upload that is removed keeps its memory until `release`. */
  readonly byFence = new Map<string, PendingUpload>();

  constructor(limits: UploadLimits) {
    this.#limits = limits;
  }

  get heldBytes(): number {
    return this.#limits.stream.heldBytes;
  }

  /** Reserves memory for the upload and stores it. Returns false if there is no room. */
  add(pending: PendingUpload): boolean {
    const { stream, all, onFull } = this.#limits;
    if (!stream.take(pending.bytes)) return false;
    while (!all.take(pending.bytes)) {
      if (onFull(stream.heldBytes)) continue;
      stream.heldBytes -= pending.bytes;
      return false;
    }
    this.byFence.set(pending.attempt.fence, pending);
    return true;
  }

  /** Frees the memory of an upload that was removed from `byFence`. */
  release(bytes: number): void {
    this.#limits.stream.heldBytes -= bytes;
    this.#limits.all.heldBytes -= bytes;
  }

  /** Removes an attempt's upload and frees its memory. Returns whether there was one. */
  drop({ fence }: Pick<AttemptKey, "fence">): boolean {
    const pending = this.byFence.get(fence);
    if (pending === undefined) return false;
    this.byFence.delete(fence);
    this.release(pending.bytes);
    return true;
  }

  dropAll(): void {
    for (const { attempt } of [...this.byFence.values()]) this.drop(attempt);
  }
}
