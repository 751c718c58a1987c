import assert from "node:assert/strict";
import test from "node:test";
import { requirements, runtimeVersion } from "./build.ts";

const versionOf = (name: keyof ReturnType<typeof requirements>) =>
  /==(\S+) --hash=sha256:[0-9a-f]{64}$/.exec(requirements()[name])![1]!;

test("The CUDA provider has onnxruntime-node's version: both are built from one commit", () => {
  assert.equal(versionOf("onnxruntime-gpu"), runtimeVersion());
});

test("The compiler's headers have the CUDA runtime's release", () => {
  const release = (version: string) => version.split(".").slice(0, 2).join(".");
  assert.equal(release(versionOf("nvidia-cuda-crt")), release(versionOf("nvidia-cuda-runtime")));
});
