import type { MarkerSeen } from "../proto/execution.ts";
import { MARKERS } from "../proto/markers.ts";

const LONGEST_LINE_BYTES = 8192;
const LONGEST_VALUE = 256;
const NONCE_BYTES = 32;
const LINE_FEED = 0x0a;
const SPACE = 0x20;
const COLON = 0x3a;
const NAMES = MARKERS.map((name) => Buffer.from(name));
const SHORTEST_NAME = Math.min(...MARKERS.map((name) => name.length));
const IS_WORD = bytesOf(/\w/);
const IS_HEX = bytesOf(/[0-9a-f]/i);
const LOWER = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte));

/**
 * Finds marker lines, `<nonce>:<marker>[ value]`, in a program's output and removes the nonce from it, so that the policy cannot learn to
 * print nonces from the output.
 *
 * A marker counts once; repeats (a marker in a loop) have no effect. `forged` counts lines that have a marker behind another nonce, or no
 * marker behind the right one. `imitated` counts lines that begin like a marker without any nonce; they are allowed and earn nothing. Lines
 * of more than 8 KiB are passed on and not counted.
 *
 * The bytes are hostile: the parser assumes nothing about encoding or line length. 4 MiB can be four million lines, and the event loop
 * serves other slots too, so lines create no objects and every byte is read once.
 */
export class MarkerParser {
  readonly seen: MarkerSeen[] = [];
  forged = 0;
  imitated = 0;
  readonly #nonce: string;
  readonly #nonceBytes: Buffer;
  readonly #emit: (output: Buffer) => void;
  /** Its first `#heldBytes` bytes are the unfinished line. */
  readonly #held = Buffer.alloc(LONGEST_LINE_BYTES);
  #heldBytes = 0;
  /** The held bytes continue a line whose beginning was too long to hold. */
  #continued = false;

  /**
   * @param nonce 32 hexadecimal digits, or empty when there are no markers
   * @param emit gets the output without the nonce; it may be a view of the pushed chunk
   */
  constructor(nonce: string, emit: (output: Buffer) => void) {
    this.#nonce = nonce;
    this.#nonceBytes = Buffer.from(nonce);
    this.#emit = emit;
  }

  push(chunk: Buffer, atSeconds: number): void {
    if (this.#heldBytes + chunk.length <= LONGEST_LINE_BYTES && !chunk.includes(LINE_FEED)) {
      this.#heldBytes += chunk.copy(this.#held, this.#heldBytes);
      return;
    }
    const data = this.#heldBytes > 0 ? Buffer.concat([this.#held.subarray(0, this.#heldBytes), chunk]) : chunk;
    let end = data.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) {
      this.#count(data.subarray(this.#continued ? data.indexOf(LINE_FEED) + 1 : 0, end), atSeconds);
      this.#continued = false;
    }
    if (data.length - end > LONGEST_LINE_BYTES) {
      end = this.#seam(data);
      this.#continued = true;
    }
    this.#emit(this.#withoutNonce(data.subarray(0, end)));
    this.#heldBytes = data.copy(this.#held, 0, end);
  }

  /** Ends the last line. */
  end(atSeconds: number): void {
    const line = this.#held.subarray(0, this.#heldBytes);
    this.#heldBytes = 0;
    if (!this.#continued) this.#count(line, atSeconds);
    if (line.length > 0) this.#emit(this.#withoutNonce(line));
  }

  /** Counts the markers in the lines of `data`; the last line may lack its line feed. */
  #count(data: Buffer, atSeconds: number): void {
    let start = 0;
    let firstWord = -1;
    let foreign = false;
    // Offset after `<nonce>:` in this line, and offset of its next occurrence.
    let own = -1;
    let again = -1;
    for (let at = 0; at <= data.length; at++) {
      const byte = at < data.length ? data[at]! : LINE_FEED;
      if (byte === LINE_FEED) {
        if (Math.min(at + 1, data.length) - start <= LONGEST_LINE_BYTES) {
          if (own !== -1) this.#countOwn(data, own, again === -1 ? at : again, again === -1, atSeconds);
          else if (foreign) this.forged++;
          else if (firstWord !== -1 && isImitation(data, firstWord, at)) this.imitated++;
        }
        start = at + 1;
        firstWord = own = again = -1;
        foreign = false;
      } else if (byte === COLON) {
        const nonceStart = at - NONCE_BYTES;
        if (nonceStart < start) continue;
        // The program may have printed text before it on the same line, so the nonce need not begin the line.
        if (this.#nonce !== "" && hasAt(data, nonceStart, this.#nonceBytes)) {
          if (own === -1) own = at + 1;
          else if (again === -1) again = nonceStart;
        } else if (!foreign) foreign = isHex(data, nonceStart, start) && nameAt(data, at + 1) !== -1;
      } else if (firstWord === -1 && IS_WORD[byte] === 1) firstWord = at;
    }
  }

  /** Counts the text after `<nonce>:`, from `start` to `end`. `isLast`: `end` is the line's end. */
  #countOwn(data: Buffer, start: number, end: number, isLast: boolean, atSeconds: number): void {
    const which = nameAt(data, start);
    const nameEnd = which === -1 ? end + 1 : start + MARKERS[which]!.length;
    const isName =
      nameEnd === end ||
      (nameEnd < end && (data[nameEnd] === SPACE || (isLast && isBlank(data.subarray(nameEnd, end)))));
    if (!isName) this.forged++;
    else if (!this.seen.some(({ name }) => name === MARKERS[which])) {
      const rest = data.toString("utf8", nameEnd, end);
      const value = (isLast ? rest.trimEnd() : rest).slice(1, 1 + LONGEST_VALUE);
      this.seen.push({ name: MARKERS[which]!, value, atSeconds });
    }
  }

  /** Returns where `data` can be cut without cutting a nonce. The part after it may begin with a nonce, or be the first part of one. */
  #seam(data: Buffer): number {
    if (this.#nonce === "") return data.length;
    const cut = data.length - this.#nonce.length;
    const across = data.indexOf(this.#nonce, cut - this.#nonce.length); // the character after a nonce may be its colon
    return across === -1 ? cut : Math.min(cut, across);
  }

  #withoutNonce(bytes: Buffer): Buffer {
    if (this.#nonce === "" || !bytes.includes(this.#nonce)) return bytes;
    const text = bytes.toString("latin1").replaceAll(`${this.#nonce}:`, "").replaceAll(this.#nonce, "");
    return Buffer.from(text, "latin1");
  }
}

/** Returns a table by byte value (Latin-1): whether the character belongs to a class. */
function bytesOf(characters: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => Number(characters.test(String.fromCharCode(byte))));
}

/**
 * Returns whether `bytes` are at `at` of `data`. Never reads a typed array past its end, which would make the engine leave its fast code.
 */
function hasAt(data: Buffer, at: number, bytes: Uint8Array): boolean {
  if (at + bytes.length > data.length) return false;
  for (let i = 0; i < bytes.length; i++) if (data[at + i] !== bytes[i]) return false;
  return true;
}

/** @returns index of the marker whose name begins at `at`, or -1 */
function nameAt(data: Buffer, at: number): number {
  for (let which = 0; which < NAMES.length; which++) if (hasAt(data, at, NAMES[which]!)) return which;
  return -1;
}

/** Returns whether 32 hexadecimal digits are at `at` and no other word character touches them; the line begins at `start`. */
function isHex(data: Buffer, at: number, start: number): boolean {
  for (let i = at + NONCE_BYTES - 1; i >= at; i--) if (IS_HEX[data[i]!] === 0) return false;
  return at === start || IS_WORD[data[at - 1]!] === 0;
}

/** Returns whether the line's text from `start` is a marker's name in either case, followed by a word boundary; the line ends at `end`. */
function isImitation(data: Buffer, start: number, end: number): boolean {
  if (end - start < SHORTEST_NAME) return false;
  for (let which = 0; which < NAMES.length; which++) {
    const name = NAMES[which]!;
    const nameEnd = start + name.length;
    if (nameEnd > end || (nameEnd < end && IS_WORD[data[nameEnd]!] === 1)) continue;
    let i = 0;
    while (i < name.length && LOWER[data[start + i]!] === name[i]) i++;
    if (i === name.length) return true;
  }
  return false;
}

/** Returns whether the bytes are white space in any alphabet; the first byte usually decides. */
function isBlank(bytes: Buffer): boolean {
  return (bytes[0]! <= SPACE || bytes[0]! >= 0x80) && bytes.toString("utf8").trim() === "";
}
