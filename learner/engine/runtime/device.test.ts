import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { GraphError } from "../graph/errors.ts";
import { cudaFault, deviceName, parseDevice, resolveDevice } from "./device.ts";
import { probeDevice } from "./runtime.ts";

const cuda = (id: number) => ({ kind: "cuda", id }) as const;

test("devices by name", () => {
  const good: [string, string][] = [
    ["cpu", "cpu"],
    ["CPU", "cpu"],
    ["cuda", "cuda:0"],
    ["CUDA", "cuda:0"],
    ["cuda:3", "cuda:3"],
  ];
  for (const [text, name] of good) assert.equal(deviceName(parseDevice(text) as { kind: "cpu" }), name);
  assert.equal(parseDevice("Auto"), "auto");
  for (const text of ["", "gpu", "cuda:", "cuda:-1", "cuda:1000", "cpu:0", "mps"])
    assert.throws(() => parseDevice(text), {
      code: "device",
      message: `the device is ${text}; give auto, cpu, cuda or cuda:N`,
    });
});

test("auto takes a GPU that works, and the CPU otherwise, with the reason", async () => {
  const works = async () => {};
  const fails = async () => {
    throw new GraphError("device", "cuda:0 cannot be used: no driver");
  };
  const never = () => assert.fail("nothing is tried");
  assert.deepEqual(await resolveDevice("auto", never, false), {
    device: { kind: "cpu" },
    reason: "there is no NVIDIA GPU",
  });
  assert.deepEqual((await resolveDevice("auto", works, true)).device, cuda(0));
  assert.deepEqual(await resolveDevice("auto", fails, true), {
    device: { kind: "cpu" },
    reason: "cuda:0 cannot be used: no driver",
  });
  assert.deepEqual(await resolveDevice(cuda(1), works), { device: cuda(1) });
  await assert.rejects(resolveDevice(cuda(1), fails), { code: "device" });
  assert.deepEqual(await resolveDevice({ kind: "cpu" }, never), { device: { kind: "cpu" } });
});

const files = fileURLToPath(new URL("../../../node_modules/onnxruntime-node/bin/napi-v6/linux/x64/", import.meta.url));
const installed = existsSync(join(files, "libonnxruntime_providers_cuda.so")) && "ONNX Runtime's CUDA files are here";
test("without ONNX Runtime's CUDA files a session is refused in one line with the remedy", {
  skip: installed,
}, async () => {
  const refusal = {
    code: "device",
    message:
      /^cuda:0 cannot be used: \S+linux\/x64 has no libonnxruntime_providers_\w+\.so; `ONNXRUNTIME_NODE_INSTALL=1 node \S+\/script\/install\.js` downloads [^\n]*$/,
  };
  await assert.rejects(probeDevice(cuda(0)), refusal);
  await probeDevice({ kind: "cpu" });
});

/** Texts as ONNX Runtime, glibc and CUDA word them. */
const FAULTS: [message: string, says: RegExp][] = [
  [
    "Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.13: cannot open shared object file: No such file or directory",
    /libcublasLt\.so\.13 is not found; install CUDA 13/,
  ],
  ["libcuda.so.1: cannot open shared object file", /NVIDIA's driver \(libcuda.so.1\) is not found/],
  ["CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version", /driver is too old/],
  ["CUDA failure 100: no CUDA-capable device is detected", /the driver finds no GPU/],
  ["CUDA failure 101: invalid device ordinal ; GPU=7", /no GPU of this number; nvidia-smi -L/],
  [
    "device_id: cuda_execution_provider_info.cc:70 Invalid device ID: 2, must be between 0 and 2",
    /no GPU of this number; nvidia-smi -L/,
  ],
  ["CUDA failure 209: no kernel image is available for execution on the device", /compute capability 7\.5 to 12\.0/],
  ["BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer of size 12", /memory is full/],
  ["libcudnn.so.9: undefined symbol: cudnnFoo", /does not fit this build/],
];
test("what is wrong with a GPU is told apart", () => {
  for (const [message, says] of FAULTS) {
    const line = cudaFault(cuda(0), `/onnxruntime_src/a.cc:1 Fail(): ${message}\n more`) ?? "";
    assert.match(line, says);
    assert.doesNotMatch(line, /\n/);
  }
  assert.equal(cudaFault(cuda(0), "the graph has a cycle"), undefined);
  // what ONNX Runtime 1.30 says, and the dynamic linker beside it
  const unloaded = "OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library";
  const linker = () => "libcudnn.so.9: cannot open shared object file";
  assert.match(cudaFault(cuda(0), unloaded, linker)!, /libcudnn\.so\.9 is not found; install CUDA 13 and cuDNN 9/);
  assert.match(cudaFault(cuda(0), unloaded, () => "")!, /cannot load its CUDA library, its log on stderr says why/);
});
