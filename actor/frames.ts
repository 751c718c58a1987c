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
 * Cuts a byte stream into frames. A frame above 1 MiB is an error: nothing that the zygote sends is that large. Output
 * (kind `O`) is a stream: what there is of its frame is passed on as a frame, so that none is held or arrives at once.
 */
export class FrameReader {
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Of an output frame, what is still to come. */
  #outputBytes = 0;

  /** The frames that `chunk` completes. Throws RangeError. */
  *push(chunk: Buffer): Generator<Frame> {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes > 0) {
      if (this.#outputBytes > 0) {
        const payload = this.#take(Math.min(this.#outputBytes, this.#parts[0]!.length));
        this.#outputBytes -= payload.length;
        yield { kind: OUTPUT, payload };
        continue;
      }
      if (this.#bytes < HEADER_BYTES) return;
      const header = this.#peek(HEADER_BYTES);
      const kind = header.toString("latin1", 0, 1);
      const length = header.readUInt32BE(1);
      if (length > LARGEST_FRAME_BYTES) throw new RangeError(`frame of ${length} bytes`);
      if (kind === OUTPUT) {
        this.#take(HEADER_BYTES);
        this.#outputBytes = length;
        continue;
      }
      if (this.#bytes < HEADER_BYTES + length) return;
      yield { kind, payload: this.#take(HEADER_BYTES + length).subarray(HEADER_BYTES) };
    }
  }

  #peek(count: number): Buffer {
    if (this.#parts[0]!.length < count) this.#parts = [Buffer.concat(this.#parts)];
    return this.#parts[0]!.subarray(0, count);
  }

  #take(count: number): Buffer {
    if (this.#parts[0]!.length < count) this.#parts = [Buffer.concat(this.#parts)];
    const first = this.#parts[0]!;
    if (first.length === count) this.#parts.shift();
    else this.#parts[0] = first.subarray(count);
    this.#bytes -= count;
    return first.subarray(0, count);
  }
}
