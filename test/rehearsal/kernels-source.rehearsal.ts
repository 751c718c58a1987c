/** The committed PTX is what the committed sources compile to, byte by byte. Skipped where Triton cannot be installed. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { compile } from "./compile-kernels.ts";

const PTX = path.join(import.meta.dirname, "../../learner/engine/kernels/ptx");

test("The kernels compile to the same bytes again, and have no code of libdevice", async (t) => {
  let folder: string;
  try {
    folder = await compile();
  } catch (error) {
    if (!/^Triton cannot be installed/.test((error as Error).message)) throw error;
    return t.skip((error as Error).message);
  }
  try {
    const files = readdirSync(folder).sort();
    assert.deepEqual(readdirSync(PTX).sort(), files);
    for (const file of files) {
      const text = readFileSync(path.join(PTX, file), "utf8");
      assert.equal(text, readFileSync(path.join(folder, file), "utf8"), file);
      assert.ok(!text.includes("__nv_"), file);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
