/** How much memory a run may plan with. */
import { execFileSync } from "node:child_process";
import os from "node:os";
import { type Device, deviceName } from "./runtime/device.ts";

export interface AvailableMemory {
  bytes: number;
  /** where the number is from */
  source: string;
}

export interface Machine {
  /** of the control group; 0: none */
  limitBytes: number;
  /** free, or held by caches that can go */
  freeBytes: number;
  /** prints the free MiB of a GPU; throws where there is none */
  nvidiaSmi: (args: string[]) => string;
}

const SMI_TIMEOUT_MILLISECONDS = 10_000;

const thisMachine = (): Machine => ({
  limitBytes: process.constrainedMemory(),
  freeBytes: os.freemem(), // MemAvailable where there is a /proc/meminfo
  nvidiaSmi: (args) =>
    execFileSync("nvidia-smi", args, {
      encoding: "utf8",
      timeout: SMI_TIMEOUT_MILLISECONDS,
      stdio: ["ignore", "pipe", "ignore"],
    }),
});

/** What is free on this machine, and no more than its container may use. */
export function hostMemory({ limitBytes, freeBytes }: Machine = thisMachine()): AvailableMemory {
  return limitBytes > 0 && limitBytes < freeBytes
    ? { bytes: limitBytes, source: "the container's limit" }
    : { bytes: freeBytes, source: "free on this machine" };
}

/** What is free on the GPU that has the least; undefined where nvidia-smi does not say it of each. */
export function leastGpuMemory(
  devices: readonly (Device & { kind: "cuda" })[],
  machine: Machine = thisMachine(),
): AvailableMemory | undefined {
  const found = devices.map((device) => gpuMemory(device, machine));
  return found.reduce((a, b) => (a && b && (b.bytes < a.bytes ? b : a)) || undefined);
}

/** What is free on a GPU; undefined where nvidia-smi does not say. */
export function gpuMemory(
  device: Device & { kind: "cuda" },
  machine: Machine = thisMachine(),
): AvailableMemory | undefined {
  const query = ["--query-gpu=memory.free", "--format=csv,noheader,nounits", `--id=${device.id}`];
  try {
    const mebibytes = Number(machine.nvidiaSmi(query).trim());
    if (mebibytes > 0) return { bytes: mebibytes * 2 ** 20, source: `free on ${deviceName(device)}` };
  } catch {
    // the plan says that it is not known
  }
  return undefined;
}
