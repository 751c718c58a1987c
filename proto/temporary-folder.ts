/** Temporary folders that hold certificates, sockets and data. A killed process leaves its folder, and the next process removes it. */
import { createHash } from "node:crypto";
import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";

/** Prefix of the folders of actors' sandboxes. */
export const SANDBOX_FOLDERS = "longrun-sandbox-";

/**
 * Creates a folder that only its user can read, in the system's temporary folder, and removes the folders that killed processes have left.
 * Its name is `prefix`, then this machine and PID namespace, then this process's number and start time.
 */
export function makeTemporaryFolder(prefix: string): string {
  removeLeftFolders(prefix);
  const place = placeOfProcesses();
  const owner = place === undefined ? process.pid : `${place}-${process.pid}-${startTicks(process.pid)}`;
  return mkdtempSync(join(tmpdir(), `${prefix}${owner}-`)); // mode 0700
}

/** Removes the folders of this prefix whose process ran on this machine and in this PID namespace for this user, and has ended. */
export function removeLeftFolders(prefix: string): void {
  const place = placeOfProcesses();
  if (place === undefined) return;
  const start = `${prefix}${place}-`;
  for (const name of namesIn(tmpdir())) {
    const [, pid, ticks] = (name.startsWith(start) && /^(\d+)-(\d+)-/.exec(name.slice(start.length))) || [];
    if (pid === undefined || startTicks(Number(pid)) === ticks) continue;
    const path = join(tmpdir(), name);
    try {
      if (lstatSync(path).uid === process.getuid?.()) rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    } catch {
      // Another process was faster, or a child of the killed process is about to end.
    }
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // a folder of mode 1733 takes new folders and lists none
  }
}

/**
 * Returns eight digits for this machine and PID namespace: a process number means nothing to the other containers and machines that share
 * the folder. The digest keeps the paths of sockets below 108 bytes. Undefined where /proc does not show this namespace.
 */
export function placeOfProcesses(): string | undefined {
  try {
    if (readlinkSync("/proc/self") !== String(process.pid)) return undefined;
    const place = `${hostname()} ${readlinkSync("/proc/self/ns/pid")}`;
    return createHash("sha256").update(place).digest("hex").slice(0, 8);
  } catch {
    return undefined;
  }
}

/** Returns a process's start time, which tells it from a later process with its number. Undefined if there is no such process. */
export function startTicks(pid: number): string | undefined {
  try {
    // The start time is field 22; field 2, the name in brackets, may contain spaces.
    return readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ")[19];
  } catch {
    return undefined;
  }
}
