import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { convertFolder, MappedWeights, startEngine } from "../engine/index.ts";
import { logProbsOf } from "../engine/log-probs.fixture.ts";
import { type Merge, writeWeights } from "./weights.ts";

const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));
const LORA = { rank: 4, alpha: 8, targets: ["q_proj", "down_proj"] as const, seed: 1 };
const scratch = mkdtempSync(join(tmpdir(), "weights-"));
after(() => rmSync(scratch, { recursive: true }));
const HALF = join(scratch, "half");
convertFolder(POLICY, HALF, { dtype: "BF16" });

/** The tokens whose log-probs are compared. */
const ROWS = [1, 2, 3].map((seed) => Int32Array.from({ length: 200 }, (_, i) => ((i * 37 + seed * 101) % 500) + 1));

/** Trains an adapter until it changes log-probs by much more than rounding. */
async function adapterOf(model: string) {
  const engine = await startEngine({ model, threads: 1, adapter: LORA });
  const sequence = { prompt: ROWS[0]!.slice(0, 100), response: ROWS[0]!.slice(100) };
  const adam = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0 };
  const step = { learningRate: 0.005, gradientClip: 1, adam, aggregation: "TokenMean", microBatchSize: 1 } as const;
  for (let i = 0; i < 2; i++) await engine.pretrain([sequence], step);
  return engine;
}

/** Largest of a token, and largest mean of a row, of the absolute differences. */
function differences(a: readonly Float32Array[], b: readonly Float32Array[]) {
  const all = a.map((row, i) => Array.from(row, (value, t) => Math.abs(value - b[i]![t]!)));
  const means = all.map((row) => row.reduce((sum, value) => sum + value, 0) / row.length);
  return { token: Math.max(...all.flat()), row: Math.max(...means) };
}

for (const [base, model, dtype, token, row] of [
  ["float32", POLICY, "F32", 1e-5, 1e-5],
  ["bfloat16", HALF, "F32", 1e-5, 1e-5],
  ["bfloat16", HALF, "F16", 0.01, 0.001],
] as const)
  test(`an adapter of a ${base} model is merged into ${dtype} weights with its log-probs`, async () => {
    const engine = await adapterOf(model);
    const directory = mkdtempSync(join(scratch, "sent-"));
    const merge: Merge = { model, dtype };
    const { signal } = new AbortController();
    const before = await writeWeights({ engine, directory, signal }, 6);
    const sent = await writeWeights({ engine, directory, merge, signal }, 7);
    await engine.close();
    assert.deepEqual([before.kind, sent.kind, sent.policyVersion], ["adapter", "full", 7]);
    assert.deepEqual(
      sent.files.map(({ name }) => name),
      ["model.safetensors"],
    );
    const bytes = readFileSync(join(sent.folder, "model.safetensors"));
    assert.equal(sent.digest, createHash("sha256").update(bytes).digest("hex"));
    assert.ok(new MappedWeights(sent.folder).tensors.every((tensor) => tensor.dtype === dtype));
    assert.ok(!existsSync(join(directory, "adapter")), "the adapter's folder is removed");

    const adapted = await logProbsOf(model, ROWS, { ...LORA, folder: before.folder });
    assert.ok(differences(adapted, await logProbsOf(model, ROWS)).row > 0.1, "training has changed log-probs");
    const found = differences(adapted, await logProbsOf(sent.folder, ROWS));
    assert.ok(found.token < token && found.row < row, JSON.stringify(found));
  });

test("a merge runs beside the event loop, and a learner that stops does not wait for it", async () => {
  const engine = { savePolicy: async () => {} };
  const stopping = new AbortController();
  const directory = mkdtempSync(join(scratch, "stopped-"));
  setImmediate(() => stopping.abort(new Error("asked to stop")));
  const { signal } = stopping;
  const written = writeWeights({ engine, directory, merge: { model: POLICY, dtype: "F32" }, signal }, 0);
  await assert.rejects(written, { message: "asked to stop" });
});

test("the error of an adapter that cannot be merged says why", async () => {
  const engine = { savePolicy: async () => {} };
  const { signal } = new AbortController();
  const merge = { model: POLICY, dtype: "F32" } as const;
  const written = writeWeights({ engine, directory: mkdtempSync(join(scratch, "none-")), merge, signal }, 0);
  await assert.rejects(written, { name: "ModelError", code: "config", message: /adapter_config\.json/ });
});
