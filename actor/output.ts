/**
 * Keeps the first and the last `keptBytes` of a program's output, in bounded memory however much there is.
 * The first part shows what the program set out to do, the last one how it ended.
 */
export class OutputCapture {
  totalBytes = 0;
  readonly #keptBytes: number;
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer = Buffer.alloc(0);

  constructor(keptBytes: number) {
    this.#keptBytes = keptBytes;
  }

  push(chunk: Buffer): void {
    this.totalBytes += chunk.length;
    const room = this.#keptBytes - this.#headBytes;
    if (room > 0) {
      const part = Buffer.from(chunk.subarray(0, room));
      this.#head.push(part);
      this.#headBytes += part.length;
      chunk = chunk.subarray(part.length);
    }
    if (chunk.length === 0) return;
    const tail = Buffer.concat([this.#tail, chunk]);
    this.#tail = Buffer.from(tail.subarray(Math.max(0, tail.length - this.#keptBytes)));
  }

  /** What was kept; what was left out between the two parts is named in a line of its own. */
  bytes(): Buffer {
    const leftOut = this.totalBytes - this.#headBytes - this.#tail.length;
    const note = leftOut > 0 ? [Buffer.from(`\n[... ${leftOut} bytes left out ...]\n`)] : [];
    return Buffer.concat([...this.#head, ...note, this.#tail]);
  }
}
