import assert from "node:assert/strict";
import { test } from "node:test";
import { DTYPES } from "../graph/tensor.ts";
import { DeviceBuffer } from "../runtime/buffer.ts";
import { DeviceFiles } from "../runtime/files.ts";
import { Runtime } from "../runtime/runtime.ts";
import { Session } from "../runtime/session.ts";
import type { ModelConfig } from "./config.ts";
import { joinedAdapter, joinedParts } from "./generate-joined.ts";
import { storedBytes } from "./halves.ts";
import type { StoredTensor } from "./safetensors.ts";
import { elementCount, parameters } from "./weights.ts";

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

for (const [dtype, compute] of [
  ["BF16", "bfloat16"],
  ["F16", "float32"], // beside a cache in bfloat16
  ["F32", "float32"],
] as const)
  test(`the A of an adapter that is multiplied in ${compute} lie below matrices in ${dtype}, in the room that is theirs`, async (t) => {
    const runtime = new Runtime({ kind: "cpu" });
    t.after(() => runtime.release());
    const bytes = DTYPES[compute].bytes;
    const matrices = new Map(
      parameters(CONFIG).map(({ name, shape }, i) => {
        const length = storedBytes(dtype, shape);
        return [name, { name, file: "zeros", dtype, shape, offset: 1024 * i, length } as StoredTensor];
      }),
    );
    const mapped = {
      config: CONFIG,
      matrices: (paths: readonly string[]) => paths.map((path) => matrices.get(`${path}.weight`)!),
    };
    const groups = joinedParts(mapped, LORA);
    const files = new DeviceFiles(runtime, [...matrices.values()], () => {}, groups);
    const view = t.mock.method(files, "view");
    const form = { lora: LORA, dtype: compute, fused: false };
    const joined = await joinedAdapter(
      { runtime, files, createSession: runtime.createSession.bind(runtime) },
      mapped,
      form,
    );
    const down = Object.keys(joined.feeds).filter((name) => name.endsWith("lora_A.weight"));
    const views = view.mock.calls.map(({ arguments: [part, from, , shape] }) => ({ part, from, shape }));
    const ofA = views.filter(({ from }) => from > 0);
    assert.deepEqual([down.length, ofA.length], [2, 2]);
    for (const { part, from, shape } of ofA) {
      const { parts, room } = groups.find((group) => group.parts.includes(part))!;
      const end = parts.reduce((sum, { length }) => sum + length, 0);
      assert.equal(from, end);
      assert.ok(bytes * elementCount(shape) <= room, `${shape} in ${room} bytes`);
    }
    await joined.release();
    files.release();
  });
