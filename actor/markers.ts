import { MARKERS } from "../proto/markers.ts";

export interface MarkerSeen {
  name: string;
  /** What was printed after the name, or empty. At most 256 characters. */
  value: string;
  /** Since the program started. */
  atSeconds: number;
}

const LONGEST_LINE_BYTES = 8192;
const LONGEST_VALUE = 256;
const LINE_FEED = 0x0a;
const NAMES = MARKERS.join("|");
const FOREIGN = new RegExp(`\\b[0-9a-fA-F]{32}:(?:${NAMES})`);
const IMITATION = new RegExp(`^\\W*(?:${NAMES})\\b`, "i");

/**
 * Finds marker lines, `<nonce>:<marker>[ value]`, in a program's output, and takes the nonce out of it, so that what
 * the policy reads of it later cannot teach it to print nonces.
 *
 * A marker counts once; repeats (a marker in a loop) neither add nor harm. `forged` counts marker lines with another
 * nonce and names that do not exist under the right one; `imitated` counts lines that begin like a marker without any
 * nonce, which are allowed and earn nothing. The bytes are hostile: nothing is assumed about encoding or line length.
 */
export class MarkerParser {
  readonly seen: MarkerSeen[] = [];
  forged = 0;
  imitated = 0;
  readonly #nonce: string;
  readonly #emit: (output: Buffer) => void;
  #pending: Buffer = Buffer.alloc(0);
  /** The pending bytes go on a line whose beginning was too long to hold. */
  #continued = false;

  /** `nonce`: 32 hexadecimal digits, or empty when there are no markers. `emit` gets the output without the nonce. */
  constructor(nonce: string, emit: (output: Buffer) => void) {
    this.#nonce = nonce;
    this.#emit = emit;
  }

  push(chunk: Buffer, atSeconds: number): void {
    let data = this.#pending.length > 0 ? Buffer.concat([this.#pending, chunk]) : chunk;
    const cleaned: Buffer[] = [];
    for (let end = data.indexOf(LINE_FEED); end !== -1; end = data.indexOf(LINE_FEED)) {
      cleaned.push(this.#line(data.subarray(0, end + 1), atSeconds));
      data = data.subarray(end + 1);
      this.#continued = false;
    }
    if (data.length > LONGEST_LINE_BYTES) {
      const cut = this.#seam(data);
      cleaned.push(this.#withoutNonce(data.subarray(0, cut)));
      data = data.subarray(cut);
      this.#continued = true;
    }
    this.#pending = Buffer.from(data);
    if (cleaned.length > 0) this.#emit(Buffer.concat(cleaned));
  }

  /** Ends the last line. */
  end(atSeconds: number): void {
    if (this.#pending.length > 0) this.#emit(this.#line(this.#pending, atSeconds));
    this.#pending = Buffer.alloc(0);
  }

  #line(line: Buffer, atSeconds: number): Buffer {
    if (this.#continued || line.length > LONGEST_LINE_BYTES) return this.#withoutNonce(line);
    const text = line.toString("latin1").trimEnd();
    // Not only at the start of a line: the program may have left its own line open before.
    const at = this.#nonce === "" ? -1 : text.indexOf(`${this.#nonce}:`);
    if (at === -1) {
      if (FOREIGN.test(text)) this.forged++;
      else if (IMITATION.test(text)) this.imitated++;
      return this.#withoutNonce(line);
    }
    const rest = line.toString("utf8").trimEnd().split(`${this.#nonce}:`, 2)[1]!;
    const name = MARKERS.find((marker) => rest === marker || rest.startsWith(`${marker} `));
    if (name === undefined) this.forged++;
    else if (!this.seen.some((marker) => marker.name === name)) {
      const value = rest.slice(name.length + 1, name.length + 1 + LONGEST_VALUE);
      this.seen.push({ name, value, atSeconds });
    }
    return this.#withoutNonce(line);
  }

  /** Where `data` can be cut without cutting a nonce: what is kept back may be the first part of one, or begin with a whole one. */
  #seam(data: Buffer): number {
    if (this.#nonce === "") return data.length;
    const cut = data.length - this.#nonce.length;
    const across = data.indexOf(this.#nonce, cut - this.#nonce.length); // what follows one may be its colon
    return across === -1 ? cut : Math.min(cut, across);
  }

  #withoutNonce(bytes: Buffer): Buffer {
    if (this.#nonce === "" || !bytes.includes(this.#nonce)) return bytes;
    const text = bytes.toString("latin1").replaceAll(`${this.#nonce}:`, "").replaceAll(this.#nonce, "");
    return Buffer.from(text, "latin1");
  }
}
