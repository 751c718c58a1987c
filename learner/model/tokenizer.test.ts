import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { trainBpe } from "../pretrain/bpe.ts";
import { readTokenizer } from "./folder.ts";
import { Tokenizer } from "./tokenizer.ts";

const FIXTURES = fileURLToPath(new URL("../../test/fixtures/tokenizer", import.meta.url));
const texts = JSON.parse(fs.readFileSync(path.join(FIXTURES, "texts.json"), "utf8")) as string[];

for (const name of ["words", "qwen2"]) {
  describe(`a tokenizer with the ${name} pattern`, () => {
    const tokenizer = readTokenizer(path.join(FIXTURES, name));
    const reference = JSON.parse(fs.readFileSync(path.join(FIXTURES, name, "reference.json"), "utf8"));

    for (const [index, text] of texts.entries()) {
      it(`encodes ${JSON.stringify(text).slice(0, 40)} as Python does, and back`, () => {
        const ids = tokenizer.encode(text);
        assert.deepEqual([...ids], reference.encoded[index]);
        assert.equal(tokenizer.decode(ids, { skipSpecialTokens: false }), text);
      });
    }

    it("decodes any ids as Python does, also bytes that are no UTF-8", () => {
      for (const { ids, text, textWithoutSpecial } of reference.sequences) {
        assert.equal(tokenizer.decode(ids, { skipSpecialTokens: false }), text);
        assert.equal(tokenizer.decode(ids), textWithoutSpecial);
      }
    });

    it("writes chats as transformers does", () => {
      for (const { messages, text } of reference.chats) assert.equal(tokenizer.applyChatTemplate(messages), text);
    });
  });
}

describe("a tokenizer", () => {
  const files = trainBpe(["a b"], { vocabSize: 259 });

  it("knows its special tokens", () => {
    const tokenizer = new Tokenizer(files);
    assert.equal(tokenizer.eosId, tokenizer.tokenId("<|im_end|>"));
    assert.equal(tokenizer.tokenId("no such token"), undefined);
    assert.equal(tokenizer.decode([tokenizer.eosId!, 3 + 0x42]), "B");
    assert.equal(tokenizer.decode([]), "");
  });

  it("takes the template called default, and one from a file before that", () => {
    const named = [
      { name: "tools", template: "no" },
      { name: "default", template: "{{ messages[0].content }}" },
    ];
    const tokenizerConfig = { ...files.tokenizerConfig, chat_template: named };
    const chat = [{ role: "user", content: "yes" } as const];
    assert.equal(new Tokenizer({ ...files, tokenizerConfig }).applyChatTemplate(chat), "yes");
    assert.equal(new Tokenizer({ ...files, tokenizerConfig, chatTemplate: "file" }).applyChatTemplate(chat), "file");
  });

  for (const [what, changed, message] of [
    ["no model", { ...files, tokenizer: {} }, /cannot use tokenizer.json/],
    ["a template that does not parse", { ...files, chatTemplate: "{% if %}" }, /cannot parse the chat template/],
  ] as const) {
    it(`is refused with ${what}`, () => assert.throws(() => new Tokenizer(changed), { code: "tokenizer", message }));
  }

  it("says that it has no chat template", () => {
    const tokenizer = new Tokenizer({ ...files, tokenizerConfig: {} });
    assert.throws(() => tokenizer.applyChatTemplate([]), /no chat template/);
  });
});
