/**
 * The learner process: reads its configuration, wires the parts, trains, stops.
 *
 *     node learner/main.ts --run DIR --listen HOST:PORT --metrics-listen HOST:PORT --tls DIR --task-dir DIR
 *         [--run-id ID] [--manifest FILE] [--model-dir DIR] [--device auto|cpu|cuda|cuda:N,M] [--memory-bytes N] [--stay]
 *         [--termination-log FILE] [--replay STORE] [--generators URL[,URL…] [--generators-tls DIR]]
 *
 * In a folder that `longrun evaluate` made (it has a policies.json) the learner trains nothing: it evaluates the
 * policies that the file names.
 *
 * --manifest: follows this manifest and keeps it in the run folder; fields that cannot change in a run that has begun
 * must be as they were. --stay: serves status and metrics after success until SIGTERM, and does not begin a run again
 * that has succeeded. After a failure the process ends, is restarted, and goes on from the newest checkpoint.
 *
 * Exit status: 0 done, or stopped by SIGTERM or SIGINT (the run folder has all that is needed to go on), 1 failed, 2
 * bad input; with --stay one for each kind of failure (proto/exit-status.ts). If the parent opened an IPC channel, the
 * learner tells it its ports, and ends with it.
 */
import { existsSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { policyFolder } from "../crds/policy.ts";
import { ManifestError } from "../crds/trainingrun.ts";
import { limitsOfTask } from "../proto/execution.ts";
import { EXIT_STATUS } from "../proto/exit-status.ts";
import { Checkpoints, checkBase, loadCheckpoint, loadFolder } from "./checkpoints.ts";
import type { RunContext } from "./context.ts";
import {
  checkLengths,
  type Device,
  type EngineOptions,
  MappedWeights,
  modelIdentity,
  onNotice,
  readConfig,
  readEosIds,
  readTokenizer,
  startEngine,
} from "./engine/index.ts";
import { adapterOf, COMPUTE, place } from "./engine-options.ts";
import { evaluatePolicies, type Policies, readPolicies } from "./evaluation/policies.ts";
import { exitStatusOf, failureKind, type RunStage } from "./failures.ts";
import { Fence } from "./fence.ts";
import { Generators } from "./generators/generators.ts";
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
import { readCorpus, unknownTask } from "./pretrain/corpus.ts";
import { recordedBatches } from "./replay.ts";
import { reportPage } from "./report/serve.ts";
import { ReportWriter } from "./report/writer.ts";
import { deviationLimits, GPU_DEVIATION_LIMITS } from "./rl/deviation.ts";
import { checkInstrumenter } from "./rollout/instrument-policy.ts";
import { Rollout } from "./rollout/rollout.ts";
import { packagesOf, readPromptTask } from "./rollout/snippet.ts";
import { type Run, waitingOf } from "./run.ts";
import { RunFiles } from "./run-files.ts";
import { type LearnerServer, startServer } from "./server/server.ts";
import { Phase, StatusBoard } from "./server/status.ts";
import { reasonToStop } from "./stopping.ts";
import { StoreError } from "./store/errors.ts";
import { LEASE_DEFAULTS } from "./store/leases.ts";
import { openStore, type Store } from "./store/store.ts";
import { SuspendedError, Suspension } from "./suspension.ts";
import { openTask } from "./tasks/task.ts";
import { train } from "./train.ts";
import { versions } from "./versions.ts";

/** The kubelet reads at most 4096 bytes of a termination message. */
const TERMINATION_CHARACTERS = 1000;
const STORE = "store.sqlite";
/** A run on one machine ends when rows wait and no generator could be used for so long; in a pod the learner waits. */
const NO_GENERATOR_SECONDS = 900;
/** Default of `learner.leaseSlackSeconds`. */
const LEASE_SLACK_SECONDS = 300;

/** What the process works with before it has a policy. */
interface Process extends Omit<RunContext, "progress"> {
  options: Options;
  suspension: Suspension;
  metricsServer: MetricsServer;
  health: Health;
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
    // The store of a run that began without a rewardRange holds rewards that an estimate would not match.
    const estimateRange = !existsSync(join(directory, STORE));
    const task = openTask(options.taskDir, spec.tasks[0], { estimateRange });
    const { rewardRangeFrom } = task;
    if (rewardRangeFrom !== undefined) {
      spec.tasks[0].grader = task.grader;
      const { worst, best } = task.grader.rewardRange!;
      const text = `rewardRange: a score of ${worst} earns 0, of ${best} earns 1 (${rewardRangeFrom})`;
      tell(log, text);
    }
    const fault = rewardOrderFault(spec.algorithm, task.grader);
    if (fault !== undefined) throw new ManifestError([fault]);

    // From here on this process is the one that writes.
    writeManifest(directory, manifest, rewardRangeFrom);
    const fence = Fence.take(directory, `${hostname()}/${process.pid}`);
    const { leaseSeconds, leaseGraceSeconds, maxAttempts } = spec.learner;
    // Defaults of the schema would change the manifests of runs that go on, and restart their learners.
    const { leaseSlackSeconds = LEASE_SLACK_SECONDS, maxDisruptions = LEASE_DEFAULTS.maxDisruptions } = spec.learner;
    const store = openStore(join(directory, STORE), {
      ...{ leaseSeconds, leaseGraceSeconds, maxAttempts, maxDisruptions },
      longestSeconds: task.spec.executionTimeoutSeconds + leaseSlackSeconds,
      checkFence: () => fence.check(),
    });
    const summary = await readSummary(directory);
    if (summary) stage = "restart";
    const startedAt = summary ? Date.parse(summary.startedAt) : Date.now();
    const checkpoint = () => store.checkpoints()[0];
    observeLive(metrics.registry, { status, checkpoint, startedAt, directory, tlsDirectory: options.tls });
    const it: Process = {
      ...{ options, directory, spec, task, store, status, metrics, metricsServer, health, log },
      ...{ suspension: new Suspension(), signal: stopping.signal },
    };
    const succeeded = stay && summary?.state === "succeeded" && reasonToStop(linesOf(store), spec.stopping);
    return succeeded ? await stayFinished(it, summary?.message ?? succeeded) : await learn(it, summary);
  } catch (error) {
    const status = exitStatusOf(error, stage, stay);
    if (status !== EXIT_STATUS.input) log.error({ err: error }, "the run failed");
    return refuse((error as Error).message, terminationLog, status);
  }
}

/** From an opened task to the end of the run. */
async function learn(it: Process, earlier: RunSummary | undefined): Promise<number> {
  const { options, directory, spec, task, store, status, suspension, metrics, health, log, signal } = it;
  const policy = policyFolder(spec.model.policy, join(directory, "trainingrun.yaml"), options.modelDir);
  const tokenizer = readTokenizer(policy);
  const { engine, device, checkpoint, state } = await loadPolicy(it, policy, earlier !== undefined);
  health.loaded(engine);

  const lines = linesOf(store);
  const newest = lines.at(-1);
  if (newest) metrics.show(newest);
  const metricsFile = await MetricsFile.open(join(directory, "metrics.jsonl"), state.iteration);
  // After a crash between the store's commit and the file's line only the store has the line.
  for (const line of lines) if (line.iteration > (metricsFile.last?.iteration ?? 0)) await metricsFile.append(line);
  const tensorBoard = await TensorBoardFile.open(join(directory, "tensorboard"), lines);

  metrics.continueFrom(countsOf(store));
  const server = await serve(it);
  const context: RunContext = { directory, spec, task, store, status, metrics, log, progress: { state, lines } };
  const phases = new Phases(context, signal, suspension.signal);
  const generators = startGenerators(it, { engine, device, policy, phases, progress: context.progress });
  const rollout = new Rollout({
    ...{
      engine,
      writers: generators,
      store,
      spec,
      addSamples: (samples) => server.write(() => store.addSamples(samples)),
    },
    task: readPromptTask(task, spec.prompts.dataSnippetRows, packagesOf(spec)),
    encode: (messages) => tokenizer.encodeChat(messages),
    decode: (tokens) => tokenizer.decode(tokens),
    nextNumber: store.nextSequence(),
    signal: AbortSignal.any([signal, suspension.signal]),
  });
  suspension.signal.addEventListener("abort", () => {
    log.info(suspension.request, "asked to suspend");
    server.drain(suspension.signal.reason.message);
  });
  const report = new ReportWriter({ runDirectory: directory, onError: (message) => log.warn(message) });
  const corpus = readCorpus(policy, task.name);
  const unknown = corpus && unknownTask(corpus.tasks, spec.model.policy ?? policy, task.name);
  if (unknown !== undefined) tell(log, unknown);

  const grades = new Grades(context);
  const checkpoints = new Checkpoints(context, engine);
  const summary = { ...(earlier ?? newSummary(corpus?.summary, versions())), state: "running" as const, message: "" };
  const files = new RunFiles({ ...context, server, metricsFile, tensorBoard, report, summary });
  const recorded = options.replay === undefined ? undefined : recordedBatches(options.replay);
  const parts = { ...context, server, phases, grades, checkpoints, files, generators };
  const iterations = new Iterations({ ...parts, isReplay: recorded !== undefined, corpus: corpus?.hashes });
  const waiting = waitingOf(spec, options.stay, phases.stop);
  // rows of generators are compared with a limit of their own: some of them may round to half precision
  const limits = generators ? GPU_DEVIATION_LIMITS : deviationLimits(device);
  const run: Run = { ...parts, engine, rollout, iterations, waiting, recorded, deviationLimits: limits };

  status.update({ iteration: state.iteration + 1, checkpoint });
  const counting = setInterval(() => {
    metrics.observeExecutions(countsOf(store));
    metrics.observeActors(server.actors());
    if (generators) metrics.observeGenerators(generators.status);
  }, 1000);
  if (summary.evaluation.settings) files.announceEvaluation(summary.evaluation);
  const end = await endOf(run, it, readPolicies(directory));
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
  // Without a last status: the controller decides whether the run has failed for good.
  if (restarts) return endAtOnce();
  await metricsFile.close();
  await tensorBoard.close();
  await finish(it, server, end.state, message);
  return exitStatus === 0 ? 0 : refuse(message, options.terminationLog, exitStatus);
}

/** Connects to the generators that the learner was given; undefined: there are none. */
function startGenerators(
  { options, directory, status, log, suspension, signal }: Process,
  run: Pick<Run, "engine" | "phases" | "progress"> & { device: Device; policy: string },
): Generators | undefined {
  const none = options.generators.length === 0 || options.replay !== undefined || readPolicies(directory) !== undefined;
  if (none) return undefined;
  const { engine, phases, progress, device, policy } = run;
  const generators = new Generators({
    ...{ urls: options.generators, tlsDirectory: options.generatorsTls, engine, device: device.kind, log },
    ...{ eosIds: readEosIds(policy), vocabSize: readConfig(policy).vocabSize },
    directory: join(directory, "generators"),
    isCurrent: (version) => phases.isBetweenUpdates && progress.state.iteration === version,
    noGeneratorSeconds: options.stay ? Number.POSITIVE_INFINITY : NO_GENERATOR_SECONDS,
    tell: (text) => tell(log, text),
    onChange: () => status.changed(),
    signal: AbortSignal.any([signal, suspension.signal]),
  });
  status.addSource(() => ({ generation: generators.status }));
  return generators;
}

/** Starts the engine with the weights of the newest checkpoint, or with the run's initial policy. @param restarted it has begun before */
async function loadPolicy({ options, directory, spec, store, log }: Process, policy: string, restarted: boolean) {
  const { maxPositions } = readConfig(policy);
  checkLengths(spec.model, maxPositions);
  checkInstrumenter(spec.model, maxPositions);
  const plan = await place(policy, spec, options, log, restarted);
  const { device, devices, microBatchTokens, rowTokens, ranks, checkpointing } = plan;
  const adapter = adapterOf(spec);
  const base = adapter && modelIdentity(new MappedWeights(policy));
  const { threads, compute } = spec.learner;
  const { generationBatchSize: slots, maxPromptTokens, maxResponseTokens } = spec.model;
  const passes = { workers: ranks, microBatchTokens, rowTokens } satisfies Partial<EngineOptions>;
  onNotice((text) => log.warn(text));
  const engine = await startEngine({
    ...{ model: policy, device, ...(devices && { devices }), threads, adapter, compute: COMPUTE[compute], ...passes },
    ...{ slots, positions: maxPromptTokens + maxResponseTokens },
    critic: spec.algorithm.baseline === "Critic",
    activationCheckpointing: checkpointing ? "Always" : "Never",
  });
  let state: RunContext["progress"]["state"] = { iteration: 0, elapsedSeconds: 0, ...(base && { base }) };
  const { lineage, checkpoint } = await store.beginLineage(async (row) => {
    checkBase(join(directory, row.path), base, policy);
    const loaded = await loadCheckpoint(directory, engine, row, (reason) => log.warn(reason));
    state = { ...state, ...loaded };
    return loaded !== undefined;
  });
  if (checkpoint === undefined && spec.initFrom?.path !== undefined) {
    checkBase(spec.initFrom.path, base, policy);
    await engine.load(spec.initFrom.path);
  }
  log.info({ lineage, iteration: state.iteration, checkpoint: checkpoint?.path }, "the run begins");
  return { engine, device, checkpoint, state };
}

interface End {
  state: "succeeded" | "failed" | "stopped" | "fenced";
  message: string;
  exitStatus: number;
}

/**
 * Trains, or evaluates `policies`. Afterwards the newest finished iteration of a suspended run is on disk; also that of
 * a stopped run, unless it was stopped in the middle of an update.
 */
async function endOf(run: Run, it: Process, policies: Policies | undefined): Promise<End> {
  const { options, store, suspension, signal, log } = it;
  try {
    const message = policies
      ? await evaluatePolicies(run, policies, (folder) => loadFolder(run.engine, folder))
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
    const remedy = options.stay ? "" : ": free space or enlarge the volume, then resume";
    return { state: "failed", message: `the disk of ${options.run} is full (${message})${remedy}`, exitStatus };
  }
}

/** Trains. If the run is stopped or suspended, writes the newest finished iteration before it throws. */
async function trainOrSave(run: Run, { suspension, signal }: Process): Promise<string> {
  try {
    return await train(run);
  } catch (error) {
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
  const { options, directory, spec, task, store, status, suspension, metricsServer, health, log } = it;
  const limits = { ...limitsOfTask(task.spec), submissionBytes: task.submissionBytes };
  const server = await startServer({
    ...{ store, status, log, address: options.listen, tlsDirectory: options.tls },
    limitsOf: () => limits,
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

/** Says something to the user: in the log, and on the terminal of `longrun run`. */
function tell(log: Logger, text: string): void {
  log.info(text);
  process.send?.({ type: "note", text });
}

const countsOf = (store: Store) => ({ ...store.totals(), disrupted: store.leases.disruptions() });

const linesOf = (store: Store): IterationMetrics[] =>
  store.iterationRows().map((row) => row.metrics as unknown as IterationMetrics);

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
