/**
 * A submission that arrives in chunks. Never holds more than the header announced, and the header may not announce
 * more than the task's limit; inflating stops where the announced size is exceeded, so a zip bomb costs nothing.
 */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { inflate } from "node:zlib";
import { CHUNK_BYTES, type longrun } from "../../proto/service.ts";
import { ServerError } from "./errors.ts";

const inflateBounded = promisify<Uint8Array, { maxOutputLength: number }, Buffer>(inflate);

export interface Submission {
  bytes: number;
  sha256: string;
  /** zlib */
  deflated: Uint8Array;
}

export class Upload {
  readonly #bytes: number;
  readonly #sha256: string;
  readonly #compressedBytes: number;
  readonly #chunks: number;
  #parts: Uint8Array[] = [];
  #received = 0;

  /** @throws ServerError `protocol` if the announcement breaks a limit or contradicts itself */
  constructor(info: longrun.v1alpha1.SubmissionInfo.$Properties, maxBytes: number) {
    this.#bytes = info.bytes ?? 0;
    this.#sha256 = info.sha256 ?? "";
    this.#compressedBytes = info.compressedBytes ?? 0;
    this.#chunks = info.chunks ?? 0;
    if (this.#bytes > maxBytes)
      throw new ServerError("protocol", `a submission of ${this.#bytes} bytes; submissionBytes allows ${maxBytes}`);
    // zlib adds 5 bytes per 16 KiB of what it cannot compress, and a few.
    if (this.#compressedBytes > this.#bytes * 1.001 + 1024)
      throw new ServerError(
        "protocol",
        `${this.#bytes} bytes of submission in ${this.#compressedBytes} compressed ones`,
      );
    if (!/^[0-9a-f]{64}$/.test(this.#sha256)) throw new ServerError("protocol", "a submission without its SHA-256");
    if (this.#chunks < 1 || this.#chunks > Math.ceil(this.#compressedBytes / 1024) + 1)
      throw new ServerError("protocol", `${this.#chunks} chunks for ${this.#compressedBytes} bytes`);
  }

  /** @returns whether all chunks are there */
  add(index: number, data: Uint8Array): boolean {
    if (index !== this.#parts.length)
      throw new ServerError("protocol", `chunk ${index} of a submission came when ${this.#parts.length} was due`);
    this.#received += data.length;
    if (data.length > CHUNK_BYTES || this.#received > this.#compressedBytes)
      throw new ServerError("protocol", `chunk ${index} of a submission is longer than announced`);
    this.#parts.push(data);
    return this.#parts.length === this.#chunks;
  }

  /** @returns undefined if it arrived damaged: not what its announcement and its digest say */
  async finish(): Promise<Submission | undefined> {
    const deflated = Buffer.concat(this.#parts);
    this.#parts = [];
    let text: Buffer;
    try {
      // zlib takes no 0 for a limit.
      text = await inflateBounded(deflated, { maxOutputLength: Math.max(1, this.#bytes) });
    } catch {
      return undefined;
    }
    const sha256 = createHash("sha256").update(text).digest("hex");
    if (text.length !== this.#bytes || sha256 !== this.#sha256) return undefined;
    return { bytes: this.#bytes, sha256, deflated };
  }
}
