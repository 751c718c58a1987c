/** A zygote that listens in a container of a pod. The kubelet ends and restarts it. */
import { once } from "node:events";
import { lstat } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { ActorError } from "./errors.ts";
import type { Zygote } from "./zygote.ts";

export interface SocketOptions {
  /** Path of the zygote's socket, which exists only while the zygote waits for a supervisor. */
  socket: string;
}

const SHORTEST_PAUSE_SECONDS = 0.01;
const LONGEST_PAUSE_SECONDS = 1;

/** Connects as soon as the zygote listens. Throws ActorError `sandbox` if it does not within `seconds`. */
export async function connectZygote({ socket }: SocketOptions, seconds: number): Promise<Zygote> {
  const deadline = performance.now() + seconds * 1000;
  for (let pause = SHORTEST_PAUSE_SECONDS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_SECONDS)) {
    try {
      return zygoteBehind(await connectOnce(socket));
    } catch (cause) {
      const message =
        `sandbox: nothing listens at ${socket} after ${seconds} s (${(cause as Error).message}); ` +
        "look at the logs and the state of this slot's sandbox container";
      if (performance.now() + pause * 1000 > deadline) throw new ActorError("sandbox", message, cause);
    }
    await sleep(pause * 1000);
  }
}

async function connectOnce(path: string): Promise<Socket> {
  // The sandbox's user can write to that directory, so never follow a link.
  if (!(await lstat(path)).isSocket()) throw new Error("not a socket");
  const control = connect(path);
  await once(control, "connect");
  return control;
}

function zygoteBehind(control: Socket): Zygote {
  let why = "its connection ended: the sandbox container ended, or its zygote gave up";
  control.on("error", (error) => {
    why = `its connection broke: ${error.message}`;
  });
  return {
    control,
    ended: once(control, "close").then(
      () => {},
      () => {},
    ),
    whyEnded: () => why,
    end: () => void control.destroy(), // the zygote then kills the program, empties scratch and listens again
    cleanUp: async () => {},
  };
}
