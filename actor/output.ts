/**
 * Keeps the first and the last `keptBytes` of a program's output, in bounded memory. The first part shows the program's intention, the last
 * one its end.
 */
export class OutputCapture {
  totalBytes = 0;
  readonly #keptBytes: number;
  readonly #head: Buffer;
  #headBytes = 0;
  /** A ring: byte n after the head is at n modulo its length. */
  #tail: Buffer = Buffer.alloc(0);
  #tailBytes = 0;

  constructor(keptBytes: number) {
    this.#keptBytes = keptBytes;
    this.#head = Buffer.alloc(keptBytes);
  }

  /** Copies the part of `chunk` that is kept. */
  push(chunk: Buffer): void {
    this.totalBytes += chunk.length;
    const taken = chunk.copy(this.#head, this.#headBytes);
    this.#headBytes += taken;
    if (taken === chunk.length) return;
    if (this.#tail.length === 0) this.#tail = Buffer.alloc(this.#keptBytes);
    const from = Math.max(taken, chunk.length - this.#keptBytes);
    this.#tailBytes += chunk.length - taken;
    const at = (this.#tailBytes - (chunk.length - from)) % this.#keptBytes;
    const first = chunk.copy(this.#tail, at, from);
    chunk.copy(this.#tail, 0, from + first);
  }

  /** Returns the kept output. A line between the two parts says how much is missing. */
  bytes(): Buffer {
    const head = this.#head.subarray(0, this.#headBytes);
    const leftOut = this.#tailBytes - this.#keptBytes;
    if (leftOut <= 0) return Buffer.concat([head, this.#tail.subarray(0, this.#tailBytes)]);
    const oldest = this.#tailBytes % this.#keptBytes;
    const note = Buffer.from(`\n[... ${leftOut} bytes left out ...]\n`);
    return Buffer.concat([head, note, this.#tail.subarray(oldest), this.#tail.subarray(0, oldest)]);
  }
}
