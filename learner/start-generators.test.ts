import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import { convertFolder, type Device } from "./engine/index.ts";
import { sentWeights } from "./start-generators.ts";

const FLOAT = fileURLToPath(new URL("../manifests/quickstart/policy", import.meta.url));
const HALF = mkdtempSync(join(tmpdir(), "half-"));
after(() => rmSync(HALF, { recursive: true }));
convertFolder(FLOAT, HALF, { dtype: "BF16" });

const NUMBERS = 1_050_752;
const CPU: Device = { kind: "cpu" };
const GPU: Device = { kind: "cuda", id: 0 };

for (const [type, weightSync, policy, device, dtype, bytes] of [
  ["LoRA", undefined, HALF, GPU, undefined, 0],
  ["LoRA", "Adapter", HALF, GPU, undefined, 0],
  ["LoRA", "Full", HALF, GPU, "F16", 2 * NUMBERS],
  ["LoRA", "Full", HALF, CPU, "F32", 4 * NUMBERS],
  ["LoRA", "Full", FLOAT, GPU, "F32", 4 * NUMBERS],
  ["Full", undefined, HALF, GPU, undefined, 4 * NUMBERS],
  ["Full", "Full", FLOAT, CPU, undefined, 4 * NUMBERS],
] as const)
  test(`generators get ${bytes} bytes, merged to ${dtype}: ${[type, weightSync, policy === HALF ? "BF16" : "F32", device.kind]}`, () => {
    const spec = { model: { adaptation: { type } }, generation: { weightSync } } as unknown as TrainingRunSpec;
    const found = sentWeights(spec, policy, device);
    assert.deepEqual(found, { ...(dtype && { merge: { model: policy, dtype } }), bytes });
  });
