/** Resident memory of this process, from Linux. */
import { readFileSync, writeFileSync } from "node:fs";

/** Returns the peak since the process began, or since `resetPeakResident`, in bytes. */
export function peakResident(): number {
  return 1024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))![1]);
}

export function resetPeakResident(): void {
  writeFileSync("/proc/self/clear_refs", "5");
}
