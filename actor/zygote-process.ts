/** A zygote that is our own, as on one machine: a fork of a process that imports the packages for all of them. */
import { once } from "node:events";
import { mkdir, rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { ControlGroup } from "./control-group.ts";
import { ForkServer, type ForkServerOptions } from "./fork-server.ts";
import { isAlive } from "./is-alive.ts";
import type { Zygote } from "./zygote.ts";

/** How long its last lines may take to reach us after its end. */
const LAST_LINES_MILLISECONDS = 20;
/** How long a zygote that was killed, with all in it, may take to be gone. */
const GONE_MILLISECONDS = 2000;

export interface ProcessOptions extends Pick<ForkServerOptions, "python" | "warm" | "onLog"> {
  /** A directory of this sandbox alone; made, used for scratch where there are no namespaces, removed at the end. */
  space: string;
}

/** Throws ActorError `sandbox` if there is none within `seconds`. */
export async function spawnZygote(options: ProcessOptions & ForkServerOptions, seconds: number): Promise<Zygote> {
  const { space } = options;
  const server = ForkServer.use(options);
  try {
    await mkdir(space, { recursive: true, mode: 0o711 });
    const { pid, control } = await server.fork(seconds);
    control.on("error", () => {}); // its end follows
    // Before it is configured it forks nothing.
    const made = ControlGroup.make();
    const group = made?.add(pid) ? made : undefined;
    if (!group) made?.remove();
    const cleanUp = async () => {
      for (let waited = 0; isAlive(pid) && waited < GONE_MILLISECONDS; waited += 5) await sleep(5);
      server.leave();
      group?.remove();
      for (let attempt = 0; attempt < 5; attempt++) {
        try {
          return await rm(space, { recursive: true, force: true });
        } catch {
          await sleep(50); // a program's last process may still be writing
        }
      }
    };
    let cleanedUp: Promise<void> | undefined;
    return {
      ...{ control, group, pid },
      ended: once(control, "close").then(
        () => sleep(LAST_LINES_MILLISECONDS),
        () => {},
      ),
      whyEnded: () => `its process ended: ${server.lastLine}`,
      end: () => void control.destroy(), // upon which it is killed
      cleanUp() {
        cleanedUp ??= cleanUp();
        return cleanedUp;
      },
    };
  } catch (error) {
    server.leave();
    throw error;
  }
}
