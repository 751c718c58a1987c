/** The CPU time of processes. */
import { readFileSync } from "node:fs";

const CLOCK_TICKS_PER_SECOND = 100;

/** Returns user and system time of all threads; fields 14 and 15 of proc_pid_stat(5). */
export function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
}

export function describeCores(cores: Record<string, number>): string {
  const sorted = Object.entries(cores).sort((a, b) => b[1] - a[1]);
  return sorted.map(([name, share]) => `${name} ${share.toFixed(2)}`).join(", ");
}
