/**
 * Device memory must not depend on the order in which lengths occur: an arena that grew for short sequences cannot use that memory for
 * longer ones.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test, { after } from "node:test";
import { startEngine } from "../../learner/engine/engine.ts";
import { SHAPES, writeHollowModel } from "../../learner/engine/model/hollow.fixture.ts";
import { ADAPTER, criticStep, policyStep, samples } from "../bench/gpu.ts";
import { counting } from "./counts.ts";

const CONFIG = { ...SHAPES["0.5b"], layers: 2 };
const ROW_TOKENS = 2048;
/** The second batch is the first that needs the reference: before the first step its log-probs are the policy's. */
const LENGTHS = [512, 512, 896, 1280, 1664, 2048];
/** Most growth of the peak after the second batch: freed pieces do not always fit. */
const GROWTH = 1.05;

const folder = mkdtempSync(path.join(os.tmpdir(), "longrun-lengths-"));
after(() => rmSync(folder, { recursive: true }));

for (const adapter of [ADAPTER, undefined])
  test(`Longer sequences take no more device memory than short ones did (${adapter ? "LoRA" : "every weight"})`, async () => {
    writeHollowModel(folder, CONFIG);
    const engine = await startEngine({
      ...{ model: folder, device: { kind: "cuda", id: 0 }, threads: 0, adapter, resident: true, compute: "bfloat16" },
      ...{ microBatchTokens: 2 * ROW_TOKENS, rowTokens: ROW_TOKENS, activationCheckpointing: "Never" },
    });
    const peaks: number[] = [];
    for (const length of LENGTHS) {
      const batch = samples(CONFIG, 2, length / 2, length / 2);
      const { counts } = await counting(async () => {
        await engine.evaluate(batch, { temperature: 1, values: true });
        await criticStep(engine, batch);
        const { gradientNorm } = await policyStep(engine, batch);
        assert.ok(Number.isFinite(gradientNorm));
      });
      peaks.push(counts.peakBytes);
    }
    await engine.close();
    const megabytes = peaks.map((bytes) => Math.round(bytes / 1e6));
    assert.ok(Math.max(...peaks) <= GROWTH * peaks[1]!, `peaks of ${LENGTHS} tokens: ${megabytes} MB`);
  });
