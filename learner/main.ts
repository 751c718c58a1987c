/**
 * The learner process: reads its configuration, wires the parts, trains, stops.
 *
 *     node learner/main.ts --run DIR --listen HOST:PORT --metrics-listen HOST:PORT --tls DIR --task-dir DIR
 *         [--run-id ID] [--manifest FILE] [--model-dir DIR] [--device auto|cpu|cuda:N] [--memory-bytes N] [--stay]
 *         [--termination-log FILE] [--replay STORE]
 *
 * In a folder that `longrun evaluate` made (it has a policies.json) nothing is trained: the policies that it names are
 * evaluated.
 *
 * --manifest: goes by this manifest and keeps it in the run folder; what cannot change in a run that has begun must be as
 * it was. --stay: serves status and metrics on after success, until SIGTERM; a run that has succeeded is not begun again.
 * A failure ends the process, so that it is restarted and goes on from the newest checkpoint.
 *
 * Exit status: 0 done, or stopped by SIGTERM or SIGINT (the run folder holds all that is needed to go on), 1 failed,
 * 2 bad input; with --stay one for each kind of failure (proto/exit-status.ts). A parent that gave an IPC channel is told
 * where it listens, and the learner ends with that parent.
 */
import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { policyFolder } from "../crds/policy.ts";
import { ManifestError, type TrainingRun } from "../crds/trainingrun.ts";
import { limitsOfTask } from "../proto/execution.ts";
import { EXIT_STATUS } from "../proto/exit-status.ts";
import { Checkpoints, checkBase, loadCheckpoint, loadFolder, type TrainerState } from "./checkpoints.ts";
import { startEngine } from "./engine/engine.ts";
import { checkLengths } from "./engine/fit.ts";
import { readConfig, readTokenizer } from "./engine/model/folder.ts";
import { modelIdentity } from "./engine/model/identity.ts";
import { MappedWeights } from "./engine/model/mapped.ts";
import { adapterOf, COMPUTE } from "./engine-options.ts";
import { evaluatePolicies, type Policies, readPolicies } from "./evaluation/policies.ts";
import { exitStatusOf, failureKind, type RunStage } from "./failures.ts";
import { Fence } from "./fence.ts";
import { Grades } from "./grades.ts";
import { rewardOrderFault } from "./grading/reward.ts";
import { Health } from "./health.ts";
import { Iterations } from "./iterations.ts";
import { createLog, type Logger } from "./log.ts";
import { readManifest, writeManifest } from "./manifest.ts";
import { type MetricsServer, serveMetrics } from "./metrics/http.ts";
import type { IterationMetrics } from "./metrics/iteration.ts";
import { MetricsFile } from "./metrics/jsonl.ts";
import { observeLive } from "./metrics/live.ts";
import { LearnerMetrics } from "./metrics/prometheus.ts";
import { newSummary, type RunSummary, readSummary } from "./metrics/summary.ts";
import { TensorBoardFile } from "./metrics/tensorboard.ts";
import { defaultTerminationLog, type Options, parseOptions } from "./options.ts";
import { Phases } from "./phases.ts";
import { place } from "./placement.ts";
import { readCorpus } from "./pretrain/facts.ts";
import type { RunProgress } from "./progress.ts";
import { recordedBatches } from "./replay.ts";
import { reportPage } from "./report/serve.ts";
import { ReportWriter } from "./report/writer.ts";
import { deviationLimits } from "./rl/deviation.ts";
import { checkInstrumenter } from "./rollout/instrument-policy.ts";
import { Rollout } from "./rollout/rollout.ts";
import { packagesOf, readPromptTask } from "./rollout/snippet.ts";
import { type Run, waitingOf } from "./run.ts";
import { RunFiles } from "./run-files.ts";
import { type LearnerServer, startServer } from "./server/server.ts";
import { Phase, StatusBoard } from "./server/status.ts";
import { reasonToStop } from "./stopping.ts";
import { StoreError } from "./store/errors.ts";
import { MAX_DISRUPTIONS, openStore, type Store } from "./store/store.ts";
import { SuspendedError, Suspension } from "./suspension.ts";
import { openTask, type Task } from "./tasks/task.ts";
import { train } from "./train.ts";
import { versions } from "./versions.ts";

/** The kubelet reads no more of a termination message than 4096 bytes. */
const TERMINATION_CHARACTERS = 1000;
/** `learner.leaseSlackSeconds` where the manifest has none. */
const LEASE_SLACK_SECONDS = 300;

/** What every way through the process uses. */
interface Process {
  options: Options;
  manifest: TrainingRun;
  task: Task;
  store: Store;
  status: StatusBoard;
  suspension: Suspension;
  metrics: LearnerMetrics;
  metricsServer: MetricsServer;
  health: Health;
  log: Logger;
  /** SIGTERM or SIGINT. */
  signal: AbortSignal;
}

async function main(): Promise<number> {
  const stopping = new AbortController();
  const stop = () => stopping.abort(new Error("the learner was asked to stop"));
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  process.once("disconnect", () => process.exit(0));
  if (process.connected === false) process.exit(0); // the parent was gone before we could listen

  let terminationLog = defaultTerminationLog();
  let log = createLog("learner");
  let stay = false;
  let stage: RunStage = "firstStart";
  try {
    const options = parseOptions(process.argv.slice(2));
    ({ terminationLog, stay } = options);
    const status = new StatusBoard();
    const health = new Health(() => Object.keys(Phase)[status.current.phase ?? 0] ?? "");
    const metrics = new LearnerMetrics();
    const metricsServer = await serveMetrics(options.metricsListen, metrics.registry, health, {
      "/report": (query) => reportPage(options.run, status.current, query),
    });
    const manifest = readManifest(options.run, options.manifest);
    log = log.child({ run: options.runId ?? manifest.metadata.name });
    const task = openTask(options.taskDir, manifest.spec.tasks[0]);
    const fault = rewardOrderFault(manifest.spec.algorithm, task.grader);
    if (fault !== undefined) throw new ManifestError([fault]);

    // From here on this process is the one that writes.
    writeManifest(options.run, manifest);
    const fence = Fence.take(options.run, `${hostname()}/${process.pid}`);
    const { leaseSeconds, leaseGraceSeconds, maxAttempts } = manifest.spec.learner;
    // No default of the schema: that would change the manifests of runs that go on, and restart their learners.
    const { leaseSlackSeconds = LEASE_SLACK_SECONDS, maxDisruptions = MAX_DISRUPTIONS } = manifest.spec.learner;
    const store = openStore(join(options.run, "store.sqlite"), {
      ...{ leaseSeconds, leaseGraceSeconds, maxAttempts, maxDisruptions },
      longestSeconds: task.spec.executionTimeoutSeconds + leaseSlackSeconds,
      checkFence: () => fence.check(),
    });
    const parts = { options, manifest, task, store, status, metrics, metricsServer, health, log };
    const it = { ...parts, suspension: new Suspension(), signal: stopping.signal };
    const summary = await readSummary(options.run);
    if (summary) stage = "restart";
    const startedAt = summary ? Date.parse(summary.startedAt) : Date.now();
    observeLive(metrics.registry, {
      status,
      checkpoint: () => store.checkpoints()[0],
      startedAt,
      directory: options.run,
      tlsDirectory: options.tls,
    });
    const reason =
      options.stay && summary?.state === "succeeded" && reasonToStop(linesOf(store), manifest.spec.stopping);
    return reason ? await stayFinished(it, summary?.message ?? reason) : await learn(it, summary);
  } catch (error) {
    const status = exitStatusOf(error, stage, stay);
    if (status !== EXIT_STATUS.input) log.error({ err: error }, "the run failed");
    return refuse((error as Error).message, terminationLog, status);
  }
}

/** From an opened task to the end of the run. */
async function learn(it: Process, earlier: RunSummary | undefined): Promise<number> {
  const { options, manifest, task, store, status, suspension, metrics, health, log, signal } = it;
  const { spec } = manifest;
  const directory = options.run;
  const policy = policyFolder(spec.model.policy, join(directory, "trainingrun.yaml"), options.modelDir);
  const tokenizer = readTokenizer(policy);
  const { maxPositions } = readConfig(policy);
  checkLengths(spec.model, maxPositions);
  checkInstrumenter(spec.model, maxPositions);
  const { device, microBatchTokens, rowTokens, ranks, checkpointing } = await place(policy, spec, it.options, it.log);
  const adapter = adapterOf(spec);
  const base = adapter && modelIdentity(new MappedWeights(policy));
  const engine = await startEngine({
    ...{ model: policy, device, microBatchTokens, rowTokens, workers: ranks, adapter, threads: spec.learner.threads },
    critic: spec.algorithm.baseline === "Critic",
    activationCheckpointing: checkpointing ? "Always" : "Never",
    compute: COMPUTE[spec.learner.compute],
  });
  const fresh: Omit<TrainerState, "digest"> = {
    ...{ iteration: 0, elapsedSeconds: 0 },
    ...(base && { base }),
  };
  let state = fresh;
  const { lineage, checkpoint } = await store.beginLineage(async (row) => {
    checkBase(join(directory, row.path), base, policy);
    const loaded = await loadCheckpoint(directory, engine, row, (reason) => log.warn(reason));
    state = { ...fresh, ...loaded };
    return loaded !== undefined;
  });
  if (checkpoint === undefined && spec.initFrom?.path !== undefined) {
    checkBase(spec.initFrom.path, base, policy);
    await engine.load(spec.initFrom.path);
  }
  health.loaded(engine);
  log.info({ lineage, iteration: state.iteration, checkpoint: checkpoint?.path }, "the run begins");

  const lines = linesOf(store);
  const newest = lines.at(-1);
  if (newest) metrics.show(newest);
  const metricsFile = await MetricsFile.open(join(directory, "metrics.jsonl"), state.iteration);
  // A crash between the store's commit and the line: the store has it.
  for (const line of lines) if (line.iteration > (metricsFile.last?.iteration ?? 0)) await metricsFile.append(line);
  const tensorBoard = await TensorBoardFile.open(join(directory, "tensorboard"), lines);

  const { completed, queued, running, lost, discarded } = store.totals();
  const rollout = new Rollout({
    engine,
    store,
    task: readPromptTask(task, spec.prompts.dataSnippetRows, packagesOf(spec)),
    spec,
    encode: (messages) => tokenizer.encodeChat(messages),
    decode: (tokens) => tokenizer.decode(tokens),
    nextNumber: completed + queued + running + lost + discarded + 1,
    signal: AbortSignal.any([signal, suspension.signal]),
  });
  metrics.continueFrom(countsOf(store));
  const server = await serve(it);
  suspension.signal.addEventListener("abort", () => {
    log.info(suspension.request, "asked to suspend");
    server.drain(suspension.signal.reason.message);
  });
  const report = new ReportWriter({ runDirectory: directory, onError: (message) => log.warn(message) });
  const corpus = readCorpus(policy, task.name);
  const progress: RunProgress = { state, lines };
  const phases = new Phases({ status, progress, signal, suspended: suspension.signal });
  const grades = new Grades({ store, task, algorithm: spec.algorithm, metrics, log });
  const { keepLast } = spec.learner.checkpoint;
  const checkpoints = new Checkpoints({ directory, engine, store, status, keepLast });
  const files = new RunFiles({
    ...{ directory, task, store, server, status, progress, metricsFile, tensorBoard, metrics, report },
    summary: { ...(earlier ?? newSummary(corpus?.summary, versions())), state: "running", message: "" },
  });
  const iterations = new Iterations({
    ...{ spec, task, store, server, progress, phases, grades, checkpoints, files, metrics, log },
    ...{ isReplay: options.replay !== undefined, corpus: corpus?.hashes },
  });
  const run: Run = {
    ...{ directory, spec, task, engine, rollout, server, grades, progress, phases, iterations },
    ...{ store, checkpoints, files, waiting: waitingOf(spec, options.stay, phases.stop) },
    deviationLimits: deviationLimits(device),
    recorded: options.replay === undefined ? undefined : recordedBatches(options.replay),
  };
  status.update({ iteration: state.iteration + 1, checkpoint });
  const counting = setInterval(() => {
    metrics.observeExecutions(countsOf(store));
    metrics.observeActors(server.actors());
  }, 1000);

  if (files.summary.evaluation.settings) files.announceEvaluation(files.summary.evaluation);
  const end = await endOf(run, it, server, readPolicies(directory));
  clearInterval(counting);
  if (end.state === "fenced") {
    // Another learner has the run: not a word more, neither to the disk nor to the controller.
    await server.close();
    return refuse(end.message, options.terminationLog, end.exitStatus);
  }
  log.info({ state: end.state }, end.message);
  await files.updateSummary({ state: end.state, message: end.message }).catch((error: Error) => {
    // What stopped the run, a full disk say, may stop its last words too.
    log.error({ err: error }, "summary.json could not be written");
  });
  // The learner that goes on finds its actors with what they run, and makes the report anew.
  const goesOn = end.state === "stopped" || (end.state === "failed" && options.stay);
  if (!goesOn) {
    server.drain(end.message);
    await report.close();
  }
  health.over();
  if (end.state === "failed" && options.stay) {
    // No last status: whether the run has failed for good is the controller's to say.
    await server.close();
    return refuse(end.message, options.terminationLog, end.exitStatus);
  }
  await metricsFile.close();
  await tensorBoard.close();
  await finish(it, server, end);
  if (end.exitStatus !== 0) refuse(end.message, options.terminationLog);
  return end.exitStatus;
}

interface End {
  state: RunSummary["state"] | "fenced";
  message: string;
  phase: number;
  exitStatus: number;
}

/**
 * Trains, or evaluates `policies`, and says what it came to. A suspended run has its last finished iteration on disk then;
 * one that is stopped has it too, unless it is stopped in the middle of an update.
 */
async function endOf(
  run: Run,
  { options, store, suspension, signal, log }: Process,
  server: LearnerServer,
  policies: Policies | undefined,
): Promise<End> {
  try {
    const toDisk = () => run.checkpoints.bringToDisk(run.progress.state);
    const work = policies ? evaluatePolicies(run, policies, (folder) => loadFolder(run.engine, folder)) : train(run);
    const message = await work.catch(async (error: unknown) => {
      if (policies) throw error;
      // Of any other end the weights may be ahead of what the store has.
      if (error === signal.reason && run.phases.isBetweenUpdates) await toDisk();
      if (!(error instanceof SuspendedError) || signal.aborted) throw error;
      await toDisk();
      await server.waitForHandIns(suspension.request?.drainSeconds ?? 0, signal);
      throw error;
    });
    return { state: "succeeded", message, phase: Phase.SUCCEEDED, exitStatus: 0 };
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof SuspendedError) suspension.giveBack(store.leases);
    if (error instanceof StoreError && error.code === "fenced")
      return {
        ...{ state: "fenced", message, phase: Phase.STOPPED },
        exitStatus: exitStatusOf(error, "training", options.stay),
      };
    if (signal.aborted || error instanceof SuspendedError)
      return { state: "stopped", message, phase: Phase.STOPPED, exitStatus: 0 };
    log.error({ err: error }, "the run failed");
    const full = failureKind(error, "training") === "volumeFull";
    const remedy = options.stay ? "" : ": free space or enlarge the volume, then resume";
    const said = full ? `the disk of ${options.run} is full (${message})${remedy}` : message;
    const exitStatus = exitStatusOf(error, "training", options.stay);
    return { state: "failed", message: said, phase: Phase.FAILED_RUN, exitStatus };
  }
}

/** A run that has succeeded before: says so at once, loads nothing and trains nothing. */
async function stayFinished(it: Process, message: string): Promise<number> {
  const { store, status, metrics, health, log } = it;
  const lines = linesOf(store);
  const newest = lines.at(-1);
  if (newest) metrics.show(newest);
  store.continueLineage();
  health.over();
  const server = await serve(it);
  server.drain(message);
  const [checkpoint] = store.checkpoints();
  status.update({ iteration: lines.length, iterationJson: JSON.stringify(newest ?? {}), checkpoint });
  log.info({ iterations: lines.length }, "the run has succeeded before");
  await finish(it, server, { message, phase: Phase.SUCCEEDED });
  return 0;
}

async function serve(it: Process): Promise<LearnerServer> {
  const { options, manifest, task, store, status, suspension, metricsServer, health, log } = it;
  const { spec } = manifest;
  const limits = { ...limitsOfTask(task.spec), submissionBytes: task.submissionBytes };
  const server = await startServer({
    store,
    status,
    address: options.listen,
    tlsDirectory: options.tls,
    limitsOf: () => limits,
    // Only what was asked for: runs of 0.1 have images and names of their own.
    packages: spec.actors.packages && !spec.prompts.packages ? packagesOf(spec) : [],
    log,
    suspend: (request) => suspension.ask(request),
    heartbeatSeconds: spec.learner.heartbeatSeconds,
    idleSeconds: spec.actors.idleSeconds,
  });
  status.update({
    iterations: spec.stopping.iterations,
    lineage: String(store.lineage),
    reportPath: join(options.run, "report.html"),
  });
  health.listening();
  process.send?.({ type: "listening", port: server.port, metricsPort: metricsServer.port });
  return server;
}

/** The last status goes out, a suspension is answered; with `--stay` both are served until SIGTERM. */
async function finish(it: Process, server: LearnerServer, end: { message: string; phase: number }): Promise<void> {
  const { options, store, status, suspension, metricsServer, signal } = it;
  // The answer first: a watcher may go at the final status.
  const running = suspension.givenBack ?? store.leases.running().length;
  suspension.settle({ checkpoint: store.checkpoints()[0], running });
  // Or actors would run programs to their end of which nobody takes the result.
  if (end.phase === Phase.SUCCEEDED) store.events.emit("revoked", store.leases.running(), "the run is over");
  status.update({ phase: end.phase, message: end.message });
  if (options.stay && !signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  await server.close();
  await metricsServer.close();
  store.close();
}

const countsOf = (store: Store) => ({ ...store.totals(), disrupted: store.leases.disruptions() });

const linesOf = (store: Store): IterationMetrics[] =>
  store.iterationRows().map((row) => row.metrics as unknown as IterationMetrics);

/** Says why the process ends: on stderr, and as one line in the container's status. @returns the exit status */
function refuse(message: string, terminationLog: string | undefined, exitStatus = 1): number {
  process.stderr.write(`${message}\n`);
  try {
    if (terminationLog) writeFileSync(terminationLog, message.replaceAll("\n", "; ").slice(0, TERMINATION_CHARACTERS));
  } catch (error) {
    process.stderr.write(`${terminationLog} cannot be written: ${(error as Error).message}\n`);
  }
  return exitStatus;
}

process.exitCode = await main();
// Worker threads hold nothing that is not on the disk.
process.exit();
