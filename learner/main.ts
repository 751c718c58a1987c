/**
 * The learner process: reads its configuration, wires the parts, trains, stops.
 *
 *     node learner/main.ts --run DIR --listen HOST:PORT --metrics-listen HOST:PORT --tls DIR --task-dir DIR [--replay STORE]
 *
 * Exit status: 0 done, or stopped by SIGTERM or SIGINT (the run folder holds all that is needed to go on), 1 failed,
 * 2 bad input. A parent that gave an IPC channel is told where it listens, and the learner ends with that parent.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ManifestError, parseTrainingRun, type TrainingRun } from "../crds/trainingrun.ts";
import { loadCheckpoint } from "./checkpoint.ts";
import { rewardOrderFault } from "./grading/reward.ts";
import { openTask, type Task } from "./grading/task.ts";
import { createLog, type Logger } from "./log.ts";
import { serveMetrics } from "./metrics/http.ts";
import type { IterationMetrics } from "./metrics/iteration.ts";
import { MetricsFile } from "./metrics/jsonl.ts";
import { LearnerMetrics } from "./metrics/prometheus.ts";
import { type RunSummary, readSummary } from "./metrics/summary.ts";
import { ModelError } from "./model/errors.ts";
import { readTokenizer } from "./model/folder.ts";
import { startEngine } from "./ppo/engine.ts";
import { type Corpus, readCorpus } from "./pretrain/facts.ts";
import { recordedBatches } from "./replay.ts";
import { ReportWriter } from "./report/writer.ts";
import { RolloutError } from "./rollout/errors.ts";
import { Rollout } from "./rollout/rollout.ts";
import { readPromptTask } from "./rollout/snippet.ts";
import { Run } from "./run.ts";
import { startServer } from "./server/server.ts";
import { Phase, StatusBoard } from "./server/status.ts";
import { openStore } from "./store/store.ts";
import { TaskError } from "./tasks/errors.ts";
import { train } from "./train.ts";
import { versions } from "./versions.ts";

interface Options {
  run: string;
  listen: string;
  "metrics-listen": string;
  tls: string;
  "task-dir": string;
  replay?: string;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      run: { type: "string" },
      listen: { type: "string", default: "127.0.0.1:0" },
      "metrics-listen": { type: "string", default: "127.0.0.1:0" },
      tls: { type: "string" },
      "task-dir": { type: "string" },
      replay: { type: "string" },
    },
  });
  for (const name of ["run", "tls", "task-dir"] as const) {
    if (values[name] === undefined) return refuse(`--${name} is missing`);
  }
  const options = values as Options;

  const stopping = new AbortController();
  const stop = () => stopping.abort(new Error("the learner was asked to stop"));
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  process.once("disconnect", () => process.exit(0));
  if (process.connected === false) process.exit(0); // the parent was gone before we could listen

  const log = createLog("learner");
  const status = new StatusBoard();
  try {
    const manifest = readManifest(options.run);
    const task = openTask(options["task-dir"], manifest.spec.tasks[0]);
    const fault = rewardOrderFault(manifest.spec.algorithm, task.grader);
    if (fault !== undefined) return refuse(fault);
    return await learn(manifest, task, options, { log, status, signal: stopping.signal });
  } catch (error) {
    if (isBadInput(error)) return refuse((error as Error).message);
    log.error({ err: error }, "the run failed");
    return refuse((error as Error).message, 1);
  }
}

/** From an opened task to the end of the run. */
async function learn(
  manifest: TrainingRun,
  task: Task,
  options: Options,
  { log, status, signal }: { log: Logger; status: StatusBoard; signal: AbortSignal },
): Promise<number> {
  const { spec } = manifest;
  const directory = options.run;
  const tokenizer = readTokenizer(spec.model.policy);
  const engine = await startEngine({ model: spec.model.policy, threads: spec.learner.threads });
  const { leaseSeconds, leaseGraceSeconds, maxAttempts, heartbeatSeconds } = spec.learner;
  const store = openStore(join(directory, "store.sqlite"), { leaseSeconds, leaseGraceSeconds, maxAttempts });
  const fresh = { iteration: 0, klCoefficient: spec.algorithm.klCoefficient, elapsedSeconds: 0 };
  let state = fresh;
  const { lineage, checkpoint } = await store.beginLineage(async (row) => {
    const loaded = await loadCheckpoint(directory, engine, row, (reason) => log.warn(reason));
    state = loaded ?? fresh;
    return loaded !== undefined;
  });
  if (checkpoint === undefined && spec.initFrom?.path !== undefined) await engine.load(spec.initFrom.path);
  log.info({ lineage, iteration: state.iteration, checkpoint: checkpoint?.path }, "the run begins");

  const lines = store.iterationRows().map((row) => row.metrics as unknown as IterationMetrics);
  const metricsFile = await MetricsFile.open(join(directory, "metrics.jsonl"), state.iteration);
  // A crash between the store's commit and the line: the store has it.
  for (const line of lines) if (line.iteration > (metricsFile.last?.iteration ?? 0)) await metricsFile.append(line);

  const { completed, queued, running, lost, discarded } = store.totals();
  const rollout = new Rollout({
    engine,
    store,
    task: readPromptTask(task, spec.prompts.dataSnippetRows),
    spec,
    encode: (messages) => tokenizer.encodeChat(messages),
    decode: (tokens) => tokenizer.decode(tokens),
    nextNumber: completed + queued + running + lost + discarded + 1,
  });
  const metrics = new LearnerMetrics();
  const limits = task.spec;
  const server = await startServer({
    store,
    status,
    address: options.listen,
    tlsDirectory: options.tls,
    limitsOf: () => ({
      timeoutSeconds: limits.executionTimeoutSeconds,
      memoryBytes: limits.executionMemoryBytes,
      outputBytes: limits.outputBytes,
      keptOutputBytes: limits.keptOutputBytes,
      scratchBytes: limits.scratchBytes,
      scratchFiles: limits.scratchFiles,
      processes: limits.processes,
      submissionBytes: limits.submissionBytes,
    }),
    log,
    heartbeatSeconds,
    idleSeconds: spec.actors.idleSeconds,
  });
  const metricsServer = await serveMetrics(options["metrics-listen"], metrics.registry, () => ({
    healthy: !signal.aborted,
    message: Object.keys(Phase)[status.current.phase ?? 0],
  }));
  const report = new ReportWriter({ runDirectory: directory, onError: (message) => log.warn(message) });
  const corpus = readCorpus(spec.model.policy, task.name);
  const run = new Run({
    directory,
    spec,
    task,
    engine,
    store,
    server,
    status,
    rollout,
    metricsFile,
    metrics,
    report,
    log,
    signal,
    lines,
    state,
    summary: { ...((await readSummary(directory)) ?? newSummary(corpus)), state: "running", message: "" },
    recorded: options.replay === undefined ? undefined : recordedBatches(options.replay),
    corpus: corpus?.hashes,
  });
  status.update({
    iteration: state.iteration + 1,
    iterations: spec.stopping.iterations,
    lineage: String(lineage),
    reportPath: join(directory, "report.html"),
  });
  const counting = setInterval(() => metrics.observeExecutions(store.totals()), 1000);
  process.send?.({ type: "listening", port: server.port, metricsPort: metricsServer.port });

  let outcome: { state: RunSummary["state"]; message: string; phase: number; exitStatus: number };
  try {
    const message = await train(run);
    outcome = { state: "succeeded", message, phase: Phase.SUCCEEDED, exitStatus: 0 };
  } catch (error) {
    const message = (error as Error).message;
    if (signal.aborted) outcome = { state: "stopped", message, phase: Phase.STOPPED, exitStatus: 0 };
    else {
      log.error({ err: error }, "the run failed");
      outcome = { state: "failed", message, phase: Phase.FAILED_RUN, exitStatus: 1 };
    }
  }
  clearInterval(counting);
  log.info({ state: outcome.state }, outcome.message);
  await run.updateSummary({ state: outcome.state, message: outcome.message }).catch((error: Error) => {
    // What stopped the run, a full disk say, may stop its last words too.
    log.error({ err: error }, "summary.json could not be written");
  });
  server.drain(outcome.message);
  // A learner that is asked to stop does so at once: the report is made anew when the run goes on.
  if (outcome.state !== "stopped") await report.close();
  status.update({ phase: outcome.phase, message: outcome.message });
  await server.close();
  await metricsServer.close();
  await metricsFile.close();
  store.close();
  if (outcome.exitStatus !== 0) process.stderr.write(`${outcome.message}\n`);
  return outcome.exitStatus;
}

function readManifest(directory: string): TrainingRun {
  const path = join(directory, "trainingrun.yaml");
  if (!existsSync(path)) throw new ManifestError([`${path} is missing; --run names the folder of a run`]);
  return parseTrainingRun(readFileSync(path, "utf8"), path);
}

function newSummary(corpus: Corpus | undefined): RunSummary {
  const now = new Date().toISOString();
  return {
    state: "running",
    message: "",
    startedAt: now,
    updatedAt: now,
    iterations: 0,
    elapsedSeconds: 0,
    evaluation: {},
    ...(corpus && { corpus: corpus.summary }),
    versions: versions(),
  };
}

/** What the user gave cannot be used; trying again would not help. */
function isBadInput(error: unknown): boolean {
  const { code } = error as { code?: string };
  return (
    error instanceof ManifestError ||
    error instanceof TaskError ||
    error instanceof ModelError ||
    error instanceof RolloutError ||
    code === "listen"
  );
}

function refuse(message: string, exitStatus = 2): number {
  process.stderr.write(`${message}\n`);
  return exitStatus;
}

process.exitCode = await main();
// Worker threads hold nothing that is not on the disk.
process.exit();
