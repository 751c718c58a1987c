/** The folder of a command for what goes with it: certificates, sockets, the data that actors see. */
import { lstatSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTicks } from "./run-folder.ts";

/** In the system's directory for temporary files; the process's number and start time follow. */
const PREFIX = "longrun-run-";

/** Makes a folder that its user alone can read. Removes the folders of this user's commands that were killed. */
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
