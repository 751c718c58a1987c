/** A zygote that we start ourselves, as on one machine. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm } from "node:fs/promises";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ControlGroup } from "./control-group.ts";
import type { Zygote } from "./sandbox.ts";

const ZYGOTE = fileURLToPath(new URL("./sandbox/zygote.py", import.meta.url));

export interface ProcessOptions {
  /** The interpreter of the Python environment. */
  python: string;
  /** A directory of this sandbox alone; made, used for scratch where there are no namespaces, removed at the end. */
  space: string;
  /** Lines that the zygote itself prints, which it should not. */
  onLog?: (line: string) => void;
}

export async function spawnZygote({ python, space, onLog }: ProcessOptions): Promise<Zygote> {
  await mkdir(space, { recursive: true, mode: 0o711 });
  // A hash seed that never changes: a program's sets iterate alike whichever zygote it meets.
  const env = { LANG: "C.UTF-8", PATH: "/usr/bin:/bin", PYTHONHASHSEED: "0", PYTHONSAFEPATH: "1", PYTHONUTF8: "1" };
  const child = spawn(python, ["-s", "-B", ZYGOTE], { cwd: "/", env, stdio: ["ignore", "ignore", "pipe", "pipe"] });
  // Before it is configured it forks nothing.
  const made = child.pid === undefined ? undefined : ControlGroup.make();
  const group = made?.add(child.pid!) ? made : undefined;
  if (!group) made?.remove();
  const control = child.stdio[3] as unknown as Duplex;
  control.on("error", () => {}); // its end is noticed by the process's
  let lastLine = "no message";
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    for (const line of text.split("\n").filter(Boolean)) {
      lastLine = line.slice(0, 500);
      onLog?.(lastLine);
    }
  });
  return {
    control,
    group,
    pid: child.pid,
    ended: once(child, "close").then(
      () => {},
      () => {},
    ),
    whyEnded: () => `its process ended: ${lastLine}`,
    end: () => void child.kill("SIGKILL"),
    async cleanUp() {
      group?.remove();
      for (let attempt = 0; attempt < 5; attempt++) {
        try {
          return await rm(space, { recursive: true, force: true });
        } catch {
          await sleep(50); // a program's last process may still be writing
        }
      }
    },
  };
}
