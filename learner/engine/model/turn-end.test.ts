import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { readTokenizer } from "./folder.ts";
import { tokenName, turnEndWarning } from "./turn-end.ts";

const POLICY = fileURLToPath(new URL("../../../manifests/quickstart/policy", import.meta.url));
const root = fs.mkdtempSync(path.join(os.tmpdir(), "turn-end-"));
after(() => fs.rmSync(root, { recursive: true }));
let folders = 0;

/** Returns the bundled policy, whose turns end with `<|im_end|>` (2), with other tokens that end a response and another template. */
function folderWith(eos: unknown, template?: string | null): string {
  const folder = path.join(root, String(folders++));
  fs.mkdirSync(folder);
  for (const name of fs.readdirSync(POLICY))
    if (!name.endsWith(".safetensors")) fs.copyFileSync(path.join(POLICY, name), path.join(folder, name));
  const change = (name: string, fields: object) => {
    const file = path.join(folder, name);
    fs.writeFileSync(file, JSON.stringify({ ...JSON.parse(fs.readFileSync(file, "utf8")), ...fields }));
  };
  for (const name of ["config.json", "generation_config.json"]) change(name, { eos_token_id: eos });
  if (template !== undefined) change("tokenizer_config.json", { chat_template: template });
  return folder;
}

const turn = (end: string) => `{% for m in messages %}{{ m.content }}${end}{% endfor %}`;

describe("a chat template whose turns end with a token that ends no response", () => {
  it("is named, with both tokens and the remedy", () => {
    const folder = folderWith(0);
    const problem = "the chat template ends an answer with <|im_end|> (2), but only <|endoftext|> (0) ends a response";
    const remedy = "set eos_token_id in generation_config.json to [0,2]";
    assert.equal(
      turnEndWarning(folder),
      `${folder}: ${problem}, so that responses are cut at their longest; ${remedy}`,
    );
  });

  for (const [what, eos, template] of [
    ["text behind the token", 0, turn("<|im_end|>\\n")],
    ["text before the token", 0, turn(" \\n<|im_end|>")],
    ["several tokens", [0, 1], turn("<|im_end|>")],
  ] as const)
    it(`is named: ${what}`, () =>
      assert.match(turnEndWarning(folderWith(eos, template))!, /ends an answer with <\|im_end\|> \(2\)/));

  for (const [what, eos, template] of [
    ["that ends a response", 2, undefined],
    ["that ends a response, among others", [0, 2], undefined],
    ["before one that ends a response", 0, turn("<|im_end|><|endoftext|>")],
    ["that is no added token", 0, turn("\\n")],
    ["in no template", 0, null],
    ["in a template that fails", 0, "{{ raise_exception('no') }}"],
    ["in a template without the answer", 0, "<|im_end|>"],
  ] as const)
    it(`is not: a token ${what}`, () => assert.equal(turnEndWarning(folderWith(eos, template)), undefined));
});

it("a token has its name", () => {
  const tokenizer = readTokenizer(POLICY);
  assert.deepEqual([tokenName(tokenizer, 2), tokenName(tokenizer, 99999)], ["<|im_end|>", undefined]);
});
