import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { trainBpe } from "../../pretrain/bpe.ts";
import { parseConfig } from "./config.ts";
import { convertFolder } from "./convert.ts";
import { readModelFolder } from "./folder.fixture.ts";
import { createModelFolder, eosIdsOf, readTokenizer, writeModelFolder } from "./folder.ts";
import { MappedWeights } from "./mapped.ts";
import { readSafetensors, writeSafetensors, writeTensors } from "./safetensors.ts";
import { initialWeights, type Tensor } from "./weights.ts";

const root = fs.mkdtempSync(path.join(os.tmpdir(), "model-folder-"));
after(() => fs.rmSync(root, { recursive: true }));
let folders = 0;
const newFolder = () => path.join(root, String(folders++));
const json = (folder: string, name: string) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));
const put = (folder: string, name: string, value: unknown) =>
  fs.writeFileSync(path.join(folder, name), typeof value === "string" ? value : JSON.stringify(value));

const config = parseConfig({
  model_type: "qwen2",
  vocab_size: 264,
  hidden_size: 16,
  intermediate_size: 24,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  tie_word_embeddings: true,
});
const weights = initialWeights(config, 1);
const tokenizer = trainBpe(["abab abab"], { vocabSize: 264 });

function created(eosIds = [2]): string {
  const folder = newFolder();
  createModelFolder(folder, { config, weights, tokenizer, eosIds });
  return folder;
}

describe("a model folder", () => {
  it("is read back as it was written", () => {
    const folder = created([0, 2]);
    assert.deepEqual(readModelFolder(folder), { config, weights, eosIds: [0, 2] });
    assert.deepEqual(readTokenizer(folder).files, { ...tokenizer, chatTemplate: undefined });
    assert.deepEqual(fs.readdirSync(folder).sort(), [
      ...["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"],
    ]);
  });

  it("keeps the files of the folder that it was written from and names the dtype of the weights", () => {
    const source = created();
    put(source, "config.json", { ...json(source, "config.json"), dtype: undefined, torch_dtype: "bfloat16", extra: 1 });
    put(source, "LICENSE", "text");
    put(source, "pytorch_model.bin", "old");
    put(source, "fetched.json", "old");
    const folder = newFolder();
    const changed = initialWeights(config, 2);
    writeModelFolder(folder, source, config, changed);
    assert.deepEqual(readModelFolder(folder).weights, changed);
    assert.deepEqual(readModelFolder(source).weights, weights);
    const { dtype, torch_dtype, extra } = json(folder, "config.json");
    assert.deepEqual([dtype, torch_dtype, extra], ["float32", undefined, 1]);
    assert.ok(fs.existsSync(path.join(folder, "LICENSE")));
    // Its weights differ from the fetched weights.
    for (const name of ["pytorch_model.bin", "fetched.json"]) assert.ok(!fs.existsSync(path.join(folder, name)), name);
    writeModelFolder(folder, folder, config, weights); // in place
    assert.deepEqual(readModelFolder(folder).weights, weights);
  });

  it("may have its weights in shards", () => {
    const folder = created();
    const tensors = [...readSafetensors(path.join(folder, "model.safetensors"))];
    fs.rmSync(path.join(folder, "model.safetensors"));
    const shards = { "a.safetensors": tensors.slice(0, 5), "b.safetensors": tensors.slice(5) };
    const map: Record<string, string> = {};
    for (const [file, part] of Object.entries(shards)) {
      writeSafetensors(path.join(folder, file), new Map(part));
      for (const [name] of part) map[name] = file;
    }
    put(folder, "model.safetensors.index.json", { weight_map: map });
    assert.deepEqual(readModelFolder(folder).weights, weights);
    put(folder, "model.safetensors.index.json", { weight_map: { ...map, x: "../a.safetensors" } });
    assert.throws(() => readModelFolder(folder), {
      code: "weights",
      message: /shard "..\/a.safetensors" is not a plain/,
    });
  });

  it("is read if transformers wrote it", () => {
    const folder = fileURLToPath(new URL("../../../test/fixtures/generation/llama", import.meta.url));
    const { config: read, weights: data, eosIds } = readModelFolder(folder);
    assert.deepEqual([read.modelType, read.headSize, read.tied, eosIds], ["llama", 6, false, []]);
    assert.equal(data.get("lm_head.weight")!.length, 160 * 32);
  });

  describe("with tied embeddings and an output layer in its files", () => {
    const EMBEDDING = "model.embed_tokens.weight";
    const OUTPUT = "lm_head.weight";
    const [embedding] = weights.values();
    const edited = (change: (tensors: Map<string, Tensor>) => void): string => {
      const folder = created();
      const file = path.join(folder, "model.safetensors");
      const tensors = readSafetensors(file);
      change(tensors);
      writeSafetensors(file, tensors);
      return folder;
    };
    const shape = [264, 16];

    it("is read if the two are equal, and written with one", () => {
      const folder = edited((tensors) => tensors.set(OUTPUT, { shape, data: embedding! }));
      assert.deepEqual(readModelFolder(folder).weights, weights);
      const out = newFolder();
      convertFolder(folder, out, {});
      assert.deepEqual([...readSafetensors(path.join(out, "model.safetensors")).keys()], [...weights.keys()]);
    });

    it("is read if the two are equal in different dtypes", () => {
      const halved = newFolder();
      convertFolder(created(), halved, { dtype: "BF16" });
      const rounded = readSafetensors(path.join(halved, "model.safetensors")).get(EMBEDDING)!.data;
      const folder = edited((tensors) => tensors.set(EMBEDDING, { shape, data: rounded }));
      fs.renameSync(path.join(folder, "model.safetensors"), path.join(folder, "a.safetensors"));
      const output = path.join(folder, "b.safetensors");
      const map = Object.fromEntries([...weights.keys()].map((name) => [name, "a.safetensors"]));
      put(folder, "model.safetensors.index.json", { weight_map: { ...map, [OUTPUT]: "b.safetensors" } });
      writeTensors(output, [{ name: OUTPUT, shape, read: () => rounded }], "BF16");
      assert.deepEqual(readModelFolder(folder).weights.get(EMBEDDING), rounded);
      writeTensors(output, [{ name: OUTPUT, shape, read: () => rounded.map((value) => value + 1) }], "BF16");
      assert.throws(() => readModelFolder(folder), { code: "weights", message: /differs from/ });
    });

    it("is read with the output layer as the embedding if it has no embedding", () => {
      const folder = edited((tensors) => {
        tensors.set(OUTPUT, tensors.get(EMBEDDING)!);
        tensors.delete(EMBEDDING);
      });
      assert.deepEqual(readModelFolder(folder).weights, weights);
      assert.equal(new MappedWeights(folder).tensors[0]!.name, EMBEDDING);
    });

    for (const [what, change] of [
      ["the last number", (data: Float32Array) => (data[data.length - 1]! += 1)],
      ["the first number", (data: Float32Array) => (data[0]! += 1)],
      ["another shape", () => undefined],
    ] as const) {
      it(`is refused if the two differ: ${what}`, () => {
        const data = structuredClone(embedding!);
        change(data);
        const other = what === "another shape" ? { shape: [132, 32], data } : { shape, data };
        const folder = edited((tensors) => tensors.set(OUTPUT, other));
        const message =
          /lm_head.weight differs from model.embed_tokens.weight, but tie_word_embeddings .*; set it to false/;
        const expected = { code: "weights", message };
        assert.throws(() => readModelFolder(folder), expected);
        assert.throws(() => convertFolder(folder, newFolder(), {}), expected);
      });
    }

    it("keeps both if config.json says so", () => {
      const data = structuredClone(embedding!).fill(0.5);
      const folder = edited((tensors) => tensors.set(OUTPUT, { shape, data }));
      put(folder, "config.json", { ...json(folder, "config.json"), tie_word_embeddings: false });
      const read = readModelFolder(folder).weights;
      assert.deepEqual([read.get(OUTPUT), read.get(EMBEDDING)], [data, embedding]);
    });
  });

  for (const [what, generation, configured, expected, source] of [
    ["generation_config.json first", { eos_token_id: [5, 6] }, 7, [5, 6], "generation_config.json"],
    ["config.json next", { eos_token_id: null }, 7, [7], "config.json"],
    ["config.json where there are none before", { eos_token_id: [] }, [3, 7], [3, 7], "config.json"],
    ["the tokenizer's last", {}, undefined, [2], "tokenizer_config.json"],
  ] as const) {
    it(`takes its eos tokens from ${what}`, () => {
      const folder = created();
      put(folder, "generation_config.json", generation);
      put(folder, "config.json", { ...json(folder, "config.json"), eos_token_id: configured });
      assert.deepEqual(eosIdsOf(folder), { ids: expected, source });
    });
  }

  for (const [what, damage, message] of [
    ["no config.json", (folder: string) => fs.rmSync(path.join(folder, "config.json")), /cannot read .*config.json/],
    ["a broken config.json", (folder: string) => put(folder, "config.json", "{"), /config.json is not usable JSON/],
    ["a list as config.json", (folder: string) => put(folder, "config.json", "[]"), /expected an object/],
    [
      "no weights",
      (folder: string) => fs.rmSync(path.join(folder, "model.safetensors")),
      /cannot open .*model.safetensors/,
    ],
    [
      "eos tokens that are no ids",
      (folder: string) => put(folder, "generation_config.json", { eos_token_id: "</s>" }),
      /eos_token_id is "<\/s>"/,
    ],
    [
      "an eos token that the model does not have",
      (folder: string) => put(folder, "generation_config.json", { eos_token_id: [1, 1e6] }),
      /generation_config.json: eos_token_id is \[1,1000000\]; expected token ids below \d+ \(vocab_size\)/,
    ],
  ] as [string, (folder: string) => void, RegExp][]) {
    it(`is refused with ${what}`, () => {
      const folder = created();
      damage(folder);
      assert.throws(() => readModelFolder(folder), { name: "ModelError", message });
    });
  }

  it("is refused when the tokenizer has more tokens than the model", () => {
    const folder = created();
    put(folder, "config.json", { ...json(folder, "config.json"), vocab_size: 100 });
    assert.throws(() => readTokenizer(folder), {
      code: "tokenizer",
      message: /has 26\d tokens, but vocab_size .* is 100/,
    });
  });

  it("is refused if its tokenizer is a pointer of Git LFS", () => {
    const folder = created();
    put(folder, "tokenizer.json", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 7031645\n");
    const message = /tokenizer.json is a pointer of Git LFS .* `git lfs pull`/;
    assert.throws(() => readTokenizer(folder), { code: "tokenizer", message });
  });

  it("is refused with a clear message if it has no tokenizer", () => {
    const folder = created();
    fs.rmSync(path.join(folder, "tokenizer.json"));
    assert.throws(() => readTokenizer(folder), { code: "tokenizer", message: /cannot read .*tokenizer.json/ });
  });
});
