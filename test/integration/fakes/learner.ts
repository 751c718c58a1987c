/**
 * A fake of learner/main.ts for tests of the local backend: serves the real status stream over real TLS, counts iterations in the run
 * folder instead of training, and fails as FAKE_LEARNER says.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { serverCredentials } from "../../../proto/channel.ts";
import { channelOptions, LearnerStatusService, messages, type StatusMessage } from "../../../proto/service.ts";

interface Behaviour {
  iterations: number;
  iterationSeconds: number;
  /** Exits with this status before it listens. */
  exitAtStart?: number;
  /** Kills itself while this iteration runs, once. */
  dieInIteration?: number;
  /** Reports that the run failed in this iteration. */
  failInIteration?: number;
  /** Does not end its first iteration before these logs have this many lines. */
  awaitLines?: Record<string, number>;
  /** Ignores SIGTERM. */
  stubborn?: boolean;
  /** How long an evaluation takes. */
  evaluateSeconds?: number;
  /** Queued executions in the status. */
  queued?: number;
}

const behaviour: Behaviour = { iterations: 3, iterationSeconds: 0.1, ...JSON.parse(process.env.FAKE_LEARNER ?? "{}") };
const { values } = parseArgs({
  options: {
    run: { type: "string" },
    listen: { type: "string" },
    "metrics-listen": { type: "string" },
    tls: { type: "string" },
    "task-dir": { type: "string" },
    replay: { type: "string" },
  },
});
const run = values.run!;
const stateFile = join(run, "fake-state.json");
const state: { iteration: number; starts: number; ports: string[] } = existsSync(stateFile)
  ? JSON.parse(readFileSync(stateFile, "utf8"))
  : { iteration: 0, starts: 0, ports: [] };

process.on("disconnect", () => process.exit(1));
if (process.connected === false) process.exit(1); // the parent ended before the listener was added
state.starts++;
state.ports.push(values.listen!);
if (behaviour.exitAtStart !== undefined) {
  writeFileSync(stateFile, JSON.stringify(state));
  process.stderr.write(`${JSON.stringify({ level: 60, msg: "the fake learner cannot start: check its input" })}\n`);
  process.exit(behaviour.exitAtStart);
}

const watchers = new Set<grpc.ServerWritableStream<unknown, StatusMessage>>();
let status: StatusMessage = { phase: messages.Phase.STARTING, iterations: behaviour.iterations };
const publish = (change: StatusMessage): void => {
  status = { ...status, ...change };
  for (const watcher of watchers) watcher.write(status);
};
const server = new grpc.Server(channelOptions());
server.addService(LearnerStatusService as unknown as grpc.ServiceDefinition, {
  watch: (call: grpc.ServerWritableStream<unknown, StatusMessage>) => {
    watchers.add(call);
    call.on("cancelled", () => watchers.delete(call));
    call.write(status);
  },
});
const port = await new Promise<number>((resolve, reject) =>
  server.bindAsync(values.listen!, serverCredentials(values.tls!), (error, bound) =>
    error ? reject(error) : resolve(bound),
  ),
);
process.send?.({ type: "plan", table: ["memory plan: 1.00 GB of 2.00 GB", "  weights  1.00 GB"] });
process.send?.({ type: "listening", port, metricsPort: port });

const finish = async (phase: number, exitStatus: number): Promise<never> => {
  writeFileSync(stateFile, JSON.stringify(state));
  const message = exitStatus === 0 ? "" : "the fake learner was told to fail";
  const figures = { samples: 4, validFraction: 0.5, meanScore: 1000, bestScore: 900, meanDurationSeconds: 1 };
  const evaluation = { before: figures, after: { ...figures, validFraction: 1, meanScore: 333 } };
  const states: Record<number, string> = {
    [messages.Phase.SUCCEEDED]: "succeeded",
    [messages.Phase.STOPPED]: "stopped",
  };
  writeFileSync(join(run, "summary.json"), JSON.stringify({ state: states[phase] ?? "failed", message, evaluation }));
  publish({ phase, message });
  for (const watcher of watchers) watcher.end();
  await sleep(50);
  process.exit(exitStatus);
};
if (behaviour.stubborn) process.on("SIGTERM", () => {});
else process.on("SIGTERM", () => void finish(messages.Phase.STOPPED, 0));

if (existsSync(join(run, "policies.json"))) {
  publish({
    phase: messages.Phase.FINAL_EVALUATION,
    phaseDone: 1,
    phaseTotal: 4,
    executions: { queued: 1, running: 0 },
  });
  await sleep((behaviour.evaluateSeconds ?? 0.1) * 1000);
  writeFileSync(join(run, "evaluation.md"), "# Evaluation\n\nA fake table.\n");
  await finish(messages.Phase.SUCCEEDED, 0);
}

const linesOf = (file: string): number => (existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0);

while (state.iteration < behaviour.iterations) {
  const iteration = state.iteration + 1;
  publish({
    phase: messages.Phase.EXECUTING,
    iteration,
    phaseDone: 0,
    phaseTotal: 4,
    executions: { queued: behaviour.queued ?? 1, running: 0 },
  });
  for (const [log, lines] of Object.entries(iteration === 1 ? (behaviour.awaitLines ?? {}) : {}))
    while (linesOf(join(run, "logs", log)) < lines) await sleep(20);
  await sleep(behaviour.iterationSeconds * 1000);
  if (behaviour.dieInIteration === iteration && state.starts === 1) {
    writeFileSync(stateFile, JSON.stringify(state));
    process.stderr.write("about to die\n");
    process.kill(process.pid, "SIGKILL");
  }
  if (behaviour.failInIteration === iteration) await finish(messages.Phase.FAILED_RUN, 1);
  state.iteration = iteration;
  const line = JSON.stringify({
    lineage: 1,
    iteration,
    samples: 4,
    validFraction: 0.5,
    meanScore: 1000 / iteration,
    bestScore: 900 / iteration,
    meanDurationSeconds: 1,
    launchedMeanDurationSeconds: 1.5,
    trainedMeanDurationSeconds: 1,
    kl: 0.001,
    seconds: 0.1,
    engineSeconds: { generating: 0.05, updating: 0.03, idlePrograms: 0.02 },
  });
  appendFileSync(join(run, "metrics.jsonl"), `${line}\n`);
  writeFileSync(stateFile, JSON.stringify(state));
  publish({ iterationJson: line, executions: { queued: 0, running: 0 } });
}
mkdirSync(join(run, "best"), { recursive: true });
writeFileSync(join(run, "best", "score.json"), JSON.stringify({ score: 300, metric: "MAE", iteration: 3 }));
writeFileSync(join(run, "best", "program.py"), 'print("fake")\n');
await finish(messages.Phase.SUCCEEDED, 0);
