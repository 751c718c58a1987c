import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { MarkerSeen } from "../proto/execution.ts";
import { MARKERS } from "../proto/markers.ts";
import { MarkerParser } from "./markers.ts";

const N = "0123456789abcdef0123456789abcdef";
const OTHER = "f".repeat(32);

function parse(text: string | Buffer, nonce = N, chunkBytes = Number.POSITIVE_INFINITY, Parser = MarkerParser) {
  const emitted: Buffer[] = [];
  const parser = new Parser(nonce, (output) => emitted.push(Buffer.from(output)));
  const bytes = Buffer.from(text as string);
  for (let at = 0; at < bytes.length; at += chunkBytes) parser.push(bytes.subarray(at, at + chunkBytes), at);
  parser.end(bytes.length);
  const { seen, forged, imitated } = parser;
  return {
    seen: seen.map(({ name, value }) => [name, value]),
    forged,
    imitated,
    output: Buffer.concat(emitted).toString("latin1"),
  };
}

describe("MarkerParser", () => {
  const cases: [name: string, text: string, seen: string[][], forged: number, imitated: number, output: string][] = [
    ["nothing", "", [], 0, 0, ""],
    ["other output", "hello\n", [], 0, 0, "hello\n"],
    ["a marker", `${N}:loaded data\n`, [["loaded data", ""]], 0, 0, "loaded data\n"],
    ["with a value", `${N}:training loss 0.25\n`, [["training loss", "0.25"]], 0, 0, "training loss 0.25\n"],
    ["without a line's end", `${N}:loaded data`, [["loaded data", ""]], 0, 0, "loaded data"],
    ["carriage return", `${N}:loaded data\r\n`, [["loaded data", ""]], 0, 0, "loaded data\r\n"],
    ["after the program's own open line", `50%${N}:loaded data\n`, [["loaded data", ""]], 0, 0, "50%loaded data\n"],
    ["repeats count once", `${N}:loaded data\n`.repeat(3), [["loaded data", ""]], 0, 0, "loaded data\n".repeat(3)],
    [
      "the first value stays",
      `${N}:training loss 1\n${N}:training loss 2\n`,
      [["training loss", "1"]],
      0,
      0,
      "training loss 1\ntraining loss 2\n",
    ],
    [
      "order is free",
      `${N}:trained model\n${N}:loaded data\n`,
      [
        ["trained model", ""],
        ["loaded data", ""],
      ],
      0,
      0,
      "trained model\nloaded data\n",
    ],
    ["another nonce", `${OTHER}:loaded data\n`, [], 1, 0, `${OTHER}:loaded data\n`],
    [
      "another nonce in upper case",
      `${OTHER.toUpperCase()}:loaded data\n`,
      [],
      1,
      0,
      `${OTHER.toUpperCase()}:loaded data\n`,
    ],
    ["a digest is no forgery", `${OTHER}: sum\n`, [], 0, 0, `${OTHER}: sum\n`],
    ["a name that does not exist", `${N}:won the prize\n`, [], 1, 0, "won the prize\n"],
    ["a name that only begins alike", `${N}:loaded database\n`, [], 1, 0, "loaded database\n"],
    ["a nonce that is too short", `${N.slice(1)}:loaded data\n`, [], 0, 0, `${N.slice(1)}:loaded data\n`],
    ["an imitation", "loaded data\n", [], 0, 1, "loaded data\n"],
    ["an imitation with a value", "Training loss: 0.1\n", [], 0, 1, "Training loss: 0.1\n"],
    ["an imitation with a colon before", ":loaded data\n", [], 0, 1, ":loaded data\n"],
    ["a sentence about one", "I have loaded data\n", [], 0, 0, "I have loaded data\n"],
    ["the nonce elsewhere is taken out", `the nonce is ${N}!\n`, [], 0, 0, "the nonce is !\n"],
    ["several in one line", `${N}${N}:loaded data\n`, [["loaded data", ""]], 0, 0, "loaded data\n"],
  ];
  for (const [name, text, seen, forged, imitated, output] of cases)
    test(`the parser reads a text: ${name}`, () => {
      assert.deepEqual(parse(text), { seen, forged, imitated, output });
      assert.deepEqual(parse(text, N, 1), { seen, forged, imitated, output }, "in chunks of one byte");
    });

  test("the parser finds all seven markers", () => {
    const { seen } = parse(MARKERS.map((marker) => `${N}:${marker}\n`).join(""));
    assert.deepEqual(
      seen.map(([name]) => name),
      [...MARKERS],
    );
  });

  test("without a nonce nothing is a marker", () => {
    assert.deepEqual(parse(":loaded data\n", "").seen, []);
  });

  test("the parser passes a long line on without holding it, and removes a nonce between two parts of it", () => {
    const { output, seen } = parse(`${"x".repeat(8190)}${N}:loaded data${"y".repeat(9000)}\n`, N, 100);
    assert.ok(!output.includes(N));
    assert.equal(output.length, 8190 + "loaded data".length + 9000 + 1);
    assert.deepEqual(seen, []);
  });

  test("a nonce in a long line is removed wherever the bytes are cut", () => {
    const before = "x".repeat(9000);
    for (const between of ["", ":", "y"])
      for (let chunkBytes = 8950; chunkBytes < 9100; chunkBytes++) {
        const { output } = parse(`${before}${N}${between}${"y".repeat(200)}\n`, N, chunkBytes);
        assert.equal(
          output,
          `${before}${between === "y" ? "y" : ""}${"y".repeat(200)}\n`,
          `in chunks of ${chunkBytes}`,
        );
      }
  });

  test("a marker's value is cut to 256 characters", () => {
    assert.equal(parse(`${N}:training loss ${"9".repeat(1000)}\n`).seen[0]![1]!.length, 256);
  });

  test("the result is the same and the nonce is removed however the bytes are cut", () => {
    const piece = fc.oneof(fc.string(), fc.constantFrom(N, `${N}:`, ":", "\n", "loaded data", " ", ...MARKERS, OTHER));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.integer({ min: 1, max: 40 }), (pieces, chunkBytes) => {
        const text = pieces.join("");
        const whole = parse(text);
        assert.deepEqual(parse(text, N, chunkBytes), whole);
        assert.ok(!whole.output.includes(N));
      }),
      { numRuns: 300 },
    );
  });

  const plain = (text: Buffer, nonce: string, chunkBytes: number) =>
    parse(text, nonce, chunkBytes, PlainParser as never);

  test("the parser finds the same markers in each line as regular expressions", () => {
    const noise = fc.oneof(
      fc.string(),
      fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
    );
    const blank = fc.constantFrom(" ", "\t", "\r", "\u00c2\u00a0", "\u00e3\u0080\u0080", "");
    const name = fc.constantFrom(...MARKERS, "LOADED DATA", "Training Loss", "loaded dat", "loaded database", "");
    const nonce = fc.constantFrom(
      N,
      N,
      OTHER,
      OTHER.toUpperCase(),
      N.slice(1),
      `a${OTHER}`,
      `_${N}`,
      `-${OTHER}`,
      N.slice(0, 20),
      N.slice(20),
    );
    const colon = fc.constantFrom(":", ":", ":", "");
    const marker = fc.tuple(nonce, colon, name, blank).map((parts) => parts.join(""));
    const imitation = fc
      .tuple(fc.constantFrom("", " ", "- ", "a ", ":"), name, fc.constantFrom("", ":", " 0.5", "s", "_"))
      .map((parts) => parts.join(""));
    const padding = fc.integer({ min: 8100, max: 8200 }).map((length) => "-".repeat(length));
    const part = fc.oneof(
      { arbitrary: marker, weight: 8 },
      { arbitrary: imitation, weight: 4 },
      { arbitrary: noise, weight: 2 },
      { arbitrary: padding, weight: 1 },
    );
    const line = fc
      .tuple(fc.array(part, { minLength: 1, maxLength: 4 }), fc.constantFrom("\n", "\n", "\r\n", " \n"))
      .map(([parts, end]) => parts.join("") + end);
    const chunkBytes = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 41, max: 20_000 }));
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 12 }),
        fc.boolean(),
        fc.constantFrom(N, N, N, ""),
        chunkBytes,
        (lines, open, nonce, bytes) => {
          const text = Buffer.from(open ? lines.join("").trimEnd() : lines.join(""), "latin1");
          assert.deepEqual(parse(text, nonce, bytes), plain(text, nonce, bytes));
        },
      ),
      { numRuns: 500 },
    );
  });

  test("the parser finds no marker in a line that is too long to hold", () => {
    for (let length = 8190; length <= 8195; length++)
      for (const end of ["", "\n", "\r\n", "\nloaded data"])
        for (const bytes of [100, 4096, 8192, 8193, 100_000])
          for (const marker of [`${N}:loaded data`, `${OTHER}:loaded data`, ` ${N}:no`]) {
            const text = Buffer.from(`${"-".repeat(length - marker.length)}${marker}${end}`);
            assert.deepEqual(parse(text, N, bytes), plain(text, N, bytes), `${length} ${JSON.stringify(end)} ${bytes}`);
          }
    const cut = `${"x".repeat(9000)}${N}:loaded data\n${N}:trained model\n`;
    for (const bytes of [100, 9000, 9040]) assert.deepEqual(parse(cut, N, bytes).seen, [["trained model", ""]]);
  });
});

const LONGEST_LINE_BYTES = 8192;
const LONGEST_VALUE = 256;
const LINE_FEED = 0x0a;
const NAMES = MARKERS.join("|");
const FOREIGN = new RegExp(`\\b[0-9a-fA-F]{32}:(?:${NAMES})`);
const IMITATION = new RegExp(`^\\W*(?:${NAMES})\\b`, "i");

describe("the time that output takes", () => {
  const shapes: [name: string, line: string | Buffer][] = [
    ["line feeds", "\n"],
    ["short lines", "p\n"],
    ["colons", ":\n"],
    ["blanks", `${" ".repeat(8000)}\n`],
    ["lines that can just be held", `${"a".repeat(8191)}\n`],
    ["no line feed", "a"],
    ["most of the nonce", N.slice(0, 31)],
    ["nonces", N],
    ["markers", `${N}:loaded data\n`],
    ["markers and a blank of another alphabet", Buffer.from(`${N}:loaded data\u3000\n`)],
    ["no markers", `${N}:\n`],
    ["forged markers", `${OTHER}:loaded data\n`],
    ["digests", `${OTHER}:`],
    ["imitations", "loaded data\n"],
    ["almost an imitation", "predicted test label\n"],
    ["no text", Buffer.from([0xff, 0x0a, 0xc3, 0x0a])],
  ];
  for (const [name, line] of shapes)
    test(`4 MiB of ${name} take little processor time`, () => {
      const chunk = Buffer.alloc(1 << 16, line as string);
      const parser = new MarkerParser(N, () => {});
      const before = process.threadCpuUsage();
      for (let sent = 0; sent < 64; sent++) parser.push(chunk, sent);
      parser.end(64);
      const { user, system } = process.threadCpuUsage(before);
      assert.ok(user + system < 250_000, `${(user + system) / 1000} ms`);
    });

  test("a long line that arrives byte by byte takes little processor time", () => {
    const parser = new MarkerParser(N, () => {});
    const byte = Buffer.from("a");
    const before = process.threadCpuUsage();
    for (let sent = 0; sent < 1 << 18; sent++) parser.push(byte, sent);
    const { user, system } = process.threadCpuUsage(before);
    assert.ok(user + system < 400_000, `${(user + system) / 1000} ms`);
  });
});

/** A line-by-line parser with regular expressions that gives the same results: easy to read, and a hundred times slower. */
class PlainParser {
  readonly seen: MarkerSeen[] = [];
  forged = 0;
  imitated = 0;
  readonly #nonce: string;
  readonly #emit: (output: Buffer) => void;
  #pending: Buffer = Buffer.alloc(0);
  /** The pending bytes continue a line whose beginning was too long to hold. */
  #continued = false;

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

  end(atSeconds: number): void {
    if (this.#pending.length > 0) this.#emit(this.#line(this.#pending, atSeconds));
    this.#pending = Buffer.alloc(0);
  }

  #line(line: Buffer, atSeconds: number): Buffer {
    if (this.#continued || line.length > LONGEST_LINE_BYTES) return this.#withoutNonce(line);
    const text = line.toString("latin1").trimEnd();
    // Not only at the start of a line: the program may have printed text before it on the same line.
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
