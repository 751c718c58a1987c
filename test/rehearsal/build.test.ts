import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { removeOldBuilds, requirements, runtimeVersion } from "./build.ts";

const versionOf = (name: keyof ReturnType<typeof requirements>) =>
  /==(\S+) --hash=sha256:[0-9a-f]{64}$/.exec(requirements()[name])![1]!;

test("The CUDA provider has the version of onnxruntime-node, because both are built from one commit", () => {
  assert.equal(versionOf("onnxruntime-gpu"), runtimeVersion());
});

test("The compiler's headers belong to the release of the CUDA runtime", () => {
  const release = (version: string) => version.split(".").slice(0, 2).join(".");
  assert.equal(release(versionOf("nvidia-cuda-crt")), release(versionOf("nvidia-cuda-runtime")));
});

test("The four builds that were used last are kept, and so is everything that is no build", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "longrun-builds-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const build = (hour: number) => `${hour}`.padStart(16, "0");
  for (const name of [...[1, 2, 3, 4, 5, 6].map(build), "onnxruntime-gpu-1.30.0", "build-abc"]) {
    mkdirSync(join(folder, name));
    utimesSync(join(folder, name), 0, Number(name) * 3600 || 0);
  }
  await removeOldBuilds(folder);
  assert.deepEqual(readdirSync(folder).sort(), [...[3, 4, 5, 6].map(build), "build-abc", "onnxruntime-gpu-1.30.0"]);
});
