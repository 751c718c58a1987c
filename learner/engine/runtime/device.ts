/** Devices that run graphs, and the messages if one cannot be used. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { GraphError } from "../graph/errors.ts";

export type Device = { readonly kind: "cpu" } | { readonly kind: "cuda"; readonly id: number };

/** `auto`: all GPUs that work, or the CPU where none does. `cuda`: all GPUs of the machine. */
type DeviceWish = "auto" | "cuda" | readonly Device[];

/** Largest number of GPUs that are tried. */
const MOST_GPUS = 16;

/** `auto`, `cpu`, `cuda`, `cuda:N` or several (`cuda:0,1`), in any case. @throws GraphError `device` */
export function parseDevices(text: string): DeviceWish {
  const refuse = (problem: string) => new GraphError("device", `the device is ${text}; ${problem}`);
  const match = /^(?:(auto|cpu|cuda)|cuda:(\d{1,3}(?:,\d{1,3})*))$/i.exec(text);
  if (!match) throw refuse("give auto, cpu, cuda, cuda:N or several GPUs, such as cuda:0,1");
  const [, name, ids = ""] = match;
  if (name) return name.toLowerCase() === "cpu" ? [{ kind: "cpu" }] : (name.toLowerCase() as "auto" | "cuda");
  const devices = ids.split(",").map((id): Device => ({ kind: "cuda", id: Number(id) }));
  const twice = ids.split(",").find((id, i, all) => all.findIndex((other) => Number(other) === Number(id)) !== i);
  if (twice !== undefined) throw refuse(`it has GPU ${Number(twice)} twice; name each GPU once`);
  return devices;
}

/** Returns the first device, for a command that uses one. @throws GraphError `device` */
export function parseDevice(text: string): Device | "auto" {
  const wish = parseDevices(text);
  return wish === "auto" ? wish : wish === "cuda" ? { kind: "cuda", id: 0 } : wish[0]!;
}

export const deviceName = (device: Device): string => (device.kind === "cpu" ? "cpu" : `cuda:${device.id}`);

/** `cuda:0,1` for several. */
export const deviceNames = ([first, ...others]: readonly Device[]): string =>
  [deviceName(first!), ...others.map((it) => (it.kind === "cuda" ? it.id : deviceName(it)))].join();

/** NVIDIA's driver makes this file, in containers too. */
export const hasGpu = (): boolean => existsSync("/dev/nvidiactl") || existsSync("/dev/dxg"); // dxg: WSL 2

/** Makes a session on a device, or throws. */
type Probe = (device: Device) => Promise<void>;

/**
 * Returns the devices for a wish. All named GPUs must work, but with `lossy` one of them is enough; with `auto` the CPU takes
 * the place of GPUs where none works.
 *
 * @param lossy GPUs that worked before may have failed: a run continues with the rest
 * @returns the devices, for `auto` the reason for the choice, and for each failing GPU the reason
 * @throws GraphError `device`, one line with the remedy
 */
export async function resolveDevices(
  wish: DeviceWish,
  probe: Probe,
  { gpu = hasGpu(), lossy = false, most = MOST_GPUS } = {},
): Promise<{ devices: readonly Device[]; reason?: string; lost: string[] }> {
  const cpu: Device = { kind: "cpu" };
  if (wish === "auto" && !gpu) return { devices: [cpu], reason: "there is no NVIDIA GPU", lost: [] };
  const all = typeof wish === "string";
  const asked = all ? Array.from({ length: most }, (_, id): Device => ({ kind: "cuda", id })) : wish.slice(0, most);
  const [devices, lost]: [Device[], string[]] = [[], []];
  for (const device of asked) {
    try {
      if (device.kind === "cuda") await probe(device);
      devices.push(device);
    } catch (error) {
      if (!(error instanceof GraphError)) throw error;
      if (all && devices.length + lost.length > 0 && error.message.includes(NO_SUCH_GPU)) break; // there are no more GPUs
      if (wish !== "auto" && !lossy) throw error;
      lost.push(error.message);
      if (all && error.message.includes(NO_GPU)) break;
    }
  }
  if (devices.length > 0) {
    const works = devices.length === 1 ? "a GPU is there and works" : `${devices.length} GPUs are there and work`;
    return { devices, ...(wish === "auto" && { reason: works }), lost };
  }
  if (wish === "auto") return { devices: [cpu], reason: lost[0]!, lost: [] };
  throw new GraphError("device", lost[0]!);
}

/** Chooses the device of a command that uses one. @returns the device, and for `auto` the reason for the choice. @throws GraphError `device` */
export async function resolveDevice(
  wish: Device | "auto",
  probe: Probe,
  gpu = hasGpu(),
): Promise<{ device: Device; reason?: string }> {
  const { devices, reason } = await resolveDevices(wish === "auto" ? wish : [wish], probe, { gpu, most: 1 });
  return { device: devices[0]!, ...(reason !== undefined && { reason }) };
}

/** Files that ONNX Runtime loads for CUDA beside its own library. */
const CUDA_FILES = ["libonnxruntime_providers_shared.so", "libonnxruntime_providers_cuda.so"];

const packageFolder = (): string =>
  path.dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json"));

/** Returns the folder of onnxruntime-node's libraries for this machine. */
export const onnxRuntimeFolder = (): string =>
  path.join(packageFolder(), "bin", "napi-v6", process.platform, process.arch);

/** The command that downloads the CUDA files, which the npm package lacks: `.npmrc` keeps npm from running this script. */
const installCommand = (): string =>
  `ONNXRUNTIME_NODE_INSTALL=1 node ${path.join(packageFolder(), "script/install.js")}`;

/** Checked before ONNX Runtime loads them, because it reports a missing file on stderr. @throws GraphError `device` */
export function checkCudaFiles(device: Device, folder = onnxRuntimeFolder()): void {
  const missing = CUDA_FILES.find((file) => !existsSync(path.join(folder, file)));
  if (missing === undefined) return;
  throw new GraphError(
    "device",
    `${deviceName(device)} cannot be used: ${folder} has no ${missing}; \`${installCommand()}\` downloads ONNX Runtime's CUDA files; without a GPU choose the CPU`,
  );
}

/** Asks the dynamic linker for missing libraries, because ONNX Runtime's error does not name them. */
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

const NO_GPU = "the driver finds no GPU";
const NO_SUCH_GPU = "there is no GPU of this number";

/** ONNX Runtime's messages when it cannot make a session on CUDA, each with the fault and its remedy. The first match counts. */
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
  [/no CUDA-capable device|CUDA failure 100\b/, () => `${NO_GPU}; give the container one`],
  [
    /invalid device ordinal|Invalid device ID|CUDA failure 101\b/,
    () => `${NO_SUCH_GPU}; nvidia-smi -L lists them, from 0 on`,
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
    // errors after which a GPU does nothing more until its processes have ended: cudaError_t in driver_types.h
    /CUDA (?:failure|error) (46|214|220|226|700|702|709|710|71[4-9]|999)\b:?\s*([^;)\n]*)/,
    ([, number, said]) =>
      `it has failed (CUDA failure ${number}: ${said!.trim()}); NVIDIA's driver says more (dmesg, nvidia-smi -q: Xid)`,
  ],
  [
    /Failed to load (?:shared )?library/,
    () => "ONNX Runtime cannot load its CUDA library, its log on stderr says why; install CUDA 13 and cuDNN 9",
  ],
];

/**
 * Returns one line for an error of ONNX Runtime on a CUDA device.
 *
 * @returns undefined if the message is not about the device
 */
export function cudaFault(device: Device, message: string, linker = linkerSays): string | undefined {
  const told = /Failed to load (shared )?library/.test(message) ? `${message}\n${linker()}` : message;
  for (const [pattern, fault] of FAULTS) {
    const match = pattern.exec(told);
    if (match) return `${deviceName(device)} cannot be used: ${fault(match)}`;
  }
  return undefined;
}
