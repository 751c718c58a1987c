import assert from "node:assert/strict";
import fs from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Tokenizer } from "../engine/model/tokenizer.ts";
import { trainBpe } from "./bpe.ts";

const texts = JSON.parse(
  fs.readFileSync(new URL("../../test/fixtures/tokenizer/texts.json", import.meta.url), "utf8"),
) as string[];

interface Bpe {
  vocab: Record<string, number>;
  merges: [string, string][];
}
const bpeOf = (options: Parameters<typeof trainBpe>[1], corpus: string[] = texts) =>
  trainBpe(corpus, options).tokenizer.model as Bpe;

describe("trainBpe", () => {
  it("makes the fixture that Python was asked about", () => {
    const file = new URL("../../test/fixtures/tokenizer/words/tokenizer.json", import.meta.url);
    assert.deepEqual(trainBpe(texts, { vocabSize: 400 }).tokenizer, JSON.parse(fs.readFileSync(file, "utf8")));
  });

  it("merges the most frequent pair first, and among equals the pair with the lower ids", () => {
    const { merges } = bpeOf({ vocabSize: 265 }, ["abab abab abab cd cd dc dc"]);
    assert.deepEqual(merges[0], ["a", "b"]); // 6 times
    assert.deepEqual(merges[1], ["ab", "ab"]); // 3 times, as " abab" is twice only
    assert.deepEqual(merges[2], ["Ġ", "c"]); // twice, as others, but the lowest ids
  });

  it("gives every token one id, also when two pairs make the same token", () => {
    for (const vocabSize of [259, 300, 400, 450]) {
      const { vocab, merges } = bpeOf({ vocabSize });
      const ids = Object.values(vocab).sort((a, b) => a - b);
      assert.deepEqual(ids, [...ids.keys()]);
      assert.ok(ids.length <= vocabSize && merges.length >= ids.length - 259);
      for (const [left, right] of merges) assert.ok(left + right in vocab, `${left} + ${right}`);
    }
    // ab + c and a + bc both give "abc"
    const { vocab, merges } = bpeOf({ vocabSize: 263 }, ["ab ab ab abc bc bc bc xbc abc abcd xabc"]);
    assert.equal(new Set(merges.map((pair) => pair.join(""))).size, Object.keys(vocab).length - 259);
  });

  it("never learns the name of a special token", () => {
    const { vocab } = bpeOf({ vocabSize: 300 }, Array<string>(9).fill("<|im_end|>x<|im_end|>"));
    assert.equal(vocab["<|im_end|>"], 2);
    assert.ok(!Object.keys(vocab).some((token) => token.length > 4 && token.includes("<|i") && vocab[token] > 2));
  });

  it("stops when no pair occurs twice", () => assert.deepEqual(bpeOf({ vocabSize: 2048 }, ["abc"]).merges, []));

  it("refuses a vocabulary without room for the bytes", () => {
    assert.throws(() => trainBpe([], { vocabSize: 258 }), /vocabSize is 258.*259/);
  });

  it("gives back any text", () => {
    const tokenizer = new Tokenizer(trainBpe(texts, { vocabSize: 400 }));
    const wellFormed = fc.string({ unit: "binary", maxLength: 60 }).map((text) => text.toWellFormed());
    fc.assert(
      fc.property(wellFormed, (text) => {
        assert.equal(tokenizer.decode(tokenizer.encode(text), { skipSpecialTokens: false }), text);
      }),
      { seed: 1, numRuns: 300 },
    );
  });
});
