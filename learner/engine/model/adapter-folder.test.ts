/** Tests adapters whose weights cannot be used; ../lora.test.ts has adapters of other kinds. */
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { readAdapter } from "./adapter-folder.ts";
import { readConfig } from "./folder.ts";
import { readHeader } from "./safetensors.ts";

const MODEL = path.join(import.meta.dirname, "../../../test/fixtures/lora/some");
const root = fs.mkdtempSync(path.join(os.tmpdir(), "adapter-"));
after(() => fs.rmSync(root, { recursive: true }));
const config = readConfig(MODEL);
const NAME = "base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight";

function overwrite(file: string, at: number, bytes: NodeJS.ArrayBufferView): void {
  const descriptor = fs.openSync(file, "r+");
  fs.writeSync(descriptor, bytes, 0, bytes.byteLength, at);
  fs.closeSync(descriptor);
}

const place = (file: string, index: number) =>
  readHeader(file).tensors.find(({ name }) => name === NAME)!.offset + 4 * index;

describe("an adapter is refused if its weights", () => {
  for (const [what, damage, message] of [
    [
      "hold NaN",
      (file) => overwrite(file, place(file, 5), Float32Array.of(Number.NaN)),
      `${NAME} holds NaN at index 5; the weights are damaged`,
    ],
    [
      "hold infinity",
      (file) => overwrite(file, place(file, 0), Float32Array.of(-Infinity)),
      `${NAME} holds -Infinity at index 0; the weights are damaged`,
    ],
    ["are cut off", (file) => fs.truncateSync(file, fs.statSync(file).size - 1), "it may be cut off"],
    ["are cut off in the header", (file) => fs.truncateSync(file, 100), "its header claims"],
    ["are empty", (file) => fs.truncateSync(file, 0), "it has 0 bytes"],
    ["are not there", (file) => fs.rmSync(file), "cannot open"],
    [
      "have a header that lies",
      (file) => overwrite(file, 0, BigUint64Array.of(2n ** 40n)),
      "claims 1099511627776 bytes",
    ],
  ] as [what: string, damage: (file: string) => void, message: string][]) {
    it(what, () => {
      const folder = path.join(root, what);
      fs.cpSync(path.join(MODEL, "adapter"), folder, { recursive: true });
      const file = path.join(folder, "adapter_model.safetensors");
      readAdapter(folder, config);
      damage(file);
      assert.throws(
        () => readAdapter(folder, config),
        ({ name, message: told }: Error) => {
          assert.equal(name, "ModelError");
          assert.ok(told.includes(file) && told.includes(message), told);
          assert.doesNotMatch(told, /\n/);
          return true;
        },
      );
    });
  }
});
