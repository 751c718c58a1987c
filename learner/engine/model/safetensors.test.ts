import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { readHeader, readSafetensors, writeSafetensors } from "./safetensors.ts";
import type { Tensor } from "./weights.ts";

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "safetensors-"));
after(() => fs.rmSync(folder, { recursive: true }));
const file = path.join(folder, "x.safetensors");

/** A file from a header and a body, with the length that the header really has unless another is claimed. */
function write(header: unknown, body: Uint8Array | number, claimed?: bigint): void {
  const text = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(claimed ?? BigInt(text.length));
  fs.writeFileSync(file, Buffer.concat([length, text, typeof body === "number" ? Buffer.alloc(body) : body]));
}

const entry = (dtype: string, shape: unknown, begin: unknown, end: unknown) => ({
  dtype,
  shape,
  data_offsets: [begin, end],
});
const tensor = (shape: number[], values: number[]): Tensor => ({ shape, data: Float32Array.from(values) });

describe("safetensors", () => {
  it("reads its own files bit for bit", () => {
    const tensors = new Map<string, Tensor>([
      ["b", tensor([2, 3], [1, -0, Number.NaN, Number.POSITIVE_INFINITY, 1e-45, 3.4e38])],
      ["a", tensor([], [7])],
      ["empty", tensor([0, 4], [])],
      ["ünïcode", tensor([1], [0.1])],
    ]);
    writeSafetensors(file, tensors, { format: "pt", step: "12" });
    const back = readSafetensors(file);
    assert.deepEqual(new Set(back.keys()), new Set(tensors.keys()));
    for (const [name, { shape, data }] of tensors) {
      assert.deepEqual(back.get(name)!.shape, shape);
      assert.deepEqual(new Uint32Array(back.get(name)!.data.buffer), new Uint32Array(data.buffer));
    }
    assert.deepEqual(readHeader(file).metadata, { format: "pt", step: "12" });
    const [bytes, again] = [fs.readFileSync(file), path.join(folder, "again.safetensors")];
    assert.equal(Number(bytes.readBigUInt64LE(0)) % 8, 0);
    writeSafetensors(again, tensors, { format: "pt", step: "12" });
    assert.deepEqual(fs.readFileSync(again), bytes);
  });

  it("reads the files of transformers and leaves no temporary files", () => {
    const fixture = fileURLToPath(
      new URL("../../../test/fixtures/generation/qwen2/model.safetensors", import.meta.url),
    );
    const tensors = readSafetensors(fixture);
    assert.deepEqual(tensors.get("model.layers.1.self_attn.k_proj.weight")!.shape, [16, 32]);
    writeSafetensors(file, tensors);
    assert.ok(!fs.readdirSync(folder).some((name) => name.endsWith(".tmp")));
    assert.deepEqual(readSafetensors(file), tensors);
  });

  it("keeps the old file when writing fails", () => {
    writeSafetensors(file, new Map([["a", tensor([1], [1])]]));
    assert.throws(() => writeSafetensors(file, new Map([["a", tensor([2], [1])]])), /a is \[2\] but has 1 numbers/);
    assert.throws(() => writeSafetensors(path.join(folder, "none", "x"), new Map()), /ENOENT/);
    assert.deepEqual([...readSafetensors(file).get("a")!.data], [1]);
  });

  it("decodes BF16 and F16 exactly", () => {
    const bfloat = Uint16Array.of(0x3f80, 0xc000, 0x7f80, 0x0001, 0x8000);
    write({ x: entry("BF16", [5], 0, 10) }, new Uint8Array(bfloat.buffer));
    assert.deepEqual([...readSafetensors(file).get("x")!.data], [1, -2, Number.POSITIVE_INFINITY, 2 ** -133, -0]);
    const half = Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7bff, 0xfc00);
    write({ x: entry("F16", [5], 0, 10) }, new Uint8Array(half.buffer));
    assert.deepEqual([...readSafetensors(file).get("x")!.data], [1, -2, 2 ** -24, 65504, Number.NEGATIVE_INFINITY]);
  });

  const one = entry("F32", [1], 0, 4);
  for (const [what, header, body, message, claimed] of [
    ["is shorter than its length field", "", 0, /header claims 99/, 99n],
    ["claims a header of 2^63 bytes", { x: one }, 4, /header claims/, 2n ** 63n],
    ["claims a header past its end", { x: one }, 4, /header claims 1000 bytes/, 1000n],
    ["has no JSON", "{x", 4, /header is not JSON/],
    ["has bytes that are no UTF-8", "\u{fffd}{", 4, /header is not JSON/],
    ["has a list as header", [], 0, /not a JSON object/],
    ["has null as header", "null", 0, /not a JSON object/],
    ["has metadata that is not text", { __metadata__: { a: 1 } }, 0, /__metadata__ is not a map of texts/],
    [
      "ends before its tensors",
      { x: entry("F32", [4], 0, 16) },
      15,
      /tensors end at byte \d+, the file at \d+; it may be cut/,
    ],
    ["goes on after its tensors", { x: one }, 5, /tensors end/],
    ["has a gap before the first tensor", { x: entry("F32", [1], 4, 8) }, 8, /x begins at byte/],
    ["has a gap between tensors", { x: one, y: entry("F32", [1], 8, 12) }, 12, /y begins/],
    ["has tensors that overlap", { x: entry("F32", [2], 0, 8), y: entry("F32", [2], 4, 12) }, 12, /y begins/],
    ["has two tensors in one place", { x: one, y: one }, 4, /y begins/],
    ["has offsets the wrong way round", { x: entry("F32", [1], 4, 0) }, 4, /data_offsets \[4,0\]/],
    ["has negative offsets", { x: entry("F32", [1], -4, 0) }, 4, /data_offsets \[-4,0\]/],
    ["has offsets that are no whole numbers", { x: entry("F32", [1], 0, 4.5) }, 4, /data_offsets/],
    ["has offsets beyond 2^53", { x: entry("F32", [1], 0, 2 ** 60) }, 4, /data_offsets/],
    ["has one offset", { x: { dtype: "F32", shape: [1], data_offsets: [0] } }, 4, /data_offsets/],
    ["has no offsets", { x: { dtype: "F32", shape: [1] } }, 4, /data_offsets/],
    ["has a shape that does not fit", { x: entry("F32", [2], 0, 4) }, 4, /F32 \[2\], which is 8 bytes.*span 4/],
    ["has a shape that overflows", { x: entry("F32", [2 ** 40, 2 ** 40], 0, 4) }, 4, /span 4/],
    ["has a negative shape", { x: entry("F32", [-1, -1], 0, 4) }, 4, /shape \[-1,-1\]/],
    ["has a shape that is no list", { x: entry("F32", "1", 0, 4) }, 4, /shape "1"/],
    ["has an unknown dtype", { x: entry("I64", [1], 0, 8) }, 8, /dtype "I64"; supported are F32, F16, BF16/],
    ["has a dtype named like a method", { x: entry("toString", [1], 0, 4) }, 4, /dtype "toString"/],
    ["has null as a tensor", { x: null }, 0, /dtype undefined/],
  ] as [string, unknown, number, RegExp, bigint?][]) {
    it(`refuses a file that ${what}`, () => {
      write(header, body, claimed);
      assert.throws(() => readSafetensors(file), { name: "ModelError", code: "weights", message });
    });
  }

  it("refuses an empty file, a folder and a missing file", () => {
    fs.writeFileSync(file, "");
    assert.throws(() => readSafetensors(file), /it has 0 bytes/);
    assert.throws(() => readSafetensors(path.join(folder, "absent")), { code: "weights", message: /cannot open/ });
  });

  it("refuses a damaged file with one clear error or reads the same shapes", () => {
    writeSafetensors(
      file,
      new Map([
        ["a", tensor([2, 2], [1, 2, 3, 4])],
        ["b", tensor([1], [5])],
      ]),
    );
    const whole = fs.readFileSync(file);
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), fc.boolean(), (at, byte, cut) => {
        const damaged = cut ? whole.subarray(0, at) : Buffer.from(whole);
        if (!cut) damaged[at] = byte;
        fs.writeFileSync(file, damaged);
        try {
          for (const { shape, data } of readSafetensors(file).values()) {
            assert.equal(
              shape.reduce((product, size) => product * size, 1),
              data.length,
            );
          }
          assert.ok(!cut);
        } catch (error) {
          assert.equal((error as Error).name, "ModelError", String(error));
        }
      }),
      { seed: 1, numRuns: 500 },
    );
  });
});
