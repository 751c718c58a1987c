/**
 * An actor: leases executions from the learner, runs them in sandboxes, hands in results.
 *
 *     node actor/main.ts --learner HOST:PORT --tls DIR --name NAME --task-dir DIR --python VENV --scratch DIR
 *         [--slots N] [--cpus 0,2-3] [--isolation namespaces|landlock] [--allow-no-isolation] [--warm numpy,pandas]
 *
 * --warm: modules that sandboxes import before any program comes; without it those that programs use most.
 * SIGTERM or SIGINT: takes no more, finishes, hands in, exits 0; a second one: stops at once. Exit status 0 drained,
 * idle or stopped, 1 failed, 2 bad arguments. Logs are JSON lines on stderr; LOG_LEVEL sets how many.
 */
import { basename } from "node:path";
import { parseArgs } from "node:util";
import { pino } from "pino";
import { ActorClient, type Lease } from "./client.ts";
import { ActorError } from "./errors.ts";
import { parseCpus, parseLevel, pythonOf } from "./exec.ts";
import { type ExecutionResult, execute, lostResult, type Progress } from "./execution.ts";
import { describeIsolation, startIsolated } from "./isolation.ts";
import { limitsOf } from "./limits.ts";
import { Slots, shareCpus } from "./slots.ts";
import { findPublicData } from "./tasks.ts";

const OPTIONS = {
  learner: { type: "string" },
  tls: { type: "string" },
  name: { type: "string" },
  "task-dir": { type: "string" },
  python: { type: "string" },
  scratch: { type: "string" },
  slots: { type: "string", default: "1" },
  cpus: { type: "string" },
  isolation: { type: "string" },
  warm: { type: "string" },
  "allow-no-isolation": { type: "boolean", default: false },
} as const;

function configuration() {
  let values: ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>["values"];
  try {
    values = parseArgs({ options: OPTIONS }).values;
  } catch (cause) {
    throw new ActorError("arguments", (cause as Error).message.split(". ")[0]!, cause);
  }
  for (const name of ["learner", "tls", "name", "task-dir", "python", "scratch"] as const)
    if (!values[name]) throw new ActorError("arguments", `--${name} is missing`);
  const slots = Number(values.slots);
  if (!Number.isInteger(slots) || slots < 1 || slots > 256)
    throw new ActorError("arguments", `--slots is ${values.slots}, must be a whole number from 1 to 256`);
  if (!/^.+:\d{1,5}$/.test(values.learner!))
    throw new ActorError("arguments", `--learner is ${values.learner}, must be HOST:PORT`);
  return {
    address: values.learner!,
    tlsDirectory: values.tls!,
    name: values.name!,
    taskDirectory: values["task-dir"]!,
    environment: values.python!,
    scratch: values.scratch!,
    slots,
    cpus: parseCpus(values.cpus),
    level: parseLevel(values.isolation),
    allowNoIsolation: values["allow-no-isolation"]!,
    warm: values.warm?.split(",").filter(Boolean),
  };
}

async function main(): Promise<void> {
  const config = configuration();
  // Nothing may wait for a parent that is gone. (Sandboxes end with us, by their parent-death signal.)
  process.on("disconnect", () => process.exit(1));
  if (process.connected === false) process.exit(1); // it was gone before we could listen
  let log = pino({ level: process.env.LOG_LEVEL || "info", base: { actor: config.name } }, pino.destination(2));

  const python = pythonOf(config.environment);
  const inputs = () => findPublicData(config.taskDirectory);
  const sandboxOptions = {
    python,
    warm: config.warm,
    onLog: (line: string) => log.warn({ line }, "the sandbox printed"),
  };
  const { sandbox: first, refused } = await startIsolated({
    ...sandboxOptions,
    ...shareCpus(config.cpus, 0, config.slots),
    level: config.level,
    allowNoIsolation: config.allowNoIsolation,
    inputs: await inputs(),
    space: `${config.scratch}/slot-0`,
  });
  const { level, ...facts } = first.info;
  if (level === "none") log = log.child({ isolation: "NO ISOLATION: programs run with all rights of this user" });
  for (const [tried, reason] of Object.entries(refused))
    log.warn({ isolation: tried, reason }, "isolation level refused");
  log.info({ isolation: level, ...facts, slots: config.slots }, describeIsolation(first.info));

  const { scratch, cpus } = config;
  const onBroken = (slot: number, error: Error) => log.error({ slot, error: error.message }, "a sandbox did not start");
  const slots = new Slots({ ...sandboxOptions, level, count: config.slots, scratch, cpus, inputs, onBroken }, first);
  await slots.start();

  const run = (lease: Lease, signal: AbortSignal, onProgress: (progress: Progress) => void): Promise<ExecutionResult> =>
    slots
      .use(lease.task ?? "", (sandbox) =>
        execute(
          sandbox,
          {
            task: lease.task ?? "",
            program: lease.program ?? new Uint8Array(),
            nonce: lease.markerNonce ?? "",
            limits: limitsOf(lease.limits ?? {}),
            seed: Number(lease.seed ?? 0),
          },
          { signal, onProgress },
        ),
      )
      .catch((error: Error) => lostResult(error.message));
  const { address, tlsDirectory, name } = config;
  const client = new ActorClient({
    ...{ address, tlsDirectory, name, slots: config.slots, isolationLevel: level, log, execute: run },
    pythonDigest: basename(config.environment),
    versions: first.info.versions,
  });

  let signals = 0;
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.on(signal, () => (++signals === 1 ? client.drain(signal) : client.stop()));
  process.send?.({ type: "ready", level });
  try {
    const reason = await Promise.race([client.run(), slots.failure]);
    log.info({ reason }, "the actor ends");
  } finally {
    client.stop();
    await slots.stop();
  }
}

try {
  await main();
  process.exit(0);
} catch (error) {
  const { code, message } = error as ActorError;
  process.stderr.write(`${JSON.stringify({ level: 60, time: Date.now(), code, msg: message })}\n`);
  process.exit(code === "arguments" || code === "task" || code === "isolation" ? 2 : 1);
}
