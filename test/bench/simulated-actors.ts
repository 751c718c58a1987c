/**
 * Simulates many actors in one process, with the real client and no sandbox: each program takes about the same time and prints nothing.
 * `node simulated-actors.ts ADDRESS TLS_FOLDERS FIRST ACTORS SECONDS [SLOTS] [SPREAD]`. Reports to its parent when all are connected, takes
 * leases from the message `begin` on, counts from `count` on, and returns its findings at `tell`. Programs take SECONDS (1 - SPREAD / 2) to
 * SECONDS (1 + SPREAD / 2), uniformly distributed.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ActorClient } from "../../actor/client.ts";
import type { ExecutionResult } from "../../actor/execution.ts";
import { uniforms } from "../../learner/engine/model/random.ts";

/** Findings since `count`. */
export interface Found {
  /** Every time from a program's end to the same actor's next lease, in seconds. */
  waits: number[];
  /** When each program started, in Unix milliseconds, by its execution. */
  starts: Record<string, number>;
  /** CPU seconds of this process per second. */
  cores: number;
}

/** Actors that connect at once: a handshake takes both sides milliseconds, and an actor that waits too long gives up. */
const CONNECTING = 20;

const [address, tlsFolders, first, actors, seconds, slots = "1", spread = "0.5"] = process.argv.slice(2) as string[];
const next = uniforms(Number(first), "bench", "simulated actors");
const RESULT: Omit<ExecutionResult, "durationSeconds"> = {
  ...{ outcome: "completed", exitStatus: 0, signal: 0, cpuSeconds: 0, peakMemoryBytes: 0, markers: [] },
  ...{ forgedMarkers: 0, imitatedMarkers: 0, terminalOutput: Buffer.alloc(0), outputBytes: 0, detail: "" },
};
const clients: ActorClient[] = [];
let begun = false;
let waits: number[] = [];
let starts: Record<string, number> = {};

/** Resolves when the actor has connected for the first time. */
function startActor(index: number): Promise<void> {
  let endedAt: number | undefined;
  return new Promise((connected) => {
    const client = new ActorClient({
      address: address!,
      tlsDirectory: join(tlsFolders!, `simulated-${index}`),
      name: `simulated-${index}`,
      slots: Number(slots),
      usableSlots: () => (begun ? Number(slots) : 0),
      isolationLevel: "none",
      execute: async ({ attempt }) => {
        starts[attempt.execution] = performance.timeOrigin + performance.now();
        if (endedAt !== undefined) waits.push((performance.now() - endedAt) / 1000);
        // Spread out, because otherwise all programs would always end at the same moment.
        const durationSeconds = Number(seconds) * (1 + Number(spread) * (next() - 0.5));
        if (durationSeconds > 0) await sleep(durationSeconds * 1000);
        endedAt = performance.now();
        return { ...RESULT, durationSeconds };
      },
      log: {
        info: (_, message) => message === "connected to the learner" && connected(),
        warn: (fields, message) => process.stderr.write(`${message} ${JSON.stringify(fields)}\n`),
      },
    });
    clients.push(client);
    void client.run();
  });
}

async function startInTurn(waiting: number[]): Promise<void> {
  for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) await startActor(index);
}

let [since, cpu] = [performance.now(), process.cpuUsage()];
process.on("message", (message) => {
  if (message === "begin") {
    begun = true;
    for (const client of clients) client.offer();
  } else if (message === "count") {
    [waits, starts] = [[], {}];
    [since, cpu] = [performance.now(), process.cpuUsage()];
  } else {
    const { user, system } = process.cpuUsage(cpu);
    const found: Found = { waits, starts, cores: (user + system) / 1000 / (performance.now() - since) };
    process.send!(found);
  }
});
process.on("SIGTERM", () => process.exit(0));

const waiting = Array.from({ length: Number(actors) }, (_, index) => Number(first) + index);
await Promise.all(Array.from({ length: CONNECTING }, () => startInTurn(waiting)));
process.send!("connected");
