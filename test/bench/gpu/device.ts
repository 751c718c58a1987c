/** The device of a benchmark: its name, data sheet and memory. */
import { execFileSync } from "node:child_process";
import os from "node:os";
import type { ComputeFormat } from "../../../learner/engine/engine.ts";
import { type Device, deviceName } from "../../../learner/engine/runtime/device.ts";
import { koffi } from "../../../learner/engine/runtime/koffi.ts";

/** A rehearsal computes nothing: ../../rehearsal. */
export const REHEARSED = process.env.REHEARSAL_FOLDER !== undefined;

const SMI_TIMEOUT_MILLISECONDS = 10_000;

/** Returns nvidia-smi's answer about a GPU, or undefined if it gives none. */
function nvidiaSmi(id: number, field: "name" | "memory.used"): string | undefined {
  try {
    const query = [`--query-gpu=${field}`, "--format=csv,noheader,nounits", `--id=${id}`];
    return execFileSync("nvidia-smi", query, {
      ...{ encoding: "utf8", timeout: SMI_TIMEOUT_MILLISECONDS },
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return undefined;
  }
}

/** Returns e.g. `NVIDIA H100 80GB HBM3`, or the CPU's model. */
export function modelName(device: Device): string {
  if (device.kind === "cpu") return os.cpus()[0]?.model.trim() ?? "an unknown CPU";
  if (REHEARSED) return "no GPU (a rehearsal)";
  return nvidiaSmi(device.id, "name") ?? `${deviceName(device)}, whose name nvidia-smi does not say`;
}

/** Returns a GPU's memory in use, in bytes; 0 for a CPU, or if nvidia-smi gives none. Makes no CUDA context. */
export function memoryUsed(device: Device): number {
  if (device.kind === "cpu" || REHEARSED) return 0;
  return Number(nvidiaSmi(device.id, "memory.used") ?? 0) * 2 ** 20;
}

type Peaks = Partial<Record<ComputeFormat | "bandwidth", number>>;

/**
 * From NVIDIA's data sheets: 1e12 operations per second of dense matrix products, half of the numbers "with sparsity" (float32 is without
 * tensor cores), and 1e12 bytes per second of the device's memory. The first match counts.
 */
const DATA_SHEETS: readonly [name: RegExp, peaks: Peaks][] = [
  [/H200 NVL/, { float32: 60, tf32: 417.5, bfloat16: 835, bandwidth: 4.8 }],
  [/H100 NVL/, { float32: 60, tf32: 417.5, bfloat16: 835, bandwidth: 3.9 }],
  [/H200/, { float32: 67, tf32: 494.5, bfloat16: 989, bandwidth: 4.8 }],
  [/H100 PCIe/, { float32: 51, tf32: 378, bfloat16: 756, bandwidth: 2 }],
  [/H100/, { float32: 67, tf32: 494.5, bfloat16: 989, bandwidth: 3.35 }],
  [/A100/, { float32: 19.5, tf32: 156, bfloat16: 312 }],
  [/L40S/, { float32: 91.6, tf32: 183, bfloat16: 362, bandwidth: 0.864 }],
  [/\bL4\b/, { float32: 30.3, tf32: 60, bfloat16: 121, bandwidth: 0.3 }],
  [/\bA10\b/, { float32: 31.2, tf32: 62.5, bfloat16: 125, bandwidth: 0.6 }],
  [/RTX 4090/, { float32: 82.6, tf32: 82.6, bfloat16: 165.2, bandwidth: 1.008 }],
];

/** Returns operations per second of the data sheet; undefined for a device that is not in the table. */
export const peakOperations = (name: string, format: ComputeFormat): number | undefined => fromDataSheet(name, format);

/** Returns bytes per second of the device's memory by the data sheet; undefined for a device that is not in the table. */
export const peakBandwidth = (name: string): number | undefined => fromDataSheet(name, "bandwidth");

function fromDataSheet(name: string, what: keyof Peaks): number | undefined {
  const tera = DATA_SHEETS.find(([pattern]) => pattern.test(name))?.[1][what];
  return tera && tera * 1e12;
}

export interface DeviceMemory {
  freeBytes: number;
  totalBytes: number;
}

const CUDA_RUNTIME = "libcudart.so.13";

/**
 * Reads a GPU's memory with cudaMemGetInfo, for the whole device: it includes this process's use and CUDA's own.
 *
 * @returns a function that reads; the first call makes this process's CUDA context
 * @throws Error with CUDA's error number
 */
export function memoryReader({ id }: Device & { kind: "cuda" }): () => DeviceMemory {
  const library = koffi().load(CUDA_RUNTIME);
  const setDevice = library.func("cudaSetDevice", "int", ["int"]);
  const memGetInfo = library.func("cudaMemGetInfo", "int", ["void *", "void *"]);
  const succeeded = (call: string, status: number) => {
    if (status !== 0) throw new Error(`${call} failed: CUDA failure ${status}`);
  };
  const [free, total] = [new BigUint64Array(1), new BigUint64Array(1)];
  return () => {
    succeeded("cudaSetDevice", setDevice(id));
    succeeded("cudaMemGetInfo", memGetInfo(free, total));
    return { freeBytes: Number(free[0]), totalBytes: Number(total[0]) };
  };
}
