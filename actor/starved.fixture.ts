/**
 * Repeatedly runs a program that keeps its processor busy, with a zygote that gets hardly any of that processor: this process and the
 * zygote are in one scheduling group of the lowest weight, while programs, as sessions of their own, are in groups of the normal weight.
 * Prints durations and processor seconds as JSON. Start it as a session of its own.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { execute } from "./execution.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { ensurePythonEnvironment } from "./python-env.ts";
import { Sandbox } from "./sandbox.ts";

const space = process.argv[2]!;
const cpu = /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))![1];
const { python } = await ensurePythonEnvironment();
writeFileSync("/proc/self/autogroup", "19");
const sandbox = await Sandbox.start({ python, level: "none", inputs: {}, space, cpus: [Number(cpu)], warm: [] });
const program = Buffer.from("total = 0\nfor i in range(2_000_000):\n    total += i\n");
const found = [];
for (let i = 0; i < 5; i++) {
  const { outcome, durationSeconds, cpuSeconds } = await execute(sandbox, {
    ...{ task: "t", program, nonce: "", limits: { ...DEFAULT_LIMITS, timeoutSeconds: 30 }, seed: 0 },
  });
  found.push({ outcome, durationSeconds, cpuSeconds });
}
await sandbox.stop();
process.stdout.write(JSON.stringify(found));
