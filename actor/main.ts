/**
 * An actor leases executions from the learner, runs them in sandboxes and hands in the results.
 *
 * options.ts has its options.
 *
 * SIGTERM or SIGINT: the actor takes no more leases, finishes its programs, hands in and exits 0. A second signal: it gives back
 * running programs and stops. With LONGRUN_FINISH_SECONDS in its environment (not an option, because actors of earlier versions
 * would refuse it) it gives back unfinished programs after that time, and ends even without a learner. An actor that
 * `longrun run` or the controller started does not leave when idle: they decide the number of actors. In a pod it ends with status 1 if the
 * learner's name has not resolved for 60 s and no learner has welcomed it yet.
 * Exit status: 0 drained, idle or stopped; 1 failed; 2 bad arguments. Logs are JSON lines on stderr; LOG_LEVEL sets the level.
 */
import { basename } from "node:path";
import { pino } from "pino";
import { ActorClient } from "./client.ts";
import { ActorError } from "./errors.ts";
import { type ExecutionResult, execute, lostResult, type Progress } from "./execution.ts";
import { describeGpus } from "./gpus.ts";
import { startIsolated } from "./isolation.ts";
import { describeIsolation, layersOf } from "./layers.ts";
import { type Lease, requestOf } from "./lease.ts";
import { ActorMetrics, serveMetrics } from "./metrics.ts";
import { parseOptions } from "./options.ts";
import { Slots } from "./slots.ts";

/** A pod whose DNS is blocked ends before the controller would call its silent actor lost (180 s), so that its end says why. */
const NAME_SECONDS = 60;

async function main(): Promise<void> {
  const config = parseOptions(process.argv.slice(2));
  const { address, tlsDirectory, name, allowNoIsolation, startSeconds, restartSeconds } = config;
  // The actor must not outlive its parent. (Sandboxes end with the actor, by their parent-death signal.)
  process.on("disconnect", () => process.exit(1));
  if (process.connected === false) process.exit(1); // the parent ended before the listener was added
  // Handle signals from now on: process 1 of a container ignores unhandled ones. Without a client nothing has to be finished.
  let client: ActorClient | undefined;
  let signals = 0;
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.on(signal, () => {
      if (!client) process.exit(0);
      if (++signals === 1) client.terminate(signal);
      else client.giveBack(signal);
    });
  let log = pino(
    { level: process.env.LOG_LEVEL || "info", base: { run: config.runId, actor: name } },
    pino.destination(2),
  );

  const sandboxOf = async (slot: number) => ({
    ...(await config.sandboxOf(slot)),
    onLog: (line: string) => log.warn({ line }, "a sandbox printed"),
  });
  const { sandbox: first, refused } = await startIsolated({
    ...(await sandboxOf(0)),
    level: config.level,
    allowNoIsolation,
    startSeconds,
  });
  const { level, packages, versions, warm, landlockAbi, residentBytes, memoryBytes } = first.info;
  if (level === "none") log = log.child({ isolation: "NO ISOLATION: programs run with all rights of this user" });
  for (const [tried, reason] of Object.entries(refused))
    log.warn({ isolation: tried, reason }, "isolation level refused");
  const { applied, missing } = layersOf(first.info);
  const facts = { landlockAbi, versions, warm, residentBytes, memoryBytes, slots: config.slots };
  log.info({ isolation: level, applied, missing, ...facts }, describeIsolation(first.info));

  const gpus: string[][] = [first.info.gpus];
  const metrics = new ActorMetrics({
    slots: config.slots,
    isolationLevel: level,
    tlsDirectory,
    usableSlots: () => slots.usable,
    client: () => client?.state,
  });
  const metricsServer =
    config.metricsListen === undefined ? undefined : await serveMetrics(config.metricsListen, metrics.registry);
  if (metricsServer) log.info({ port: metricsServer.port }, "serves metrics");

  const slots = new Slots({
    count: config.slots,
    startSeconds,
    restartSeconds,
    // Each start probes the isolation again: a restarted sandbox may have a full disk or lack a layer.
    start: async (slot, seconds) => {
      const place = { ...(await sandboxOf(slot)), level, allowNoIsolation, startSeconds: seconds };
      const { sandbox } = await startIsolated(place);
      gpus[slot] = sandbox.info.gpus;
      return sandbox;
    },
    onChange: (slot, fault) => {
      if (fault) log.warn({ slot, error: fault.message }, "a sandbox broke; its slot takes no lease until it is back");
      else log.info({ slot }, "a sandbox is back");
      if (fault) metrics.broken();
      client?.offer();
    },
    onRetry: (slot, error) => log.error({ slot, error: error.message }, "a sandbox did not start"),
  });
  await slots.start(first);
  const withGpus = describeGpus(gpus);
  if (withGpus) log.info({ gpus }, withGpus);

  let warned = false;
  const warnOfMemory = (allowedBytes: number, memoryBytes = Number.POSITIVE_INFINITY) => {
    if (warned || allowedBytes <= memoryBytes) return;
    warned = true;
    log.warn(
      { allowedBytes, memoryBytes },
      "programs get less memory than allowed: the sandbox container's limit is low",
    );
  };
  const run = async (lease: Lease, signal: AbortSignal, onProgress: (progress: Progress) => void) => {
    let result: ExecutionResult;
    try {
      const request = requestOf(lease);
      result = await slots.use(request.task, async (sandbox, slot) => {
        warnOfMemory(request.limits.memoryBytes, sandbox.info.memoryBytes);
        return { ...(await execute(sandbox, request, { signal, onProgress })), slot };
      });
    } catch (error) {
      result = lostResult((error as Error).message);
    }
    metrics.executed(result);
    return result;
  };
  client = new ActorClient({
    address,
    tlsDirectory,
    name,
    slots: config.slots,
    isolationLevel: level,
    isolationMissing: missing,
    log,
    execute: run,
    usableSlots: () => slots.usable,
    maxExecutions: config.maxExecutions,
    finishSeconds: config.finishSeconds,
    ...(config.inPod && { nameSeconds: NAME_SECONDS }),
    leavesWhenIdle: !config.inPod && process.send === undefined,
    pythonDigest: basename(config.environment),
    versions: first.info.versions,
    packages,
  });

  process.send?.({ type: "ready", level });
  let failure: Error | undefined;
  slots.failure.catch((error: Error) => {
    failure = error;
    client.drain(error.message); // other slots finish their programs and hand in
  });
  try {
    const reason = await client.run();
    log.info({ reason }, "the actor ends");
  } finally {
    client.stop();
    metricsServer?.close();
    await slots.stop();
  }
  // Exit with 1 whatever the error's code is: arguments that worked at the start are not bad.
  if (failure) throw new ActorError("sandbox", failure.message, failure);
}

try {
  await main();
  process.exit(0);
} catch (error) {
  const { code, message } = error as ActorError;
  process.stderr.write(`${JSON.stringify({ level: 60, time: Date.now(), code, msg: message })}\n`);
  process.exit(["arguments", "input", "task", "isolation", "packages"].includes(code) ? 2 : 1);
}
