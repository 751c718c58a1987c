import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { modelSize } from "./model-size.ts";

const home = mkdtempSync(join(tmpdir(), "longrun-model-size-"));
after(() => rmSync(home, { recursive: true, force: true }));
const POLICY = join(import.meta.dirname, "../../../manifests/quickstart/policy");

test("a model's size comes from the headers of its weights, in one file or in several", () => {
  assert.deepEqual(modelSize(POLICY), { parameters: 1_050_752, positions: 1024 });
  const shard = (name: string, shape: number[]) => {
    const header = Buffer.from(
      JSON.stringify({ __metadata__: { format: "pt" }, w: { dtype: "BF16", shape, data_offsets: [0, 0] } }),
    );
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    writeFileSync(join(home, name), Buffer.concat([length, header]));
  };
  writeFileSync(join(home, "config.json"), JSON.stringify({ max_position_embeddings: 4096 }));
  shard("model-00001-of-00002.safetensors", [3, 5]);
  shard("model-00002-of-00002.safetensors", [7]);
  assert.deepEqual(modelSize(home), { parameters: 22, positions: 4096 });
});

test("a folder that says nothing of its size has none", () => {
  assert.equal(modelSize(join(home, "missing")), undefined);
  writeFileSync(join(home, "model-00001-of-00002.safetensors"), "no header");
  assert.equal(modelSize(home), undefined);
  writeFileSync(join(home, "config.json"), "");
  assert.equal(modelSize(home), undefined);
});
