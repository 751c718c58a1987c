import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { readTokenizer } from "../engine/index.ts";
import { TokenText } from "./text.ts";

const tokenizer = readTokenizer(fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url)));
/** Tokens of one byte each: the 256 that every byte-level tokenizer has. */
const single = Array.from({ length: tokenizer.size }, (_, id) => id).filter(
  (id) => tokenizer.decode([id]).length === 1,
);

function piecesOf(tokens: readonly number[], stop: readonly string[] = []): { pieces: string[]; used: number } {
  const text = new TokenText(tokenizer, stop);
  const pieces: string[] = [];
  for (const token of tokens) {
    pieces.push(text.add([token]));
    if (text.stopped) return { pieces, used: pieces.length };
  }
  return { pieces: [...pieces, text.end()], used: tokens.length };
}

const anyTokens = fc.array(fc.oneof(fc.nat(tokenizer.size - 1), fc.constantFrom(...single)), { maxLength: 60 });

test("the pieces of any tokens add up to their text", () =>
  fc.assert(
    fc.property(anyTokens, (tokens) => {
      assert.equal(piecesOf(tokens).pieces.join(""), tokenizer.decode(tokens));
    }),
    { numRuns: 500 },
  ));

test("the pieces of several tokens at a time add up to their text", () =>
  fc.assert(
    fc.property(fc.array(anyTokens, { maxLength: 8 }), (groups) => {
      const text = new TokenText(tokenizer, []);
      const pieces = groups.map((tokens) => text.add(tokens));
      assert.equal([...pieces, text.end()].join(""), tokenizer.decode(groups.flat()));
    }),
  ));

test("long runs of invalid bytes add up to their text", () => {
  const continuation = tokenizer.encode("é").at(-1)!;
  const [first, second] = tokenizer.encode("😀");
  assert.equal(tokenizer.decode([continuation]), "\uFFFD");
  for (const tokens of [
    new Array(100).fill(continuation),
    new Array(100).fill(first),
    Array.from({ length: 100 }, (_, i) => [first!, second!, continuation][i % 3]!),
  ]) {
    const { pieces } = piecesOf(tokens);
    assert.equal(pieces.join(""), tokenizer.decode(tokens));
    assert.ok(pieces[50]!.length > 0 || pieces[51]!.length > 0 || pieces[52]!.length > 0, "it is not held to the end");
  }
});

test("no piece is a part of a character", () =>
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 30 }), (text) => {
      fc.pre(!text.includes("\uFFFD")); // the text's own
      const tokens = [...tokenizer.encode(text)];
      const { pieces } = piecesOf(tokens);
      for (const piece of pieces) assert.ok(piece.isWellFormed() && !piece.includes("\uFFFD"), JSON.stringify(pieces));
    }),
  ));

test("offsets count characters, not UTF-16 units", () => {
  const text = new TokenText(tokenizer, []);
  for (const token of tokenizer.encode("😀é!")) text.add([token]);
  assert.equal(text.characters, 3);
});

/** Returns the text up to the first complete stop word, computed from the whole text. */
function cut(tokens: readonly number[], stop: readonly string[]): { text: string; used: number } {
  for (let used = 1; used <= tokens.length; used++) {
    const text = tokenizer.decode(tokens.slice(0, used));
    const found = stop.map((word) => text.indexOf(word)).filter((at) => at >= 0);
    if (found.length > 0) return { text: text.slice(0, Math.min(...found)), used };
  }
  return { text: tokenizer.decode(tokens), used: tokens.length };
}

test("the text ends before a stop word, at the token that completes it", () => {
  const word = fc.constantFrom("a", "b", " c", "\n\n", "ab", "aab", "aba", "bc\n", "é", "😀a");
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "c", " ", "\n", "é", "😀"), maxLength: 40 });
  fc.assert(
    fc.property(letters, fc.array(word, { minLength: 1, maxLength: 3 }), (letters, stop) => {
      const tokens = [...tokenizer.encode(letters)];
      const expected = cut(tokens, stop);
      const { pieces, used } = piecesOf(tokens, stop);
      assert.deepEqual({ text: pieces.join(""), used }, expected);
    }),
    { numRuns: 1000 },
  );
});

test("a text that may become a stop word is held back, and sent if it does not", () => {
  const text = new TokenText({ decode: (ids) => String.fromCharCode(...Array.from(ids)) }, ["END"]);
  const add = (letters: string) => [...letters].map((letter) => text.add([letter.charCodeAt(0)]));
  assert.deepEqual(add("xENEND"), ["x", "", "", "EN", "", ""]);
  assert.ok(text.stopped);
  const other = new TokenText({ decode: (ids) => String.fromCharCode(...Array.from(ids)) }, ["END"]);
  other.add([69]);
  assert.equal(other.end(), "E");
});
