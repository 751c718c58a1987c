import assert from "node:assert/strict";
import { test } from "node:test";
import { cudaOptions } from "./session.ts";

test("float32 products on a GPU use TF32 on request alone, although ONNX Runtime's default is TF32", () => {
  assert.equal(cudaOptions(1, {}).use_tf32, "0");
  assert.equal(cudaOptions(1, { tf32: true }).use_tf32, "1");
  assert.equal(cudaOptions(1, {}).device_id, "1");
});
