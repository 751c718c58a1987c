/**
 * Many actors in one process, with the real client and no sandbox: each program takes the same time and prints nothing.
 * `node simulated-actors.ts ADDRESS TLS_FOLDER ACTORS SECONDS`; tells its parent when all are connected, and, asked for
 * them, every time from a program's end to the same actor's next lease, in seconds.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ActorClient } from "../../actor/client.ts";
import type { ExecutionResult } from "../../actor/execution.ts";
import { uniforms } from "../../learner/rng.ts";

const [address, tlsDirectory, actors, seconds] = process.argv.slice(2) as [string, string, string, string];
const next = uniforms(0, "bench", "simulated actors");
const waits: number[] = [];
const RESULT: Omit<ExecutionResult, "durationSeconds"> = {
  ...{ outcome: "completed", exitStatus: 0, signal: 0, cpuSeconds: 0, peakMemoryBytes: 0, markers: [] },
  ...{ forgedMarkers: 0, imitatedMarkers: 0, terminalOutput: Buffer.alloc(0), outputBytes: 0, detail: "" },
};

let connected = 0;
for (let index = 0; index < Number(actors); index++) {
  let endedAt: number | undefined;
  const client = new ActorClient({
    address,
    tlsDirectory,
    name: `simulated-${index}`,
    slots: 1,
    isolationLevel: "simulated",
    execute: async () => {
      if (endedAt !== undefined) waits.push((performance.now() - endedAt) / 1000);
      // Spread over half of it, or all would end at the same moment for ever.
      const durationSeconds = Number(seconds) * (0.75 + 0.5 * next());
      if (durationSeconds > 0) await sleep(durationSeconds * 1000);
      endedAt = performance.now();
      return { ...RESULT, durationSeconds };
    },
    log: {
      info: (_, message) => {
        if (message === "connected to the learner" && ++connected === Number(actors)) process.send!("connected");
      },
      warn: (fields, message) => process.stderr.write(`${message} ${JSON.stringify(fields)}\n`),
    },
  });
  void client.run();
  if (index % 20 === 19) await sleep(50); // not a thousand handshakes at once
}
process.on("message", () => process.send!(waits));
process.on("SIGTERM", () => process.exit(0));
