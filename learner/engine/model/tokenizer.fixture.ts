import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { describe, it } from "node:test";
import { findTokenizer, missingTokenizer, type RealTokenizer } from "../../../test/tokenizers.ts";
import { readTokenizer } from "./folder.ts";
import type { Message, Tokenizer } from "./tokenizer.ts";

interface Reference {
  size: number;
  /** number of tokens of each text of the corpus, and the digest of their ids */
  encoded: [count: number, digest: string][];
  /** the ids of some texts, by index */
  ids: Record<string, number[]>;
  /** ranges of code points, and the digest of each 256 */
  sweep: [range: [number, number], digests: string[]][];
  sequences: { ids: number[]; text: string; textWithoutSpecial: string }[];
  transformersDecode: string;
  /** each chat with and without the generation prompt; null where transformers refuses it */
  chats: [string | null, string | null][];
}

const FOLDER = new URL("../../../test/fixtures/tokenizer/real/", import.meta.url);
const read = (name: string) => JSON.parse(fs.readFileSync(new URL(name, FOLDER), "utf8"));
/** Qwen's normalizer. */
const normalized: Partial<Record<RealTokenizer, boolean>> = { "qwen2.5": true, qwen3: true };

/**
 * Compares a real tokenizer with the results of Python's `tokenizers` and `transformers` for the same texts and chats
 * (test/fixtures/reference/make_real_tokenizer_reference.py). `sweep`: all scripts too, 10 s.
 */
export function testTokenizer(name: RealTokenizer, { sweep }: { sweep: boolean }): void {
  const folder = findTokenizer(name);
  describe(`the tokenizer of ${name}`, { skip: folder === undefined && missingTokenizer(name) }, () => {
    const corpus: string[] = read("corpus.json");
    const reference: Reference = read(`${name}.json`);
    let tokenizer: Tokenizer;

    it("is read", () => {
      tokenizer = readTokenizer(folder!);
      assert.equal(tokenizer.size, reference.size);
    });

    it(`encodes the ${corpus.length} texts of the corpus as Python does`, () => {
      for (const [index, ids] of Object.entries(reference.ids))
        assert.deepEqual([...tokenizer.encode(corpus[Number(index)])], ids);
      assert.equal(reference.encoded.length, corpus.length);
      for (const [index, text] of corpus.entries()) {
        const ids = tokenizer.encode(text);
        assert.deepEqual([ids.length, digest(ids)], reference.encoded[index], `text ${index}: ${clip(text)}`);
      }
    });

    it("decodes them back", () => {
      for (const text of corpus) {
        const back = tokenizer.decode(tokenizer.encode(text), { skipSpecialTokens: false });
        assert.equal(back, normalized[name] ? text.normalize("NFC") : text);
      }
    });

    it("encodes every script as Python does", { skip: !sweep && "in `npm run test:parity`" }, () => {
      for (const [[first, last], digests] of reference.sweep)
        for (const [index, expected] of digests.entries()) {
          const start = first + 256 * index;
          const text = sweepText(start, Math.min(start + 256, last));
          assert.equal(digest(tokenizer.encode(text)), expected, `code points from ${start.toString(16)}`);
        }
    });

    it("decodes any ids as Python does: bytes that are no UTF-8, parts of characters, unknown ids", () => {
      for (const { ids, text, textWithoutSpecial } of reference.sequences) {
        assert.equal(tokenizer.decode(ids, { skipSpecialTokens: false }), text, ids.join());
        assert.equal(tokenizer.decode(ids), textWithoutSpecial, ids.join());
      }
      assert.equal(tokenizer.decode(tokenizer.encode(" a , b . don ' t 's x !")), reference.transformersDecode);
    });

    it("writes chats as transformers does", () => {
      const chats: Message[][] = read("chats.json");
      assert.equal(reference.chats.length, chats.length);
      for (const [index, messages] of chats.entries()) {
        for (const [column, addGenerationPrompt] of [true, false].entries()) {
          const expected = messages.length === 0 ? null : reference.chats[index][column];
          const write = () => tokenizer.applyChatTemplate(messages, { addGenerationPrompt });
          if (expected === null) assert.throws(write, { code: "tokenizer" }, `chat ${index}`);
          else assert.equal(write(), expected, `chat ${index}`);
        }
      }
    });
  });
}

function sweepText(first: number, last: number): string {
  let text = "";
  for (let point = first; point < last; point++) {
    const c = String.fromCodePoint(point);
    text += `a${c}b ${c}1${c}${c}\n`;
  }
  return text;
}

function digest(ids: Int32Array): string {
  return createHash("sha256")
    .update(new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength))
    .digest("hex")
    .slice(0, 12);
}

function clip(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text);
}
