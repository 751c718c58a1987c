import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import blocks from "../../../test/fixtures/gguf/blocks.json" with { type: "json" };
import { readConfig, readWeights } from "./folder.ts";
import { type FixtureTensor, writeGguf, writeGgufModel } from "./gguf.fixture.ts";
import { readGguf, readRows } from "./gguf.ts";
import { convertGguf } from "./gguf-convert.ts";

const directory = fs.mkdtempSync(path.join(os.tmpdir(), "gguf-"));
after(() => fs.rmSync(directory, { recursive: true }));
const inFolder = (name: string) => path.join(directory, name);

for (const [name, { type, bytes, float32 }] of Object.entries(blocks))
  test(`Blocks of ${name} are the numbers that Python's gguf reads`, () => {
    const expected = Buffer.from(float32, "base64");
    const numbers = expected.length / 4;
    const file = inFolder(`${name}.gguf`);
    // two equal rows, of which the second is read
    const rows = Buffer.concat([Buffer.from(bytes, "base64"), Buffer.from(bytes, "base64")]);
    writeGguf(file, { "general.architecture": "llama" }, [{ name: "a", shape: [2, numbers], type, bytes: rows }]);
    const gguf = readGguf(file);
    const found = readRows(gguf, gguf.tensors.get("a")!, 1, 1);
    assert.equal(found.length, numbers);
    assert.deepEqual(Buffer.from(found.buffer), expected);
  });

for (const name of ["llama", "qwen3"])
  test(`A GGUF file of ${name} becomes a folder with the same numbers`, () => {
    const { file, folder, config, weights } = writeGgufModel(directory, name);
    const out = inFolder(`${name}-out`);
    assert.equal(convertGguf(file, folder, out, { dtype: "F32" }), 1);
    assert.deepEqual(readConfig(out), config);
    assert.deepEqual(new Map(readWeights(out, config)), weights);
    assert.ok(fs.existsSync(path.join(out, "tokenizer.json")));
    convertGguf(file, folder, inFolder(`${name}-half`), {});
    const stated = JSON.parse(fs.readFileSync(path.join(inFolder(`${name}-half`), "config.json"), "utf8"));
    assert.equal(stated.dtype, "bfloat16");
  });

test("Files that do not belong to the folder, or are damaged, are refused with the tensor's name", () => {
  const convert = (change: (tensors: FixtureTensor[]) => FixtureTensor[]) => {
    const { file, folder } = writeGgufModel(directory, "llama", change);
    convertGguf(file, folder, inFolder("refused"), {});
  };
  const refused = (message: RegExp, change: (tensors: FixtureTensor[]) => FixtureTensor[]) =>
    assert.throws(() => convert(change), { name: "ModelError", code: "weights", message });
  refused(/it has no output_norm\.weight, which config\.json in .* asks for/, (all) =>
    all.filter(({ name }) => name !== "output_norm.weight"),
  );
  refused(/it has blk\.7\.ffn_up\.weight, which config\.json in .* does not ask for/, (all) => [
    ...all,
    { name: "blk.7.ffn_up.weight", shape: [1], type: 0, bytes: new Uint8Array(4) },
  ]);
  refused(/output_norm\.weight is \[1\], and config\.json in .* asks for \[16\]/, (all) =>
    all.map((each) => (each.name === "output_norm.weight" ? { ...each, shape: [1] } : each)),
  );
  refused(/output_norm\.weight has the type 10 of ggml; known are F32, F16/, (all) =>
    all.map((each) => (each.name === "output_norm.weight" ? { ...each, type: 10 } : each)),
  );
  assert.ok(!fs.existsSync(path.join(inFolder("refused"), "config.json")));
  const { file, folder } = writeGgufModel(directory, "llama");
  assert.throws(
    () => convertGguf(file, writeGgufModel(directory, "qwen3").folder, inFolder("refused"), {}),
    /architecture llama, and .* of qwen3/,
  );
  const whole = fs.readFileSync(file);
  for (const length of [0, 3, 7, 30, 200, 1000, whole.length - 100]) {
    fs.writeFileSync(file, whole.subarray(0, length));
    assert.throws(() => convertGguf(file, folder, inFolder("refused"), {}), { name: "ModelError" }, `${length} bytes`);
  }
});
