/** A GPU of compute capability 7.5, which lacks bfloat16: generation multiplies and caches in float16. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import test, { after, before } from "node:test";
import { type EngineOptions, type Sequence, startEngine } from "../../learner/engine/engine.ts";
import { randomSamples } from "../../learner/engine/samples.fixture.ts";
import { ADAPTER } from "../bench/gpu.ts";
import { counting, kernels } from "./counts.ts";
import { assertNear, QWEN2, writeModel } from "./small-models.ts";

process.env.REHEARSAL_ARITHMETIC = "1"; // both are read when the library is loaded, with the first session on a device
process.env.REHEARSAL_CAPABILITY = "7.5";

/** Head sizes that attention takes directly. */
const CONFIG = { ...QWEN2, heads: 2, keyValueHeads: 1, headSize: 16 };
/** For a log-prob: a float16 has 11 bits; 0.0022 was measured. */
const TOLERANCE = 0.006;

let folder: string;
before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), "longrun-capability-"));
  for (const dtype of ["F32", "F16", "BF16"] as const) writeModel(path.join(folder, dtype), CONFIG, dtype);
  writeModel(path.join(folder, "F16 and BF16"), CONFIG, "F16", "BF16");
  writeModel(path.join(folder, "F16 and F32"), CONFIG, "F16", "F32");
});
after(() => rm(folder, { recursive: true }));

const CASES: [name: string, files: string, options: Partial<EngineOptions>, narrow: boolean][] = [
  ["LoRA beside float16 files", "F16", { adapter: ADAPTER }, true],
  ["LoRA beside bfloat16 files", "BF16", { adapter: ADAPTER }, true],
  ["LoRA beside files of float16 and bfloat16", "F16 and BF16", { adapter: ADAPTER }, false],
  ["LoRA beside float32 files", "F32", { adapter: ADAPTER }, false],
  ["LoRA beside files of float16 and float32", "F16 and F32", { adapter: ADAPTER }, false],
  ["every weight", "F32", {}, true],
];

for (const [name, files, options, narrow] of CASES)
  test(`${name}: responses equal the CPU's, and their log-probs equal the log-probs of training, in float16`, async () => {
    const prompts = randomSamples(CONFIG.vocabSize, 6).map(({ prompt }) => prompt);
    const asked = { seeds: prompts.map((_, i) => i), temperature: 0, topP: 1, maxNewTokens: 24 };
    const found = [];
    for (const device of [{ kind: "cpu" }, { kind: "cuda", id: 0 }] as const) {
      const engine = await startEngine({ model: path.join(folder, files), threads: 1, device, ...options });
      kernels();
      const { result, counts } = await counting(() => engine.generate(prompts, asked));
      const ran = kernels().map(([kernel]) => kernel);
      const sequences = result.map(({ response }, i) => ({ prompt: prompts[i]!, response }));
      const trained = await engine.evaluate(sequences as Sequence[], { temperature: 1, values: false });
      found.push({ result, trained, ran, counts });
      await engine.close();
    }
    const [cpu, cuda] = found as [(typeof found)[0], (typeof found)[0]];
    for (const [row, { logProbs }] of cuda.result.entries()) {
      assertNear({ generated: logProbs }, { generated: cuda.trained[row]!.logProbs }, TOLERANCE);
      assert.equal(cuda.result[row]!.response[0], cpu.result[row]!.response[0]);
    }
    const half = (kernel: string) => kernel.includes("6__half") || kernel.includes("half_t");
    assert.ok(
      cuda.ran.some((kernel) => half(kernel) && /attention_kernel/.test(kernel)),
      "the cache is float16",
    );
    const products = cuda.ran.some((kernel) => half(kernel) && kernel.includes("QuickGelu"));
    assert.equal(products, narrow);
    const wide = cuda.ran.filter((kernel) => /bfloat16/i.test(kernel) && !/Cast|Gather/.test(kernel));
    assert.deepEqual(wide, []);
    assert.ok(cuda.counts.graphLaunches >= asked.maxNewTokens - 1, "steps are captured");
  });

test("A GPU without bfloat16 refuses to train in bfloat16", async () => {
  const options = { model: path.join(folder, "F32"), threads: 1, device: { kind: "cuda", id: 0 } } as const;
  await assert.rejects(startEngine({ ...options, compute: "bfloat16" }), {
    code: "compute",
    message:
      /^compute is bfloat16, but cuda:0 has compute capability below 8.0, which has no bfloat16; set it to float32$/,
  });
});
