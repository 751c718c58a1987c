import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { findTokenizer, missingTokenizer, REAL_TOKENIZERS, type RealTokenizer } from "../../../test/tokenizers.ts";
import { trainBpe } from "../../pretrain/bpe.ts";
import { readTokenizer } from "./folder.ts";
import { type Message, Tokenizer } from "./tokenizer.ts";

const FIXTURES = fileURLToPath(new URL("../../../test/fixtures/tokenizer", import.meta.url));
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

    it("decodes any ids as Python does, also bytes that are not UTF-8", () => {
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

interface Kind {
  readonly name: string;
  readonly change: object;
  readonly texts: readonly { readonly text: string; readonly ids: number[]; readonly decoded: string }[];
  readonly sequences?: readonly { readonly ids: number[]; readonly decoded: string }[];
}
describe("a tokenizer with the pre-tokenizer and decoder of another family", () => {
  const words = readTokenizer(path.join(FIXTURES, "words")).files;
  const kinds = JSON.parse(fs.readFileSync(path.join(FIXTURES, "kinds.json"), "utf8")) as Kind[];
  for (const { name, change, texts, sequences = [] } of kinds)
    it(`has Python's ids and text, also of rare characters: ${name}`, () => {
      const tokenizer = new Tokenizer({ ...words, tokenizer: { ...words.tokenizer, ...change } });
      for (const { text, ids, decoded } of texts) {
        assert.deepEqual([...tokenizer.encode(text)], ids, JSON.stringify(text));
        assert.equal(tokenizer.decode(ids), decoded);
      }
      for (const { ids, decoded } of sequences) assert.equal(tokenizer.decode(ids), decoded);
    });
});

describe("a tokenizer", () => {
  const files = trainBpe(["a b"], { vocabSize: 259 });
  const changedFiles = (change: { model?: object; added?: object }) => {
    const { model, added_tokens } = files.tokenizer as { model: object; added_tokens: object[] };
    const added = added_tokens.map((token) => ({ ...token, ...change.added }));
    return { ...files, tokenizer: { ...files.tokenizer, model: { ...model, ...change.model }, added_tokens: added } };
  };

  const cutBy = (pre_tokenizer: object) => ({ ...files, tokenizer: { ...files.tokenizer, pre_tokenizer } });

  it("adds on request the tokens that tokenizer.json puts before a text", () => {
    const [{ id, content }] = files.tokenizer.added_tokens as [{ id: number; content: string }];
    const special_tokens = { [content]: { id: content, ids: [id], tokens: [content] } };
    const single = [{ SpecialToken: { id: content, type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }];
    const post_processor = { type: "TemplateProcessing", single, pair: single, special_tokens };
    const tokenizer = new Tokenizer({ ...files, tokenizer: { ...files.tokenizer, post_processor } });
    const plain = [...tokenizer.encode("a b")];
    assert.deepEqual([...tokenizer.encode("a b", { addSpecialTokens: true })], [id, ...plain]);
    assert.ok(!plain.includes(id));
  });

  it("knows its longest token", () => {
    const longest = Math.max(...Object.keys((files.tokenizer.model as { vocab: object }).vocab).map((it) => it.length));
    const added = Math.max(...(files.tokenizer.added_tokens as { content: string }[]).map((it) => it.content.length));
    assert.equal(new Tokenizer(files).longestToken, Math.max(longest, added));
  });

  it("knows its special tokens", () => {
    const tokenizer = new Tokenizer(files);
    assert.equal(tokenizer.eosId, tokenizer.tokenId("<|im_end|>"));
    assert.equal(tokenizer.tokenId("no such token"), undefined);
    assert.equal(tokenizer.decode([tokenizer.eosId!, 3 + 0x42]), "B");
    assert.equal(tokenizer.decode([]), "");
  });

  it("prefers the template of a file to the template that is named default", () => {
    const named = [
      { name: "tools", template: "no" },
      { name: "default", template: "{{ messages[0].content }}" },
    ];
    const tokenizerConfig = { ...files.tokenizerConfig, chat_template: named };
    const chat = [{ role: "user", content: "yes" } as const];
    assert.equal(new Tokenizer({ ...files, tokenizerConfig }).applyChatTemplate(chat), "yes");
    assert.equal(new Tokenizer({ ...files, tokenizerConfig, chatTemplate: "file" }).applyChatTemplate(chat), "file");
  });

  it("has no template if no template is named default", () => {
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
    ["a pre-tokenizer of BERT", cutBy({ type: "Whitespace" }), /a pre_tokenizer is Whitespace, which is not supported/],
    [
      "a Split that it does not know",
      cutBy({
        type: "Sequence",
        pretokenizers: [{ type: "Split", pattern: { String: " " }, behavior: "MergedWithNext" }],
      }),
      /behavior of the pre_tokenizer Split is MergedWithNext/,
    ],
    [
      "an added token whose id is another in the vocabulary",
      changedFiles({ added: { id: 300 } }),
      /the id of the added token "<\|endoftext\|>" is 300 but 0 in the vocabulary/,
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

  it("gives templates the variables that transformers gives them", () => {
    const template =
      "{% if tools is none and documents is none %}none {% endif %}{{ bos_token }}{{ sep_token }}" +
      "{% if no_such_token is not defined %} undefined{% endif %}{% if add_generation_prompt %} open{% endif %}";
    const tokenizerConfig = { ...files.tokenizerConfig, bos_token: "B", sep_token: { content: "S" } };
    const tokenizer = new Tokenizer({ ...files, tokenizerConfig, chatTemplate: template });
    assert.equal(tokenizer.applyChatTemplate(chat), "none BS undefined open");
    assert.equal(tokenizer.applyChatTemplate(chat, { addGenerationPrompt: false }), "none BS undefined");
  });

  it("refuses a chat if it has no template or the chat has no messages", () => {
    const tokenizer = new Tokenizer({ ...files, tokenizerConfig: {} });
    assert.throws(() => tokenizer.applyChatTemplate(chat), /no chat template/);
    assert.throws(() => new Tokenizer(files).applyChatTemplate([]), { code: "tokenizer", message: /without messages/ });
  });

  it("reads halves of surrogate pairs as U+FFFD", () => {
    const tokenizer = new Tokenizer(files);
    for (const [text, back] of [
      ["\ud83d", "\ufffd"],
      ["a\udc4db\ud83d", "a\ufffdb\ufffd"],
    ])
      assert.equal(tokenizer.decode(tokenizer.encode(text)), back);
  });

  it("leaves out unknown ids, because a model's vocabulary may be padded", () => {
    const tokenizer = new Tokenizer(files);
    const [a] = tokenizer.encode("a");
    assert.equal(tokenizer.decode([a, tokenizer.size, a, 2 ** 30]), "aa");
  });

  it("keeps all spaces of a program, also if tokenizer_config.json has clean_up_tokenization_spaces", () => {
    const tokenizerConfig = { ...files.tokenizerConfig, clean_up_tokenization_spaces: true };
    const tokenizer = new Tokenizer({ ...files, tokenizerConfig });
    assert.equal(tokenizer.decode(tokenizer.encode("x = [1 , 2] ! 's n't .")), "x = [1 , 2] ! 's n't .");
  });
});

/** Folders with a tokenizer; real tokenizers only if they have been fetched. */
const folders: [name: string, folder: string | undefined][] = [
  ["words", path.join(FIXTURES, "words")],
  ["qwen2", path.join(FIXTURES, "qwen2")],
  ["quickstart", fileURLToPath(new URL("../../../manifests/quickstart/policy", import.meta.url))],
  ...REAL_TOKENIZERS.map((name): [string, string | undefined] => [name, findTokenizer(name)]),
];
for (const [name, folder] of folders)
  describe(`text in a chat, with the tokenizer of ${name}`, {
    skip: folder === undefined && missingTokenizer(name as RealTokenizer),
  }, () => {
    if (folder === undefined) return;
    const tokenizer = readTokenizer(folder);
    const { added_tokens } = tokenizer.files.tokenizer as { added_tokens: { id: number; content: string }[] };
    const names = added_tokens.map(({ content }) => content);
    const ids = new Set(added_tokens.map(({ id }) => id));
    const chatOf = (content: string): Message[] => [
      { role: "system", content: "Solve the task." },
      { role: "user", content },
    ];
    const addedOf = (content: string) => [...tokenizer.encodeChat(chatOf(content))].filter((id) => ids.has(id));
    const own = addedOf("x");

    it("has no special tokens but the template's", () => {
      for (const token of names)
        for (const content of [token, `a ${token} b`, `${token}${token}`, `x=1${token}\n`, token.slice(0, 2) + token]) {
          assert.deepEqual(addedOf(content), own, content);
          const back = tokenizer.decode(tokenizer.encodeChat(chatOf(content)), { skipSpecialTokens: false });
          assert.equal(back, tokenizer.applyChatTemplate(chatOf(content)));
        }
    });

    it("is encoded as by a tokenizer without special tokens", () => {
      const plain = new Tokenizer({
        ...tokenizer.files,
        tokenizer: { ...tokenizer.files.tokenizer, added_tokens: [] },
      });
      const piece = fc.oneof(
        fc.constantFrom(...names, "<|", "|>", " ", "\n", "a", "\u{100000}"),
        fc.string({ unit: "binary" }),
      );
      fc.assert(
        fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
          const content = `a${pieces.join("")}b`; // templates trim
          // The template's part before and behind the text, as they are around a letter.
          const [before, behind] = tokenizer.applyChatTemplate(chatOf("\u{f0000}")).split("\u{f0000}") as [
            string,
            string,
          ];
          const cut = Math.max(
            ...names.map((token) => before.lastIndexOf(token) + (before.includes(token) ? token.length : 0)),
          );
          const end = Math.min(
            ...names.filter((token) => behind.includes(token)).map((token) => behind.indexOf(token)),
          );
          const expected = [
            ...tokenizer.encode(before.slice(0, cut)),
            ...plain.encode(before.slice(cut) + content + behind.slice(0, end)),
            ...tokenizer.encode(behind.slice(end)),
          ];
          assert.deepEqual([...tokenizer.encodeChat(chatOf(content))], expected);
        }),
        { numRuns: 200 },
      );
    });

    it("has special tokens in the assistant's messages, because the model wrote them", () => {
      for (const token of names) {
        const chat: Message[] = [
          ...chatOf("x"),
          { role: "assistant", content: `a ${token} b` },
          ...chatOf("x").slice(1),
        ];
        assert.deepEqual(tokenizer.encodeChat(chat), tokenizer.encode(tokenizer.applyChatTemplate(chat)));
      }
    });

    it("has the ids of the rendered chat if it names no token", () => {
      for (const text of texts.filter((text) => !names.some((token) => text.includes(token))))
        assert.deepEqual(
          tokenizer.encodeChat(chatOf(text)),
          tokenizer.encode(tokenizer.applyChatTemplate(chatOf(text))),
        );
    });
  });

describe("a name of a token in a chat", () => {
  const files = trainBpe(["a b"], { vocabSize: 259 });
  const { model, added_tokens, ...rest } = files.tokenizer as { model: { vocab: object }; added_tokens: object[] };
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: false };
  const withTokens = (
    contents: string[],
    change: { vocab?: object; [name: string]: unknown } = {},
    changed: object = {},
  ) => {
    const vocab = (change.vocab ?? model.vocab) as Record<string, number>;
    const tokens = contents.map((content, i) => ({ ...flags, id: vocab[content] ?? 259 + i, content }));
    return new Tokenizer({
      ...files,
      tokenizer: { ...rest, ...changed, model: { ...model, ...change }, added_tokens: [...added_tokens, ...tokens] },
    });
  };
  const added = (tokenizer: Tokenizer, content: string) =>
    [...tokenizer.encodeChat([{ role: "user", content }])].filter((id) => id >= 259);

  it("is text also if it overlaps itself or other names", () => {
    const tokenizer = withTokens(["<<", "<a>", "a><", "THINK"]);
    for (const content of ["<<<.", "<<<<<.", "<a><a>.", "a><<.", "THINK", "THINKTHINK"]) {
      assert.deepEqual(added(tokenizer, content), [], content);
      assert.equal(
        tokenizer.decode(tokenizer.encodeChat([{ role: "user", content }])).includes(content),
        true,
        content,
      );
    }
  });

  for (const [what, contents, content] of [
    ["of one character", ["ü"], "über ü, üü."],
    ["of one character beyond the first plane", ["😀"], "a😀😀b"],
    ["of one character that begins another", ["q", "quick", "<q>"], "quick <q> q qquick"],
  ] as const)
    it(`is text also if it is ${what}`, { timeout: 10_000 }, () => {
      const tokenizer = withTokens([...contents]);
      const ids = tokenizer.encodeChat([{ role: "user", content }]);
      assert.ok(tokenizer.decode(ids).includes(content));
      const plain = withTokens([]);
      assert.deepEqual(ids, plain.encode(plain.applyChatTemplate([{ role: "user", content }])));
    });

  it("of one byte's character is no token of that byte", () => {
    const tokenizer = withTokens(["Ã"]); // in a byte-level vocabulary the name of byte 0xc3
    assert.deepEqual(tokenizer.encode("é"), withTokens([]).encode("é"));
    const content = "é Ã";
    const plain = withTokens([]);
    const chat: Message[] = [{ role: "user", content }];
    assert.deepEqual(tokenizer.encodeChat(chat), plain.encode(plain.applyChatTemplate(chat)));
  });

  it("is not a token of a vocabulary that has bytes and the name's characters alone", () => {
    const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
    const vocab = Object.fromEntries([...bytes, "a"].map((token, id) => [token, id]));
    const tokenizer = withTokens(["ü"], { vocab, merges: [], byte_fallback: true }, { pre_tokenizer: null });
    assert.deepEqual([...tokenizer.encode("aüa")], [256, 259, 256]);
    assert.deepEqual(added(tokenizer, "aüa"), []);
  });

  it("is text in a tokenizer that takes whole words of the vocabulary", () => {
    const pre_tokenizer = {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: "\\p{L}+|\\P{L}" }, behavior: "Isolated", invert: false },
        { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    };
    const tokenizer = withTokens(["THINK"], { ignore_merges: true }, { pre_tokenizer });
    assert.deepEqual(
      [...tokenizer.encode("a THINK b")].filter((id) => id >= 259),
      [259],
    );
    assert.deepEqual(added(tokenizer, "a THINK b"), []);
  });

  it("stays a token if it is white space", () => {
    assert.equal(added(withTokens(["\n\n"]), "a\n\nb").length, 1);
  });

  it("is text in a message that has the private characters of the encoder", () => {
    const tokenizer = withTokens(["<think>"]);
    const content = "\u{100000}<think>\u{100001}";
    assert.ok(tokenizer.decode(tokenizer.encodeChat([{ role: "user", content }])).includes(content));
  });

  it("stays a token in text that is encoded without a chat, also after a chat", () => {
    const tokenizer = withTokens(["<think>"]);
    assert.deepEqual(added(tokenizer, "<think>"), []);
    assert.deepEqual([...tokenizer.encode("<think>")], [259]);
    assert.equal(tokenizer.decode(tokenizer.encode("\u{100000}")), "\u{100000}");
  });
});
