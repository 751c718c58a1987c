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
  const changedFiles = (change: { model?: object; added?: object }) => {
    const { model, added_tokens } = files.tokenizer as { model: object; added_tokens: object[] };
    const added = added_tokens.map((token) => ({ ...token, ...change.added }));
    return { ...files, tokenizer: { ...files.tokenizer, model: { ...model, ...change.model }, added_tokens: added } };
  };

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

  it("has no template where none is called default", () => {
    for (const none of [[null], [{ name: "tools", template: "no" }], [{ name: "default", template: 1 }], 5, null]) {
      const tokenizerConfig = { ...files.tokenizerConfig, chat_template: none };
      const tokenizer = new Tokenizer({ ...files, tokenizerConfig });
      assert.throws(() => tokenizer.applyChatTemplate([{ role: "user", content: "x" }]), { code: "tokenizer" });
    }
  });

  for (const [what, changed, message] of [
    ["no model", { ...files, tokenizer: {} }, /cannot use tokenizer.json/],
    ["a template that does not parse", { ...files, chatTemplate: "{% if %}" }, /cannot parse the chat template/],
    ["BPE dropout", changedFiles({ model: { dropout: 0.1 } }), /model\.dropout is 0\.1, which is not supported/],
    [
      "added tokens that are whole words",
      changedFiles({ added: { single_word: true } }),
      /single_word .*<\|endoftext\|>/,
    ],
  ] as const) {
    it(`is refused with ${what}`, () => assert.throws(() => new Tokenizer(changed), { code: "tokenizer", message }));
  }

  const chat = [{ role: "user", content: "x" } as const];
  for (const [what, template, message] of [
    [
      "that refuses the messages",
      "{{ raise_exception('only\nassistants') }}",
      /^the chat template failed: only assistants$/,
    ],
    ["with a filter that Jinja lacks", "{{ messages | nofilter }}", /^the chat template failed: .*nofilter/],
    ["whose error has no message", "{% break %}", /^the chat template failed: \w+/],
  ] as const) {
    it(`says on one line why a template ${what} fails`, () => {
      const tokenizer = new Tokenizer({ ...files, chatTemplate: template });
      assert.throws(() => tokenizer.applyChatTemplate(chat), { code: "tokenizer", message });
    });
  }

  it("gives templates what transformers gives them", () => {
    const template =
      "{% if tools is none and documents is none %}none {% endif %}{{ bos_token }}{{ sep_token }}" +
      "{% if no_such_token is not defined %} undefined{% endif %}{% if add_generation_prompt %} open{% endif %}";
    const tokenizerConfig = { ...files.tokenizerConfig, bos_token: "B", sep_token: { content: "S" } };
    const tokenizer = new Tokenizer({ ...files, tokenizerConfig, chatTemplate: template });
    assert.equal(tokenizer.applyChatTemplate(chat), "none BS undefined open");
    assert.equal(tokenizer.applyChatTemplate(chat, { addGenerationPrompt: false }), "none BS undefined");
  });

  it("says that it has no chat template, or no messages", () => {
    const tokenizer = new Tokenizer({ ...files, tokenizerConfig: {} });
    assert.throws(() => tokenizer.applyChatTemplate(chat), /no chat template/);
    assert.throws(() => new Tokenizer(files).applyChatTemplate([]), { code: "tokenizer", message: /without messages/ });
  });

  it("takes halves of surrogate pairs for U+FFFD, as bytes that are no UTF-8", () => {
    const tokenizer = new Tokenizer(files);
    for (const [text, back] of [
      ["\ud83d", "\ufffd"],
      ["a\udc4db\ud83d", "a\ufffdb\ufffd"],
    ])
      assert.equal(tokenizer.decode(tokenizer.encode(text)), back);
  });

  it("leaves out ids that it does not know: a model's vocabulary may be padded", () => {
    const tokenizer = new Tokenizer(files);
    const [a] = tokenizer.encode("a");
    assert.equal(tokenizer.decode([a, tokenizer.size, a, 2 ** 30]), "aa");
  });

  it("takes no space out of programs, whatever tokenizer_config.json says", () => {
    const tokenizerConfig = { ...files.tokenizerConfig, clean_up_tokenization_spaces: true };
    const tokenizer = new Tokenizer({ ...files, tokenizerConfig });
    assert.equal(tokenizer.decode(tokenizer.encode("x = [1 , 2] ! 's n't .")), "x = [1 , 2] ! 's n't .");
  });
});
