import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { GraphError } from "../graph/errors.ts";
import {
  cudaFault,
  type Device,
  deviceName,
  deviceNames,
  parseDevice,
  parseDevices,
  resolveDevice,
  resolveDevices,
} from "./device.ts";
import { probeDevice } from "./runtime.ts";

const cuda = (id: number) => ({ kind: "cuda", id }) as const;

test("a device's name gives the device; an unknown name is refused with the valid names", () => {
  const good: [text: string, first: string, all: string][] = [
    ["cpu", "cpu", "cpu"],
    ["CPU", "cpu", "cpu"],
    ["cuda:3", "cuda:3", "cuda:3"],
    ["cuda:3,0,12", "cuda:3", "cuda:3,0,12"],
  ];
  for (const [text, first, all] of good) {
    assert.equal(deviceName(parseDevice(text) as Device), first);
    assert.equal(deviceNames(parseDevices(text) as Device[]), all);
  }
  assert.deepEqual([parseDevice("Auto"), parseDevices("Auto")], ["auto", "auto"]);
  assert.deepEqual([parseDevice("CUDA"), parseDevices("CUDA")], [cuda(0), "cuda"]);
  for (const text of ["", "gpu", "cuda:", "cuda:-1", "cuda:1000", "cpu:0", "mps", "cuda:0,", "cuda:0,x", "cuda,cuda"])
    for (const parse of [parseDevice, parseDevices])
      assert.throws(() => parse(text), {
        code: "device",
        message: `the device is ${text}; give auto, cpu, cuda, cuda:N or several GPUs, such as cuda:0,1`,
      });
  assert.throws(() => parseDevices("cuda:1,01"), /the device is cuda:1,01; it has GPU 1 twice; name each GPU once/);
});

/** A machine with so many GPUs, of which some do not work. */
const machine = (count: number, broken: readonly number[] = []) => {
  const probed: number[] = [];
  const probe = async (device: Device) => {
    if (device.kind === "cpu") return;
    probed.push(device.id);
    const why = device.id >= count ? "there is no GPU of this number; nvidia-smi -L lists them" : "it has failed";
    if (device.id >= count || broken.includes(device.id))
      throw new GraphError(
        "device",
        `cuda:${device.id} cannot be used: ${count === 0 ? "the driver finds no GPU" : why}`,
      );
  };
  return { probe, probed };
};

test("auto and cuda take all GPUs; auto skips broken GPUs, and so does cuda once a run has begun", async () => {
  const gpu = { gpu: true };
  for (const wish of ["auto", "cuda"] as const) {
    const { probe, probed } = machine(3);
    assert.deepEqual((await resolveDevices(wish, probe, gpu)).devices, [cuda(0), cuda(1), cuda(2)]);
    assert.deepEqual(probed, [0, 1, 2, 3]);
  }
  const lost = ["cuda:1 cannot be used: it has failed"];
  const { probe } = machine(3, [1]);
  assert.deepEqual(await resolveDevices("auto", probe, gpu), {
    ...{ devices: [cuda(0), cuda(2)], lost },
    reason: "2 GPUs are there and work",
  });
  for (const wish of ["cuda", [cuda(0), cuda(1)]] as const) {
    await assert.rejects(resolveDevices(wish, probe, gpu), { code: "device", message: lost[0] });
    const { devices, lost: found } = await resolveDevices(wish, probe, { ...gpu, lossy: true });
    assert.deepEqual(devices, wish === "cuda" ? [cuda(0), cuda(2)] : [cuda(0)]);
    assert.deepEqual(found, lost);
  }
});

test("device auto takes the CPU if no GPU works, and device cuda is refused", async () => {
  for (const { probe } of [machine(0), machine(2, [0, 1])])
    for (const lossy of [false, true]) {
      const { devices, reason, lost } = await resolveDevices("auto", probe, { gpu: true, lossy });
      assert.deepEqual([devices, lost], [[{ kind: "cpu" }], []]);
      assert.match(reason!, /^cuda:0 cannot be used: /);
      for (const wish of ["cuda", [cuda(0), cuda(1)]] as const)
        await assert.rejects(resolveDevices(wish, probe, { gpu: true, lossy }), /^GraphError: cuda:0 cannot be used/);
    }
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
  [
    "CUDA failure 719: unspecified launch failure ; GPU=1 ; hostname=x",
    /cuda:0 cannot be used: it has failed \(CUDA failure 719: unspecified launch failure\); NVIDIA's driver says more/,
  ],
  ["CUDA error 214: uncorrectable ECC error encountered", /it has failed \(CUDA failure 214: uncorrectable ECC/],
  ["BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer of size 12", /memory is full/],
  ["libcudnn.so.9: undefined symbol: cudnnFoo", /does not fit this build/],
];
test("each fault of a GPU has a message of its own", () => {
  for (const [message, says] of FAULTS) {
    const line = cudaFault(cuda(0), `/onnxruntime_src/a.cc:1 Fail(): ${message}\n more`) ?? "";
    assert.match(line, says);
    assert.doesNotMatch(line, /\n/);
  }
  assert.equal(cudaFault(cuda(0), "the graph has a cycle"), undefined);
  // the messages of ONNX Runtime 1.30 and of the dynamic linker
  const unloaded = "OrtSessionOptionsAppendExecutionProvider_Cuda: Failed to load shared library";
  const linker = () => "libcudnn.so.9: cannot open shared object file";
  assert.match(cudaFault(cuda(0), unloaded, linker)!, /libcudnn\.so\.9 is not found; install CUDA 13 and cuDNN 9/);
  assert.match(cudaFault(cuda(0), unloaded, () => "")!, /cannot load its CUDA library, its log on stderr says why/);
});
