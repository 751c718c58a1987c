import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { logProbsOf } from "../log-probs.fixture.ts";
import { convertFolder } from "./convert.ts";
import { saveWeights } from "./files.ts";
import { readModelFolder } from "./folder.fixture.ts";
import { readEosIds } from "./folder.ts";
import { fromStored, toStored } from "./halves.ts";

const SAVED = fileURLToPath(new URL("../../../test/fixtures/saved", import.meta.url));
const SHARDED = path.join(SAVED, "qwen3");
const root = fs.mkdtempSync(path.join(os.tmpdir(), "save-"));
after(() => fs.rmSync(root, { recursive: true }));
let folders = 0;
const newFolder = () => path.join(root, String(folders++));
const json = (folder: string, name: string) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));
const weightFiles = (folder: string) => fs.readdirSync(folder).filter((name) => name.includes("model"));

async function scores(folder: string, tokens: number[]): Promise<Float32Array> {
  const [logProbs] = await logProbsOf(folder, [tokens]);
  return logProbs;
}

describe("rounding", () => {
  const { float32, bfloat16, float16 } = json(SAVED, "rounding.json") as Record<string, number[]>;
  const floats = new Float32Array(Uint32Array.from(float32).buffer);
  for (const [dtype, expected] of [
    ["BF16", bfloat16],
    ["F16", float16],
  ] as const) {
    it(`to ${dtype} equals torch's rounding`, () => {
      const bits = new Uint16Array(toStored(dtype, floats).buffer);
      for (const [i, word] of float32.entries()) {
        // a NaN stays one; which one it is differs
        if (Number.isNaN(floats[i])) assert.ok(Number.isNaN(fromStored(dtype, bits.slice(i, i + 1).buffer)[0]));
        else assert.equal(bits[i], expected[i], `0x${word.toString(16)}`);
      }
    });
  }
});

describe("a folder that transformers saved in bfloat16 shards", () => {
  const { tokens, logProbs } = json(SHARDED, "reference.json") as { tokens: number[]; logProbs: number[] };

  it("is used unchanged, with its two EOS tokens", async () => {
    assert.ok(weightFiles(SHARDED).length > 2);
    const actual = await scores(SHARDED, tokens);
    for (const [i, expected] of logProbs.entries()) assert.ok(Math.abs(actual[i] - expected) < 1e-4);
    assert.deepEqual(readEosIds(SHARDED), [5, 7]);
  });

  it("is used through links, as in Hugging Face's cache", async () => {
    const folder = newFolder();
    fs.mkdirSync(path.join(folder, "blobs"), { recursive: true });
    fs.mkdirSync(path.join(folder, "snapshot"));
    for (const name of fs.readdirSync(SHARDED)) {
      const elsewhere = name.endsWith("2.safetensors") ? path.join(folder, name) : path.join(folder, "blobs", name);
      fs.copyFileSync(path.join(SHARDED, name), elsewhere);
      fs.symlinkSync(path.relative(path.join(folder, "snapshot"), elsewhere), path.join(folder, "snapshot", name));
    }
    assert.deepEqual(await scores(path.join(folder, "snapshot"), tokens), await scores(SHARDED, tokens));
  });

  for (const [dtype, shardBytes, files] of [
    ["F32", undefined, 1],
    ["BF16", 4000, 4],
    ["BF16", 1, 25],
  ] as const) {
    it(`gives the same log-probs after a conversion to ${dtype} in ${files} files`, async () => {
      const folder = newFolder();
      assert.equal(convertFolder(SHARDED, folder, { dtype, shardBytes }), files);
      assert.deepEqual(await scores(folder, tokens), await scores(SHARDED, tokens));
      assert.deepEqual(readModelFolder(folder), readModelFolder(SHARDED));
      assert.equal(json(folder, "config.json").dtype, dtype === "F32" ? "float32" : "bfloat16");
      const shards = weightFiles(folder).filter((name) => name.endsWith(".safetensors"));
      assert.equal(shards.length, files);
      if (files === 4) for (const name of shards) assert.ok(fs.statSync(path.join(folder, name)).size < 4000 + 2000);
    });
  }

  it("keeps the index of transformers if the shards are the same", () => {
    const folder = newFolder();
    convertFolder(SHARDED, folder, { shardBytes: 1 });
    const ours = json(folder, "model.safetensors.index.json");
    const theirs = json(SHARDED, "model.safetensors.index.json");
    assert.deepEqual(ours.metadata, theirs.metadata);
    assert.deepEqual(Object.keys(ours.weight_map).sort(), Object.keys(theirs.weight_map).sort());
  });
});

describe("saved weights", () => {
  it("replace earlier files", () => {
    const folder = newFolder();
    fs.mkdirSync(folder);
    const tensors = ["a", "b", "c"].map((name) => ({ name, shape: [2], read: () => Float32Array.of(1, 2) }));
    assert.equal(saveWeights(folder, tensors), 1);
    assert.deepEqual(weightFiles(folder), ["model.safetensors"]);
    assert.equal(saveWeights(folder, tensors, { shardBytes: 16 }), 2);
    assert.deepEqual(weightFiles(folder), [
      ...["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"],
    ]);
    saveWeights(folder, tensors);
    assert.deepEqual(weightFiles(folder), ["model.safetensors"]);
  });
});
