import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { MARKERS } from "../proto/markers.ts";
import { MarkerParser } from "./markers.ts";

const N = "0123456789abcdef0123456789abcdef";
const OTHER = "f".repeat(32);

function parse(text: string | Buffer, nonce = N, chunkBytes = Number.POSITIVE_INFINITY) {
  const emitted: Buffer[] = [];
  const parser = new MarkerParser(nonce, (output) => emitted.push(output));
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
    test(name, () => {
      assert.deepEqual(parse(text), { seen, forged, imitated, output });
      assert.deepEqual(parse(text, N, 1), { seen, forged, imitated, output }, "in chunks of one byte");
    });

  test("all seven", () => {
    const { seen } = parse(MARKERS.map((marker) => `${N}:${marker}\n`).join(""));
    assert.deepEqual(
      seen.map(([name]) => name),
      [...MARKERS],
    );
  });

  test("without a nonce nothing is a marker", () => {
    assert.deepEqual(parse(":loaded data\n", "").seen, []);
  });

  test("a long line is passed on, not held, and hides no nonce at a seam", () => {
    const { output, seen } = parse(`${"x".repeat(8190)}${N}:loaded data${"y".repeat(9000)}\n`, N, 100);
    assert.ok(!output.includes(N));
    assert.equal(output.length, 8190 + "loaded data".length + 9000 + 1);
    assert.deepEqual(seen, []);
  });

  test("a nonce in a long line is gone wherever the bytes are cut", () => {
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

  test("values are bounded", () => {
    assert.equal(parse(`${N}:training loss ${"9".repeat(1000)}\n`).seen[0]![1]!.length, 256);
  });

  test("however the bytes are cut, the result is the same and the nonce is gone", () => {
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
});
