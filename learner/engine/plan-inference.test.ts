import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { type Budget, planTable } from "./fit.ts";
import { SHAPES, writeHollowModel } from "./model/hollow.fixture.ts";
import { adapterParameters, PROJECTIONS } from "./model/lora.ts";
import { MappedWeights } from "./model/mapped.ts";
import { elementCount } from "./model/weights.ts";
import { fitInference, type InferenceRequest, inferencePlan } from "./plan-inference.ts";

const GB = 1e9;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "inference-"));
after(() => fs.rmSync(folder, { recursive: true }));
const bytes = writeHollowModel(folder, SHAPES["3b"]);
const host = (bytes: number): Budget => ({ host: { bytes, source: "free on this machine" }, gpu: undefined });
const NAMED = { slots: "--slots", lengths: ["--context"] };
/** A manifest's defaults. */
const REQUEST: InferenceRequest = {
  models: [{ folder }],
  shapes: [{ rows: 64, promptTokens: 1024, responseTokens: 1024 }],
  device: { kind: "cpu" },
};
const CUDA = { kind: "cuda", id: 0 } as const;
const of = (request: InferenceRequest, what: string) => inferencePlan(request).rows.find((row) => row.what === what)!;

test("a 3B model that only generates needs its files and one KV cache, and fits where training does not", () => {
  const plan = fitInference(REQUEST, host(24 * GB), NAMED);
  assert.deepEqual(
    plan.rows.map(({ what }) => what),
    ["process", "weights", "cache", "logits", "generation"],
  );
  const token = 2 * 36 * 2 * 128 * 4; // layers, heads of keys and values, their size, float32
  assert.equal(of(REQUEST, "cache").hostBytes, 64 * 2048 * token);
  const { hostBytes } = of(REQUEST, "weights");
  assert.ok(hostBytes < bytes && hostBytes > 0.999 * bytes, "the header is not counted");
  assert.match(planTable(plan, host(24 * GB))[0]!, /^memory plan: 1\d\.\d GB of 24\.0 GB free on this machine$/);
  const gpu = { host: undefined, gpu: { bytes: 16 * GB, source: "free on cuda:0" } };
  const there = fitInference({ ...REQUEST, device: CUDA }, gpu, NAMED);
  assert.ok(there.gpuBytes > 6.1 * GB + 64 * 2048 * (token / 2), "bfloat16 keys and values");
  assert.ok(there.hostBytes < GB);
});

test("a CPU's generation has float32 copies of half-precision files where half of the memory is enough", () => {
  const narrow = inferencePlan(REQUEST);
  const wide = fitInference(REQUEST, host(128 * GB), NAMED);
  assert.deepEqual([narrow.widens, wide.widens], [false, true]);
  const copies = wide.hostBytes - narrow.hostBytes;
  assert.ok(copies > 1.99 * bytes && copies < 2 * bytes, "vectors are not copied");
  assert.match(
    planTable(wide, host(128 * GB)).join("\n"),
    /the model as it is in its files, in float32 for generation too$/m,
  );
  assert.equal(fitInference(REQUEST, host(2 * wide.hostBytes - 1), NAMED).widens, false);
  const gpu = { host: undefined, gpu: { bytes: 128 * GB, source: "free on cuda:0" } };
  assert.equal(fitInference({ ...REQUEST, device: CUDA }, gpu, NAMED).widens, false);
  const whole = { ...REQUEST, models: [{ folder, whole: true }] };
  assert.equal(fitInference(whole, host(128 * GB), NAMED).widens, false, "replaceable weights are float32 anyway");
});

test("the plan divides slots among GPUs and counts an adapter, a second model and longer programs", () => {
  const several = { ...REQUEST, device: CUDA, devices: [CUDA, { ...CUDA, id: 1 }] };
  assert.equal(2 * of(several, "cache").gpuBytes, of({ ...REQUEST, device: CUDA }, "cache").gpuBytes);
  const lora = { rank: 16, alpha: 16, targets: PROJECTIONS };
  const adapted = of({ ...REQUEST, models: [{ folder, lora }] }, "weights").hostBytes;
  assert.equal(adapted - of(REQUEST, "weights").hostBytes, 4 * 29_933_568);
  const two = { ...REQUEST, models: [{ folder }, { folder }] };
  for (const what of ["weights", "cache"]) assert.equal(of(two, what).hostBytes, 2 * of(REQUEST, what).hostBytes);
  const longer = { ...REQUEST, shapes: [...REQUEST.shapes, { rows: 64, promptTokens: 2048, responseTokens: 2048 }] };
  assert.equal(of(longer, "cache").hostBytes, 2 * of(REQUEST, "cache").hostBytes);
});

test("replaceable weights need one float32 copy; on a GPU also a copy there and bfloat16 matrices", () => {
  const whole: InferenceRequest = { ...REQUEST, models: [{ folder, whole: true }] };
  const { hostBytes } = of(whole, "weights");
  assert.ok(hostBytes >= 2 * of(REQUEST, "weights").hostBytes && hostBytes < 1.001 * 2 * bytes, `${hostBytes}`);
  const there = of({ ...whole, device: CUDA }, "weights");
  assert.equal(there.hostBytes, hostBytes, "the learner's next weights arrive here");
  const matrices = there.gpuBytes - hostBytes;
  assert.ok(matrices > 0.8 * (hostBytes / 2) && matrices < hostBytes / 2, `${matrices}`);
});

test("a plan that does not fit is refused in one line with the slots that fit; workers share one pass if that helps", () => {
  assert.throws(
    () => fitInference(REQUEST, host(10 * GB), NAMED),
    ({ code, message }: Error & { code: string }) => {
      assert.equal(code, "memory");
      assert.match(message, /^generation needs about 1\d\.\d GB of memory, but 10\.0 GB is free on this machine; /);
      assert.match(
        message,
        /: cache 9\.66 GB \(--slots, --context\); weights 6\.17 GB \(no setting\); .*; it fits with --slots 16$/,
      );
      return true;
    },
  );
  assert.throws(() => fitInference(REQUEST, host(5 * GB), NAMED), /; [^;]*\)$/);
  const four = fitInference({ ...REQUEST, workers: 4 }, host(32 * GB), NAMED);
  assert.equal(four.ranks, 4);
  assert.equal(fitInference({ ...REQUEST, workers: 4 }, host(four.hostBytes - 1), NAMED).ranks, 1);
});

test("the plan counts an adapter's joined matrices beside float16 files in float32, in which a GPU multiplies them", () => {
  const lora = { rank: 64, alpha: 64, targets: PROJECTIONS };
  const other = path.join(folder, "halves");
  writeHollowModel(other, SHAPES["3b"], "F16");
  const [narrow, wide] = [folder, other].map((folder) => {
    const asked = (adapter?: typeof lora) => ({ ...REQUEST, models: [{ folder, lora: adapter }], device: CUDA });
    return of(asked(lora), "weights").gpuBytes - of(asked(), "weights").gpuBytes;
  });
  const { config } = new MappedWeights(other);
  const own = adapterParameters(config, lora).reduce((sum, { shape }) => sum + 4 * elementCount(shape), 0);
  assert.equal(wide! - own, 2 * (narrow! - own));
});
