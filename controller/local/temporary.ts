/** A command's temporary folder: certificates, sockets, and the data that actors see. */
import { lstatSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTicks } from "./run-folder.ts";

/** Prefix of the folder's name in the system's temporary folder; the process's id and start time follow. */
const PREFIX = "longrun-run-";

/** Creates a folder that only its user can read, and removes those of this user's killed commands. */
export function makeTemporaryFolder(): string {
  const parent = tmpdir();
  for (const name of readdirSync(parent)) {
    const [, pid, ticks] = new RegExp(`^${PREFIX}(\\d+)-(\\d+)-`).exec(name) ?? [];
    if (pid === undefined || startTicks(Number(pid)) === ticks) continue;
    const path = join(parent, name);
    try {
      if (lstatSync(path).uid === process.getuid?.()) rmSync(path, { recursive: true, force: true });
    } catch {
      // Another command was faster, or an actor of the killed one is still about to end.
    }
  }
  return mkdtempSync(join(parent, `${PREFIX}${process.pid}-${startTicks(process.pid)}-`)); // mode 0700
}
