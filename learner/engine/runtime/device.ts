/** Where graphs run, and what to say when that place cannot be used. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { GraphError } from "../graph/errors.ts";

export type Device = { readonly kind: "cpu" } | { readonly kind: "cuda"; readonly id: number };

/** `auto`, `cpu`, `cuda` (which is `cuda:0`) or `cuda:N`, in any case. @throws GraphError `device` */
export function parseDevice(text: string): Device | "auto" {
  const match = /^(?:(auto|cpu)|cuda(?::(\d{1,3}))?)$/i.exec(text);
  if (!match) throw new GraphError("device", `the device is ${text}; give auto, cpu, cuda or cuda:N`);
  const [, name, id] = match;
  if (name === undefined) return { kind: "cuda", id: Number(id ?? 0) };
  return name.toLowerCase() === "cpu" ? { kind: "cpu" } : "auto";
}

export const deviceName = (device: Device): string => (device.kind === "cpu" ? "cpu" : `cuda:${device.id}`);

/** NVIDIA's driver makes this file, in containers too. */
export const hasGpu = (): boolean => existsSync("/dev/nvidiactl") || existsSync("/dev/dxg"); // dxg: WSL 2

/**
 * The device for a wish. CUDA that was asked for by name must work; with `auto` the CPU takes its place.
 *
 * @param probe makes a session on a device, or throws
 * @returns the device, and for `auto` why it is that one
 * @throws GraphError `device`, one line with the remedy
 */
export async function resolveDevice(
  wish: Device | "auto",
  probe: (device: Device) => Promise<void>,
  gpu = hasGpu(),
): Promise<{ device: Device; reason?: string }> {
  const cpu = { kind: "cpu" } as const;
  if (wish !== "auto") {
    if (wish.kind === "cuda") await probe(wish);
    return { device: wish };
  }
  if (!gpu) return { device: cpu, reason: "there is no NVIDIA GPU" };
  const cuda = { kind: "cuda", id: 0 } as const;
  try {
    await probe(cuda);
    return { device: cuda, reason: "a GPU is there and works" };
  } catch (error) {
    if (!(error instanceof GraphError)) throw error;
    return { device: cpu, reason: error.message };
  }
}

/** What it loads for CUDA, beside its own library. */
const CUDA_FILES = ["libonnxruntime_providers_shared.so", "libonnxruntime_providers_cuda.so"];

const packageFolder = (): string =>
  path.dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json"));

/** Where onnxruntime-node has its libraries for this machine. */
export const onnxRuntimeFolder = (): string =>
  path.join(packageFolder(), "bin", "napi-v6", process.platform, process.arch);

/** The command that gets what the npm package lacks: `.npmrc` keeps npm from running this script. */
const installCommand = (): string =>
  `ONNXRUNTIME_NODE_INSTALL=1 node ${path.join(packageFolder(), "script/install.js")}`;

/** Asked before ONNX Runtime is, which writes of a missing file to stderr itself. @throws GraphError `device` */
export function checkCudaFiles(device: Device, folder = onnxRuntimeFolder()): void {
  const missing = CUDA_FILES.find((file) => !existsSync(path.join(folder, file)));
  if (missing === undefined) return;
  throw new GraphError(
    "device",
    `${deviceName(device)} cannot be used: ${folder} has no ${missing}; \`${installCommand()}\` downloads ONNX Runtime's CUDA files`,
  );
}

/** ONNX Runtime's error does not say what its CUDA library lacks; the dynamic linker does. */
function linkerSays(folder = onnxRuntimeFolder()): string {
  try {
    const file = path.join(folder, "libonnxruntime_providers_cuda.so");
    const linked = execFileSync("ldd", [file], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    const [, library] = /^\s*(\S+) => not found/m.exec(linked) ?? [];
    return library ? `${library}: cannot open shared object file` : "";
  } catch {
    return ""; // no ldd: the message stays as it is
  }
}

/** Of what ONNX Runtime says when a session on CUDA cannot be made: what is wrong, and the remedy. First match counts. */
const FAULTS: readonly [pattern: RegExp, fault: (match: RegExpMatchArray) => string][] = [
  [
    /(lib(?:cublas|cublasLt|cudart|cudnn|curand|cufft|nvrtc|nvJitLink)[\w.]*): cannot open shared object file/,
    ([, file]) => `${file} is not found; install CUDA 13 and cuDNN 9, or add their folder to LD_LIBRARY_PATH`,
  ],
  [
    /libcuda\.so[\w.]*: cannot open shared object file/,
    () => "NVIDIA's driver (libcuda.so.1) is not found; install it, or give the container a GPU",
  ],
  [
    /(lib[\w.-]+\.so[\w.]*): (undefined symbol|version `[^']+' not found|wrong ELF class)[^\n]*/,
    ([all]) => `a library does not fit this build of ONNX Runtime (${all}); install CUDA 13 and cuDNN 9`,
  ],
  [/driver version is insufficient/, () => "NVIDIA's driver is too old for CUDA 13; install version 580 or newer"],
  [/no CUDA-capable device|CUDA failure 100\b/, () => "the driver finds no GPU; give the container one"],
  [
    /invalid device ordinal|Invalid device ID|CUDA failure 101\b/,
    () => "there is no GPU of this number; nvidia-smi -L lists them, from 0 on",
  ],
  [
    /no kernel image is available|CUDA failure 209\b/,
    () => "the GPU is not supported; ONNX Runtime's CUDA files are for compute capability 7.5 to 12.0",
  ],
  [
    /out of memory|Failed to allocate memory|CUDA failure 2\b/,
    () => "the GPU's memory is full; end what else uses it (nvidia-smi), or see `longrun model info DIR --plan lora`",
  ],
  [
    /Failed to load (?:shared )?library/,
    () => "ONNX Runtime cannot load its CUDA library, its log on stderr says why; install CUDA 13 and cuDNN 9",
  ],
];

/**
 * One line for an error of ONNX Runtime's on a CUDA device.
 *
 * @returns undefined where the message is not about the device
 */
export function cudaFault(device: Device, message: string, linker = linkerSays): string | undefined {
  const told = /Failed to load (shared )?library/.test(message) ? `${message}\n${linker()}` : message;
  for (const [pattern, fault] of FAULTS) {
    const match = pattern.exec(told);
    if (match) return `${deviceName(device)} cannot be used: ${fault(match)}`;
  }
  return undefined;
}
