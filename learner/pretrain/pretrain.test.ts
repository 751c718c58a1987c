import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readModelFolder } from "../engine/model/folder.fixture.ts";
import { readTokenizer } from "../engine/model/folder.ts";
import { TOKENIZER_CODE, trainBpe } from "./bpe.ts";
import { defaultCorpus, inCorpus, makeCorpus } from "./corpus.ts";
import { defaultPretrain, type PretrainProgress, pretrain } from "./pretrain.ts";
import { readme } from "./readme.ts";

const directory = mkdtempSync(join(tmpdir(), "pretrain-"));
after(() => rmSync(directory, { recursive: true }));

const small = { ...defaultPretrain, texts: 40, steps: 3, batchSize: 4 };
const digests = (folder: string) =>
  Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map((name) => [
        name,
        createHash("sha256")
          .update(readFileSync(join(folder, name)))
          .digest("hex"),
      ]),
  );

test("the same seed gives the same bytes of a policy folder, and another seed gives other bytes", async () => {
  const [first, again, other] = ["first", "again", "other"].map((name) => join(directory, name));
  const progress: PretrainProgress[] = [];
  const result = await pretrain({ ...small, out: first, onProgress: (line) => progress.push(line) });
  assert.equal(result.steps, 3);
  assert.ok(result.loss > 5 && result.loss < 9, `loss of an untrained model is ${result.loss}`);
  assert.deepEqual(new Set(progress.map(({ phase }) => phase)), new Set(["corpus", "tokenizer", "train", "save"]));

  mkdirSync(again); // an existing folder is replaced
  writeFileSync(join(again, "old.txt"), "old");
  await pretrain({ ...small, out: again });
  assert.deepEqual(digests(again), digests(first));
  await pretrain({ ...small, seed: 1, out: other });
  assert.notEqual(digests(other)["model.safetensors"], digests(first)["model.safetensors"]);
  assert.deepEqual(readdirSync(directory).sort(), ["again", "first", "other"], "nothing is left behind");

  assert.deepEqual(Object.keys(digests(first)), [
    "README.md",
    "config.json",
    "corpus.hashes",
    "corpus.json",
    "generation_config.json",
    "model.safetensors",
    "tokenization_policy.py",
    "tokenizer.json",
    "tokenizer_config.json",
  ]);
  const model = readModelFolder(first);
  const tokenizer = readTokenizer(first);
  assert.deepEqual(model.eosIds, [tokenizer.tokenId("<|im_end|>")]);
  const facts = JSON.parse(readFileSync(join(first, "corpus.json"), "utf8"));
  assert.equal(facts.texts, 40);
  assert.equal(facts.steps, 3);
  const hashes = readFileSync(join(first, "corpus.hashes"));
  assert.equal(hashes.length, 8 * facts.distinctPrograms);
  const [text] = makeCorpus({ ...defaultCorpus, texts: 1 });
  assert.ok(inCorpus(text.program, hashes));
  const prompt = tokenizer.decode(tokenizer.encodeChat(text.messages), { skipSpecialTokens: false });
  assert.match(
    prompt,
    /^<\|im_start\|>system\n.*<\|im_end\|>\n<\|im_start\|>user\n[\s\S]*<\|im_end\|>\n<\|im_start\|>assistant\n$/,
  );
});

test("an aborted training leaves no folder", async () => {
  const out = join(directory, "aborted");
  const abort = new AbortController();
  const onProgress = (line: PretrainProgress) => line.phase === "train" && abort.abort();
  await assert.rejects(pretrain({ ...small, out, signal: abort.signal, onProgress }), { name: "AbortError" });
  assert.ok(!readdirSync(directory).some((name) => name.startsWith("aborted")));
});

test("bad options are refused in one line", async (t) => {
  const cases: [string[], string][] = [
    [["--steps", "0"], "--steps is 0; give a whole number of at least 1"],
    [["--texts", "many"], "--texts is many; give a whole number of at least 1"],
    [["--learning-rate=-1"], "--learning-rate is -1; give a number above 0"],
    [["--mistake-share", "2"], "--mistake-share is 2; give a number from 0 to 1"],
    [["--tasks", "movie,x", "--export-corpus", "x"], "--tasks has x; known are"],
  ];
  const main = fileURLToPath(new URL("../commands/pretrain-command.ts", import.meta.url));
  for (const [options, message] of cases) {
    await t.test(options.join(" "), () => {
      const { status, stderr } = spawnSync(process.execPath, [main, ...options], { encoding: "utf8" });
      assert.equal(status, 2);
      assert.ok(stderr.startsWith(message), stderr);
      assert.equal(stderr.trim().split("\n").length, 1);
    });
  }
});

test("the bundled policy's page and its settings for AutoTokenizer are those that pretrain writes", () => {
  const read = (name: string) =>
    readFileSync(new URL(`../../manifests/quickstart/policy/${name}`, import.meta.url), "utf8");
  assert.equal(readme(JSON.parse(read("corpus.json"))), read("README.md"));
  // check_model_folder.py compares AutoTokenizer's ids for folders with these files
  const { tokenizerConfig } = trainBpe(["a b"], { vocabSize: 259 });
  assert.deepEqual(JSON.parse(read("tokenizer_config.json")), tokenizerConfig);
  assert.equal(read(TOKENIZER_CODE.name), TOKENIZER_CODE.text);
  const [slow, fast] = (tokenizerConfig.auto_map as { AutoTokenizer: [null, string] }).AutoTokenizer;
  const [module, name] = fast.split(".");
  assert.equal(slow, null);
  assert.equal(`${module}.py`, TOKENIZER_CODE.name);
  assert.match(TOKENIZER_CODE.text, new RegExp(`^class ${name}\\(PreTrainedTokenizerFast\\):$`, "m"));
});
