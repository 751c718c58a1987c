import assert from "node:assert/strict";
import { test } from "node:test";
import { DeviceBuffer } from "../runtime/buffer.ts";
import { DeviceFiles } from "../runtime/files.ts";
import { Runtime } from "../runtime/runtime.ts";
import { Session } from "../runtime/session.ts";
import type { ModelConfig } from "./config.ts";
import { joinedAdapter } from "./generate-joined.ts";

const CONFIG: ModelConfig = {
  ...{ modelType: "qwen2", vocabSize: 16, hiddenSize: 8, intermediateSize: 8, layers: 2, heads: 2, keyValueHeads: 1 },
  ...{ headSize: 4, normEpsilon: 1e-6, ropeTheta: 1e4, queryKeyValueBias: true, maxPositions: 16, tied: true },
  initializerRange: 0.1,
};
const LORA = { rank: 2, alpha: 2, targets: ["q_proj", "v_proj"] as const };

test("a joined adapter for which there is no memory leaves nothing behind", async (t) => {
  const runtime = new Runtime({ kind: "cpu" });
  t.after(() => runtime.release());
  const full = new Error("the GPU's memory is full");
  let [buffers, sessions] = [0, 0];
  t.mock.method(DeviceBuffer.prototype, "release", () => buffers--);
  t.mock.method(Session.prototype, "release", async () => sessions--);
  const file = { name: "", file: "zeros", dtype: "BF16", shape: [], offset: 0, length: 1024 } as const;
  const files = new DeviceFiles(runtime, [file], () => {});
  await files.view(file, 0, "bfloat16", [1]);
  const mapped = { config: CONFIG, matrices: () => [file] };
  for (const part of ["buffer", "session"] as const) {
    const reserve = (length: number) => {
      if (part === "buffer") throw full;
      buffers++;
      return Runtime.prototype.reserve.call(runtime, length);
    };
    const createSession: Runtime["createSession"] = async (...how) => {
      if (part === "session") throw full;
      sessions++;
      return runtime.createSession(...how);
    };
    const onDevice = { runtime: { ...runtime, reserve } as unknown as Runtime, files, createSession };
    const form = { lora: LORA, dtype: "bfloat16", fused: true } as const;
    await assert.rejects(joinedAdapter(onDevice, mapped, form), full);
    assert.deepEqual([part, buffers, sessions], [part, 0, 0]);
  }
  t.mock.restoreAll();
});
