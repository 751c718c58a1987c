/**
 * The learner process: reads its configuration, wires the parts, trains, stops.
 *
 * options.ts has its options.
 *
 * In a folder that `longrun evaluate` made (it has a policies.json) the learner trains nothing: it evaluates the
 * policies that the file names. In a folder of `longrun solve` (solve.json) it searches for the best solution.
 *
 * After a failure the process ends, is restarted, and goes on from the newest checkpoint.
 *
 * Exit status: 0 done, or stopped by SIGTERM or SIGINT (the run folder has all that is needed to go on), 1 failed, 2
 * bad input; with --stay one for each kind of failure (proto/exit-status.ts). If the parent opened an IPC channel, the
 * learner sends it its ports, and ends with it.
 */
import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { EXIT_STATUS } from "../proto/exit-status.ts";
import type { SolveSettings } from "../proto/solve.ts";
import { Checkpoints } from "./checkpoints.ts";
import type { RunContext } from "./context.ts";
import { evaluatePolicies } from "./evaluation/policies.ts";
import { exitStatusOf, failureKind, type RunStage } from "./failures.ts";
import { Fence } from "./fence.ts";
import { Grades } from "./grades.ts";
import { Health } from "./health.ts";
import { Iterations } from "./iterations.ts";
import { createLog, logNotice } from "./log.ts";
import { readManifest, writeManifest } from "./manifest.ts";
import { serveMetrics } from "./metrics/http.ts";
import { MetricsFile } from "./metrics/jsonl.ts";
import { observeLive } from "./metrics/live.ts";
import { LearnerMetrics } from "./metrics/prometheus.ts";
import { newSummary, type RunSummary, readSummary } from "./metrics/summary.ts";
import { TensorBoardFile } from "./metrics/tensorboard.ts";
import { type OpenModel, openModel } from "./open-model.ts";
import { defaultTerminationLog, parseOptions } from "./options.ts";
import { Phases } from "./phases.ts";
import { readCorpus, unknownTask } from "./pretrain/corpus.ts";
import type { Process } from "./process.ts";
import { recordedBatches } from "./replay.ts";
import { reportPage } from "./report/serve.ts";
import { ReportWriter } from "./report/writer.ts";
import { deviationLimits, GPU_DEVIATION_LIMITS } from "./rl/deviation.ts";
import { Rollout } from "./rollout/rollout.ts";
import { packagesOf, readPromptTask } from "./rollout/snippet.ts";
import type { Run } from "./run.ts";
import { RunFiles } from "./run-files.ts";
import { type LearnerServer, startServer } from "./server/server.ts";
import { Phase, StatusBoard } from "./server/status.ts";
import { readSolve } from "./solve/settings.ts";
import { solveTask } from "./solve/solve.ts";
import { startGenerators } from "./start-generators.ts";
import { reasonToStop } from "./stopping.ts";
import { StoreError } from "./store/errors.ts";
import { LEASE_DEFAULTS } from "./store/leases.ts";
import { openStore } from "./store/store.ts";
import { countsOf, linesOf, tasksBegun } from "./stored.ts";
import { SuspendedError, Suspension } from "./suspension.ts";
import { openTasks } from "./tasks/tasks.ts";
import { train } from "./train.ts";
import { versions } from "./versions.ts";
import { waitingOf } from "./waiting.ts";

/** The kubelet reads at most 4096 bytes of a termination message. */
const TERMINATION_CHARACTERS = 1000;
const STORE = "store.sqlite";
/** Default of `learner.leaseSlackSeconds`. */
const LEASE_SLACK_SECONDS = 300;

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
    const directory = options.run;
    const status = new StatusBoard();
    const health = new Health(() => Object.keys(Phase)[status.current.phase ?? 0] ?? "");
    const metrics = new LearnerMetrics();
    const metricsServer = await serveMetrics(options.metricsListen, metrics.registry, health, {
      "/report": (query) => reportPage(directory, status.current, query),
    });
    const manifest = readManifest(directory, options.manifest);
    const { spec } = manifest;
    log = log.child({ run: options.runId ?? manifest.metadata.name });
    // Samples of a task that began without a rewardRange have rewards that an estimate would not match.
    const tasks = openTasks(options.taskDirs, spec, tasksBegun(join(directory, STORE)));
    const notes: Record<string, string> = {};
    for (const { name, grader, rewardRangeFrom } of tasks.all) {
      if (rewardRangeFrom === undefined) continue;
      const { worst, best } = grader.rewardRange!;
      const label = tasks.areSeveral ? `rewardRange of ${name}` : "rewardRange";
      logNotice(log, `${label}: a score of ${worst} earns 0, of ${best} earns 1 (${rewardRangeFrom})`);
      notes[name] = rewardRangeFrom;
    }

    // This process alone may write now.
    writeManifest(directory, manifest, notes);
    const fence = Fence.take(directory, `${hostname()}/${process.pid}`);
    const { leaseSeconds, leaseGraceSeconds, maxAttempts } = spec.learner;
    // Defaults of the schema would change the manifests of runs that go on, and restart their learners.
    const { leaseSlackSeconds = LEASE_SLACK_SECONDS, maxDisruptions = LEASE_DEFAULTS.maxDisruptions } = spec.learner;
    const store = openStore(join(directory, STORE), {
      leaseSeconds,
      leaseGraceSeconds,
      maxAttempts,
      maxDisruptions,
      longestSeconds: tasks.longestSeconds + leaseSlackSeconds,
      checkFence: () => fence.check(),
    });
    const summary = await readSummary(directory);
    if (summary) stage = "restart";
    const startedAt = summary ? Date.parse(summary.startedAt) : Date.now();
    const checkpoint = () => store.checkpoints()[0];
    observeLive(metrics.registry, { status, checkpoint, startedAt, directory, tlsDirectory: options.tls });
    const it: Process = {
      options,
      directory,
      spec,
      tasks,
      store,
      status,
      metrics,
      metricsServer,
      health,
      log,
      suspension: new Suspension(),
      signal: stopping.signal,
    };
    const succeeded = stay && summary?.state === "succeeded" && reasonToStop(linesOf(store), spec.stopping);
    return succeeded ? await stayFinished(it, summary?.message ?? succeeded) : await learn(it, summary);
  } catch (error) {
    const status = exitStatusOf(error, stage, stay);
    if (status !== EXIT_STATUS.input) log.error({ err: error }, "the run failed");
    return refuse((error as Error).message, terminationLog, status);
  }
}

/** Runs everything after the tasks are open, up to the end of the run. */
async function learn(it: Process, earlier: RunSummary | undefined): Promise<number> {
  const { options, directory, spec, tasks, store, status, suspension, metrics, health, log, signal } = it;
  const solve = readSolve(directory);
  const model = await openModel(it, solve, earlier !== undefined);
  const { engine, device, checkpoint, state } = model;
  health.loaded(engine);

  const lines = linesOf(store);
  const newest = lines.at(-1);
  if (newest) metrics.show(newest);
  const metricsFile = await MetricsFile.open(join(directory, "metrics.jsonl"), state.iteration);
  // After a crash between the store's commit and the file's line only the store has the line.
  for (const line of lines) if (line.iteration > (metricsFile.last?.iteration ?? 0)) await metricsFile.append(line);
  const tensorBoard = await TensorBoardFile.open(join(directory, "tensorboard"), lines);

  metrics.continueFrom(countsOf(store));
  const context: RunContext = { directory, spec, tasks, store, status, metrics, log, progress: { state, lines } };
  const phases = new Phases(context, signal, suspension.signal);
  const { progress } = context;
  const { policy } = model;
  const generators =
    policy === undefined ? undefined : startGenerators(it, { engine, device, policy, phases, progress });
  const rollout = new Rollout({
    engine,
    writers: generators ?? model.writers,
    store,
    spec,
    lines,
    addSamples: (samples) => server.write(() => store.addSamples(samples)),
    tasks: tasks.all.map((task) => {
      const { weight } = task.spec;
      return { ...readPromptTask(task, spec.prompts.dataSnippetRows, packagesOf(spec)), weight };
    }),
    encode: model.encode,
    decode: model.decode,
    nextNumber: store.nextSequence(),
    signal: AbortSignal.any([signal, suspension.signal]),
  });
  for (const { task, cut } of rollout.leftOut)
    logNotice(log, `task ${task}: to fit in model.maxPromptTokens its prompts leave out: ${shortened(cut)}`);
  // After the prompts: a task whose prompt does not fit is refused before the run has begun.
  const server = await serve(it);
  suspension.signal.addEventListener("abort", () => {
    log.info(suspension.request, "asked to suspend");
    server.drain(suspension.signal.reason.message);
  });
  const report = new ReportWriter({ runDirectory: directory, onError: (message) => log.warn(message) });
  const corpus =
    policy === undefined ? undefined : readCorpus(policy, tasks.areSeveral ? undefined : tasks.all[0]!.name);
  for (const name of tasks.names) {
    const unknown = corpus && unknownTask(corpus.tasks, spec.model.policy ?? policy!, name);
    if (unknown !== undefined) logNotice(log, unknown);
  }

  const grades = new Grades(context);
  const checkpoints = new Checkpoints(context, engine);
  const summary = { ...(earlier ?? newSummary(corpus?.summary, versions())), state: "running" as const, message: "" };
  const files = new RunFiles({ ...context, server, metricsFile, tensorBoard, report, summary });
  const { collection } = spec.algorithm;
  const recorded = options.replay === undefined ? undefined : recordedBatches(options.replay, collection);
  const parts = { ...context, server, phases, grades, checkpoints, files, generators };
  const iterations = new Iterations({ ...parts, isReplay: recorded !== undefined, corpus: corpus?.hashes });
  const waiting = waitingOf(spec, options.stay, phases.stop);
  // Rows of generators have a limit of their own, because some generators round to half precision.
  const limits = generators ? GPU_DEVIATION_LIMITS : deviationLimits(device);
  const { warmStartData } = model;
  const run: Run = { ...parts, engine, rollout, iterations, waiting, recorded, deviationLimits: limits, warmStartData };

  status.update({ iteration: state.iteration + 1, checkpoint });
  const counting = setInterval(() => {
    metrics.observeExecutions(countsOf(store));
    metrics.observeActors(server.actors());
    if (generators) metrics.observeGenerators(generators.status);
  }, 1000);
  if (summary.evaluation.settings) files.announceEvaluation(summary.evaluation);
  if (summary.warmStart) metrics.showWarmStart(summary.warmStart);
  const end = await endOf(run, it, model, solve);
  clearInterval(counting);
  await generators?.close();

  const { message, exitStatus } = end;
  const endAtOnce = async () => {
    await server.close();
    return refuse(message, options.terminationLog, exitStatus);
  };
  // Another learner has the run: this one writes nothing more, neither to the disk nor to the controller.
  if (end.state === "fenced") return endAtOnce();
  log.info({ state: end.state }, message);
  await files.updateSummary({ state: end.state, message }).catch((error: Error) => {
    // A full disk that stopped the run may stop this write too.
    log.error({ err: error }, "summary.json could not be written");
  });
  // If the run goes on later, its actors keep their executions, and the next learner writes the report.
  const restarts = end.state === "failed" && options.stay;
  if (!restarts && end.state !== "stopped") {
    server.drain(message);
    await report.close();
  }
  health.over();
  // Sends no last status: the controller decides whether the run has failed for good.
  if (restarts) return endAtOnce();
  await metricsFile.close();
  await tensorBoard.close();
  await finish(it, server, end.state, message);
  return exitStatus === 0 ? 0 : refuse(message, options.terminationLog, exitStatus);
}

interface End {
  state: "succeeded" | "failed" | "stopped" | "fenced";
  message: string;
  exitStatus: number;
}

/**
 * Trains, evaluates policies or searches. Afterwards the newest finished iteration of a suspended run is on disk; also that of
 * a stopped run, unless it was stopped in the middle of an update.
 */
async function endOf(run: Run, it: Process, model: OpenModel, solve: SolveSettings | undefined): Promise<End> {
  const { options, store, suspension, signal, log } = it;
  try {
    const { load, policies, endpoint } = model;
    const message = solve
      ? await solveTask(run, solve, endpoint)
      : load
        ? await evaluatePolicies(run, policies!, load)
        : await trainOrSave(run, it);
    return { state: "succeeded", message, exitStatus: 0 };
  } catch (error) {
    const { message } = error as Error;
    const exitStatus = exitStatusOf(error, "training", options.stay);
    if (error instanceof SuspendedError) suspension.giveBack(store.leases);
    if (error instanceof StoreError && error.code === "fenced") return { state: "fenced", message, exitStatus };
    if (signal.aborted || error instanceof SuspendedError) return { state: "stopped", message, exitStatus: 0 };
    log.error({ err: error }, "the run failed");
    if (failureKind(error, "training") !== "volumeFull") return { state: "failed", message, exitStatus };
    const remedy = options.stay
      ? ""
      : ": free space, enlarge the volume or lower learner.checkpoint.keepLast, then resume";
    return { state: "failed", message: `the disk of ${options.run} is full (${message})${remedy}`, exitStatus };
  }
}

/** Trains. If the run is stopped or suspended, writes the newest finished iteration before it throws. */
async function trainOrSave(run: Run, { suspension, signal }: Process): Promise<string> {
  try {
    const reason = await train(run);
    await run.checkpoints.settled();
    return reason;
  } catch (error) {
    // a checkpoint under way belongs to a finished iteration; the log has its result
    await run.checkpoints.settled().catch(() => {});
    // After any other failure the weights may be ahead of the store.
    if (error === signal.reason && run.phases.isBetweenUpdates) await run.checkpoints.bringToDisk();
    if (error instanceof SuspendedError && !signal.aborted) {
      await run.checkpoints.bringToDisk();
      await run.server.waitForHandIns(suspension.request?.drainSeconds ?? 0, signal);
    }
    throw error;
  }
}

/** Serves the status of a run that has succeeded before; loads nothing and trains nothing. */
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
  await finish(it, server, "succeeded", message);
  return 0;
}

async function serve(it: Process): Promise<LearnerServer> {
  const { options, directory, spec, tasks, store, status, suspension, metricsServer, health, log } = it;
  const server = await startServer({
    store,
    status,
    log,
    address: options.listen,
    tlsDirectory: options.tls,
    limitsOf: (task) => tasks.limitsOf(task),
    // Only packages that the manifest asks for: runs of 0.1 have images and names of their own.
    packages: spec.actors.packages && !spec.prompts.packages ? packagesOf(spec) : [],
    suspend: (request) => suspension.ask(request),
    heartbeatSeconds: spec.learner.heartbeatSeconds,
    idleSeconds: spec.actors.idleSeconds,
  });
  const { iterations } = spec.stopping;
  status.update({ iterations, lineage: String(store.lineage), reportPath: join(directory, "report.html") });
  health.listening();
  process.send?.({ type: "listening", port: server.port, metricsPort: metricsServer.port });
  return server;
}

/** The last status's phase. */
const FINAL_PHASE = { succeeded: Phase.SUCCEEDED, failed: Phase.FAILED_RUN, stopped: Phase.STOPPED };

/** Sends the last status and answers a suspension; with `--stay` serves both until SIGTERM. */
async function finish(it: Process, server: LearnerServer, state: keyof typeof FINAL_PHASE, message: string) {
  const { options, store, status, suspension, metricsServer, signal } = it;
  // The answer comes first, because a watcher may leave at the final status.
  const running = suspension.givenBack ?? store.leases.running().length;
  suspension.settle({ checkpoint: store.checkpoints()[0], running });
  // Otherwise actors would run programs to their end although nobody takes the results.
  if (state === "succeeded") store.events.emit("revoked", store.leases.running(), "the run is over");
  status.update({ phase: FINAL_PHASE[state], message });
  if (options.stay && !signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  await server.close();
  await metricsServer.close();
  store.close();
}

/** Most parts of a prompt that a line names. */
const NAMED_PARTS = 5;

function shortened(cut: readonly string[]): string {
  const more = cut.length > NAMED_PARTS ? `; and ${cut.length - NAMED_PARTS} more` : "";
  return `${cut.slice(0, NAMED_PARTS).join("; ")}${more}`;
}

/** Says why the process ends: on stderr, and as one line in the container's status. @returns the exit status */
function refuse(message: string, terminationLog: string | undefined, exitStatus: number): number {
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
