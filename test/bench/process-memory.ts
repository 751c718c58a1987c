/** Measures processes' memory from outside: proportional set sizes, which divide a shared page among its processes. */
import { readFileSync } from "node:fs";

export interface Memory {
  /** bytes */
  all: number;
  /** Its parts: memory of its own, and pages of files. */
  anonymous: number;
  files: number;
}

export function proportionalMemory(pids: number[]): Memory {
  const sum = (field: string) => pids.reduce((total, pid) => total + kilobytes(`/proc/${pid}/smaps_rollup`, field), 0);
  return { all: sum("Pss"), anonymous: sum("Pss_Anon"), files: sum("Pss_File") };
}

/** Returns the bytes of a line `Field: 12 kB` in a file of /proc. */
export function kilobytes(file: string, field: string): number {
  return 1024 * Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(readFileSync(file, "utf8"))![1]);
}
