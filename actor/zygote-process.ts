/** A zygote that the actor starts itself, on one machine: a fork of the process that has imported the packages. */
import { once } from "node:events";
import { mkdir, rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { ControlGroup } from "./control-group.ts";
import { ForkServer, type ForkServerOptions } from "./fork-server.ts";
import { isAlive } from "./is-alive.ts";
import type { Zygote } from "./zygote.ts";

/** How long to wait for its last lines after its end. */
const LAST_LINES_MILLISECONDS = 20;
/** How long a killed zygote and its processes may take to end. */
const GONE_MILLISECONDS = 2000;

export interface ProcessOptions extends Pick<ForkServerOptions, "python" | "warm" | "onLog"> {
  /** A directory for this sandbox alone. It is made, holds scratch if there are no namespaces, and is removed at the end. */
  space: string;
}

/** Starts a zygote. Throws ActorError `sandbox` if it is not ready within `seconds`. */
export async function spawnZygote(options: ProcessOptions & ForkServerOptions, seconds: number): Promise<Zygote> {
  const { space } = options;
  const server = ForkServer.use(options);
  try {
    await mkdir(space, { recursive: true, mode: 0o711 });
    const { pid, control } = await server.fork(seconds);
    control.on("error", () => {}); // the close event follows
    // It forks nothing before it is configured, so all its children will be in the group.
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
      control,
      group,
      pid,
      ended: once(control, "close").then(
        () => sleep(LAST_LINES_MILLISECONDS),
        () => {},
      ),
      whyEnded: () => `its process ended: ${server.lastLine}`,
      end: () => void control.destroy(), // its fork server then kills it
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
