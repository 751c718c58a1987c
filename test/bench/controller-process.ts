/**
 * The controller of `bench controller` and `bench active`, in a process of its own with `--expose-gc`. Either its learners are dialled at
 * ports that the parent names, or all report that one execution runs and have no process. The parent requests its memory use by a message.
 */
import { KubeConfig } from "@kubernetes/client-node";
import type { Context, Log } from "../../controller/operator/context.ts";
import { DEFAULT_SETTINGS } from "../../controller/operator/desired/settings.fixture.ts";
import { startOperator } from "../../controller/operator/operator.ts";
import type { LearnerObserved } from "../../controller/operator/parts/learner/learner-link.ts";
import { parseLearnerStatus } from "../../controller/operator/parts/learner/learner-status.ts";
import { messages, type StatusReceived } from "../../proto/service.ts";

const [kubeconfig, qps, workers, learners] = process.argv.slice(2);
const config = new KubeConfig();
config.loadFromFile(kubeconfig!);

const said = { phase: messages.Phase.EXECUTING, iteration: 1, executions: { running: 1 } };
const status = parseLearnerStatus(messages.Status.decode(messages.Status.encode(said).finish()) as StatusReceived);
const linked = new Map<string, LearnerObserved>();
const links: Context["links"] & { close(): void } = {
  ensure: (key) => {
    if (!linked.has(key)) linked.set(key, { connected: true, sinceMs: Date.now(), status });
  },
  drop: (key) => void linked.delete(key),
  observed: (key) => linked.get(key),
  drainActors: async () => [],
  suspend: async () => ({ checkpoint: undefined, running: 0 }),
  reportTerminations: async () => 0,
  close() {},
};
const ports = new Map<string, number>();
const dial = async (key: string) => {
  const port = ports.get(key);
  if (port === undefined) throw new Error("connection refused");
  return { address: `127.0.0.1:${port}`, close() {} };
};
/** Messages about runs only reflect the stub's actions and are dropped; failures are not. */
const log: Log = {
  debug() {},
  info() {},
  warn: (fields, message) => "error" in fields && process.stderr.write(`${message} ${JSON.stringify(fields)}\n`),
};

const operator = await startOperator({
  ...{ config, settings: DEFAULT_SETTINGS, log, inCluster: true },
  ...(learners === "real" ? { dial } : { links }),
  ...{ qps: Number(qps), burst: 2 * Number(qps), workers: Number(workers) },
  metricsAddress: { host: "127.0.0.1", port: 0 },
});
await operator.ready();
process.send!({ metricsPort: operator.metricsPort });
process.on("message", (said: "memory" | { ports: Record<string, number> }) => {
  if (said !== "memory") {
    for (const [key, port] of Object.entries(said.ports)) ports.set(key, port);
    return;
  }
  globalThis.gc!();
  const { heapUsed, rss } = process.memoryUsage();
  process.send!({ heapUsed, rss });
});
process.on("disconnect", () => process.exit(0));
