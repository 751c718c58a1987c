/** Determines how much memory a run may plan with. */
import { execFileSync } from "node:child_process";
import os from "node:os";
import { type Device, deviceName } from "./runtime/device.ts";

export interface AvailableMemory {
  bytes: number;
  source: string;
}

export interface Machine {
  /** Limit of the control group; 0: none. */
  limitBytes: number;
  /** Free memory, including caches that can be dropped. */
  freeBytes: number;
  /** Returns the free MiB of a GPU; throws if there is none. */
  nvidiaSmi: (args: string[]) => string;
}

const SMI_TIMEOUT_MILLISECONDS = 10_000;

const thisMachine = (): Machine => ({
  limitBytes: process.constrainedMemory(),
  freeBytes: os.freemem(), // MemAvailable if there is a /proc/meminfo
  nvidiaSmi: (args) =>
    execFileSync("nvidia-smi", args, {
      encoding: "utf8",
      timeout: SMI_TIMEOUT_MILLISECONDS,
      stdio: ["ignore", "pipe", "ignore"],
    }),
});

/** Returns the free memory of this machine, at most the container's limit. */
export function hostMemory({ limitBytes, freeBytes }: Machine = thisMachine()): AvailableMemory {
  return limitBytes > 0 && limitBytes < freeBytes
    ? { bytes: limitBytes, source: "the container's limit" }
    : { bytes: freeBytes, source: "free on this machine" };
}

/** Returns the free memory of the GPU that has least; undefined if nvidia-smi does not report it for each. */
export function leastGpuMemory(
  devices: readonly (Device & { kind: "cuda" })[],
  machine: Machine = thisMachine(),
): AvailableMemory | undefined {
  const found = devices.map((device) => gpuMemory(device, machine));
  return found.reduce((a, b) => (a && b && (b.bytes < a.bytes ? b : a)) || undefined);
}

/** Returns the free memory of a GPU; undefined if nvidia-smi does not report it. */
export function gpuMemory(
  device: Device & { kind: "cuda" },
  machine: Machine = thisMachine(),
): AvailableMemory | undefined {
  const query = ["--query-gpu=memory.free", "--format=csv,noheader,nounits", `--id=${device.id}`];
  try {
    const mebibytes = Number(machine.nvidiaSmi(query).trim());
    if (mebibytes > 0) return { bytes: mebibytes * 2 ** 20, source: `free on ${deviceName(device)}` };
  } catch {
    // the plan reports that it is unknown
  }
  return undefined;
}
