/** Frames between supervisor and zygote: one byte kind, four bytes length (big endian), payload. See zygote.py. */
const HEADER_BYTES = 5;
const LARGEST_FRAME_BYTES = 1 << 20;
const OUTPUT = "O";

export interface Frame {
  kind: string;
  payload: Buffer;
}

export function encodeFrame(kind: string, payload: Uint8Array | string = ""): Buffer {
  const body = typeof payload === "string" ? Buffer.from(payload) : payload;
  const frame = Buffer.alloc(HEADER_BYTES + body.length);
  frame.write(kind, 0, 1, "latin1");
  frame.writeUInt32BE(body.length, 1);
  frame.set(body, HEADER_BYTES);
  return frame;
}

/**
 * Cuts a byte stream into frames. A frame above 1 MiB is an error, because the zygote sends none. Output (kind `O`) is passed on as it
 * arrives, in parts, so no output frame is held back. The reader holds one frame at most and copies each byte once, however small the
 * pieces are.
 */
export class FrameReader {
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #kind = "";
  /** For the frame whose header is complete: bytes still to come, and collected bytes (except output). */
  #missingBytes = 0;
  #payload: Buffer | undefined;

  /** Yields the frames that `chunk` completes; the caller must take all. Throws RangeError. */
  *push(chunk: Buffer): Generator<Frame> {
    for (let at = 0; at < chunk.length; ) {
      if (this.#headerBytes < HEADER_BYTES) {
        const copied = chunk.copy(this.#header, this.#headerBytes, at);
        this.#headerBytes += copied;
        at += copied;
        if (this.#headerBytes < HEADER_BYTES) return;
        this.#begin();
      }
      const part = chunk.subarray(at, at + this.#missingBytes);
      if (this.#payload) part.copy(this.#payload, this.#payload.length - this.#missingBytes);
      at += part.length;
      this.#missingBytes -= part.length;
      const [kind, payload, isWhole] = [this.#kind, this.#payload, this.#missingBytes === 0];
      if (isWhole) {
        this.#headerBytes = 0;
        this.#payload = undefined;
      }
      if (payload ? isWhole : part.length > 0) yield { kind, payload: payload ?? part };
    }
  }

  #begin(): void {
    this.#kind = this.#header.toString("latin1", 0, 1);
    this.#missingBytes = this.#header.readUInt32BE(1);
    if (this.#missingBytes > LARGEST_FRAME_BYTES) throw new RangeError(`frame of ${this.#missingBytes} bytes`);
    const isOutput = this.#kind === OUTPUT && this.#missingBytes > 0;
    this.#payload = isOutput ? undefined : Buffer.alloc(this.#missingBytes);
  }
}
