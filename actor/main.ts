/**
 * An actor: leases executions from the learner, runs them in sandboxes, hands in results.
 *
 *     node actor/main.ts --learner HOST:PORT --tls DIR --name NAME [--slots N] [--executions N] [--isolation namespaces|landlock]
 *         [--allow-no-isolation] [--start-seconds S] [--restart-seconds S] [--metrics-listen HOST:PORT] [--run-id ID], and
 *     on one machine, where it starts its sandboxes itself:
 *         --task-dir DIR --python VENV --scratch DIR [--cpus 0,2-3] [--gpus 0,1] [--warm numpy,pandas]
 *     in a pod, where each slot is a container (sandbox/listen.py):
 *         --sandboxes DIR --inputs TASK=PATH,…
 *
 * --sandboxes: slot I's zygote listens at DIR/slot-I/control.sock. --inputs: tasks' public data, as the sandboxes see it.
 * --warm: modules that sandboxes import before any program comes, in place of `WARM` (sandbox/warm.py).
 * --gpus: numbers of the NVIDIA GPUs that programs may use, /dev/nvidia0 is 0; each slot has its own where there are enough,
 * else slots share. Without it none. In a pod programs use those of their container.
 * --start-seconds: longest wait for a sandbox at the start, 120. --restart-seconds: longest wait for one that broke, 60;
 * 600 in a pod, where the kubelet pauses up to 300 s before it starts a container again. Meanwhile the slot takes no
 * lease; after that the actor drains and exits 1.
 * --metrics-listen: where Prometheus finds /metrics; nowhere without it.
 * --run-id: what log lines call the run, as the learner's and the controller's do.
 * --executions: leases after which the actor drains by itself: 1 gives each execution a pod of its own.
 * SIGTERM or SIGINT: takes no more, finishes, hands in, exits 0; a second one: gives back what it runs, and stops. With
 * LONGRUN_FINISH_SECONDS in its environment (no option: an actor of an earlier version would refuse it) it gives back
 * what is not finished by then, and ends without a learner. An actor that `longrun run` or the controller started does
 * not leave for idleness: they decide how many there are.
 * Exit status 0 drained, idle or stopped, 1 failed, 2 bad arguments. Logs are JSON lines on stderr; LOG_LEVEL sets how many.
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

async function main(): Promise<void> {
  const config = parseOptions(process.argv.slice(2));
  const { address, tlsDirectory, name, allowNoIsolation, startSeconds, restartSeconds } = config;
  // Nothing may wait for a parent that is gone. (Sandboxes end with us, by their parent-death signal.)
  process.on("disconnect", () => process.exit(1));
  if (process.connected === false) process.exit(1); // it was gone before we could listen
  // From now on, or process 1 of a container would not hear them: until there is a client, nothing has to be finished.
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
    ...{ level: config.level, allowNoIsolation, startSeconds },
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
    ...{ slots: config.slots, isolationLevel: level, tlsDirectory },
    usableSlots: () => slots.usable,
    client: () => client?.state,
  });
  const metricsServer =
    config.metricsListen === undefined ? undefined : await serveMetrics(config.metricsListen, metrics.registry);
  if (metricsServer) log.info({ port: metricsServer.port }, "serves metrics");

  const slots = new Slots({
    ...{ count: config.slots, startSeconds, restartSeconds },
    // Tried again each time: one that came back on a full disk, or without what it had, is none.
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
    ...{ address, tlsDirectory, name, slots: config.slots, isolationLevel: level, isolationMissing: missing },
    ...{ log, execute: run },
    usableSlots: () => slots.usable,
    maxExecutions: config.maxExecutions,
    finishSeconds: config.finishSeconds,
    leavesWhenIdle: !config.inPod && process.send === undefined,
    pythonDigest: basename(config.environment),
    versions: first.info.versions,
    packages,
  });

  process.send?.({ type: "ready", level });
  let failure: Error | undefined;
  slots.failure.catch((error: Error) => {
    failure = error;
    client.drain(error.message); // what other slots run is finished and handed in
  });
  try {
    const reason = await client.run();
    log.info({ reason }, "the actor ends");
  } finally {
    client.stop();
    metricsServer?.close();
    await slots.stop();
  }
  // Whatever its code: what worked at the start is no bad argument now.
  if (failure) throw new ActorError("sandbox", failure.message, failure);
}

try {
  await main();
  process.exit(0);
} catch (error) {
  const { code, message } = error as ActorError;
  process.stderr.write(`${JSON.stringify({ level: 60, time: Date.now(), code, msg: message })}\n`);
  process.exit(["arguments", "task", "isolation", "packages"].includes(code) ? 2 : 1);
}
