/** Starts, follows and ends the processes of a run on this machine: the learner and its actors. */
import { join } from "node:path";
import type { TrainingRun } from "../../../crds/trainingrun.ts";
import { type Address, dialledHost, formatAddress } from "../../../proto/address.ts";
import type { RunCertificates } from "../../../proto/certificates.ts";
import { EXIT_STATUS } from "../../../proto/exit-status.ts";
import type { PhaseName } from "../../../proto/service.ts";
import { removeLeftFolders, SANDBOX_FOLDERS } from "../../../proto/temporary-folder.ts";
import { ControllerError, EXIT } from "../../errors.ts";
import { runPart } from "../../part-process.ts";
import type { Surroundings } from "../surroundings.ts";
import { duration } from "../terminal/duration.ts";
import { FirstEstimate } from "../terminal/first-estimate.ts";
import { NewMetrics } from "../terminal/metrics-lines.ts";
import { phaseName, type StatusReceived, type Watch, watchStatus } from "../terminal/status.ts";
import { readSummarySince, type Summary } from "../terminal/summary.ts";
import { progressText, type Terminal } from "../terminal/terminal.ts";
import { ActorPool } from "./actors.ts";
import { actorCores, usableCores } from "./cpus.ts";
import { describeExit, type Exit, type Fate, readableLine, SupervisedProcess } from "./process.ts";

/** Longest wait for the last status of a learner that has ended. */
const LAST_STATUS_SECONDS = 2;
/** Longest time to write the report of an interrupted run. */
const REPORT_SECONDS = 15;

export interface BackendOptions {
  run: TrainingRun;
  directory: string;
  temporary: string;
  taskFolders: string[];
  /** Folder with a folder for each task, which has only the files that actors may see. */
  publicFolder: string;
  python: string;
  tls: RunCertificates;
  listen: Address;
  metricsListen: Address;
  /** Further arguments of the learner, besides paths and addresses. */
  learnerArguments: string[];
  /** Further variables of the learner's environment, which actors do not get. */
  learnerEnvironment?: NodeJS.ProcessEnv;
  /** Metrics lines on stdout. */
  json: boolean;
  /** Logs on stderr. */
  verbose: boolean;
  /** Shows the result on the terminal. */
  showEnd: () => void;
  /** Shows what was found when the user stops it. */
  showStopped?: () => void;
  /** Text that says how to resume after a stop. */
  goOn: string;
  around: Surroundings;
  terminal: Terminal;
}

/** A message from the learner over IPC. */
interface LearnerMessage {
  type?: string;
  /** of `listening` */
  port?: number;
  metricsPort?: number;
  /** of `plan`: lines about the memory that the run will take */
  table?: string[];
  /** of `note`: a line for the user */
  text?: string;
}

/** People compare the plan with what the system shows. */
const MAPPED =
  "The model's files are mapped: top counts them in each process (RSS), although memory holds them once (PSS in /proc/PID/smaps_rollup).";

export class Backend {
  /** Whether the learner has ever listened. */
  started = false;
  readonly #o: BackendOptions;
  readonly #learner: SupervisedProcess;
  readonly #actors: ActorPool;
  #address: Address;
  #metricsAddress: Address;
  #watch: Watch | undefined;
  #planShown = false;
  readonly #estimate = new FirstEstimate(() => performance.now());
  #phase: PhaseName = "STARTING";
  /** Summary that the last ended learner wrote. */
  #summary: Summary | undefined;
  /** Unix milliseconds. */
  #learnerStartedAt = 0;
  readonly #metrics: NewMetrics;
  #starting: NodeJS.Timeout | undefined;

  constructor(options: BackendOptions) {
    this.#o = options;
    this.#address = options.listen;
    this.#metricsAddress = options.metricsListen;
    this.#metrics = new NewMetrics(options.directory);
    this.#metrics.take(); // an earlier process has shown these
    const { run, directory } = options;
    this.#learner = new SupervisedProcess(
      {
        name: "learner",
        file: options.around.parts.learner,
        args: () => {
          this.#learnerStartedAt = Date.now();
          return this.#learnerArguments();
        },
        env: { ...options.around.env, ...options.learnerEnvironment },
        logFile: join(directory, "logs", "learner.log"),
      },
      {
        restart: run.spec.restart,
        isEnd: (exit) => this.#isLearnersEnd(exit),
        onMessage: (message) => this.#onLearnerMessage(message),
        onRestart: (exit, wait) => this.#onRestart("learner", exit, wait),
        onOutput: (line) => this.#onOutput("learner", line),
      },
    );
    this.#actors = this.#actorPool();
  }

  async train(signal: AbortSignal): Promise<number> {
    this.#limitStart();
    const interrupted = new Promise<"interrupted">((resolve) => {
      if (signal.aborted) resolve("interrupted");
      signal.addEventListener("abort", () => resolve("interrupted"));
    });
    try {
      const end = await Promise.race([this.#learner.fate, this.#actors.failure, interrupted]);
      if (end === "interrupted") return await this.#stopEarly();
      return await this.#finish(end);
    } catch (error) {
      if (!(error instanceof ControllerError) || error.code !== "failed") throw error;
      throw new ControllerError("failed", `${error.message}\nGo on with: ${this.#o.goOn}`, { cause: error });
    } finally {
      clearTimeout(this.#starting);
      await this.#actors.stop();
      removeLeftFolders(SANDBOX_FOLDERS); // actors that had to be killed left theirs
      await this.#learner.stop(this.#o.run.spec.learner.stopGraceSeconds);
      await this.#watch?.close(0);
    }
  }

  async #stopEarly(): Promise<number> {
    const { run, around, terminal, goOn, showStopped } = this.#o;
    terminal.progress("stopping the actors");
    await this.#actors.stop();
    terminal.progress("stopping the learner");
    await this.#learner.stop(run.spec.learner.stopGraceSeconds);
    terminal.progress("writing the report");
    await this.#writeReport();
    terminal.clear();
    showStopped?.();
    around.stderr.write(`Stopped. Go on with: ${goOn}\n`);
    return EXIT.interrupted;
  }

  /** Writes the report of an interrupted run, because a stopping learner does not. */
  async #writeReport(): Promise<void> {
    const { directory, around } = this.#o;
    const signal = AbortSignal.timeout(REPORT_SECONDS * 1000);
    // The user can write it at any time with `longrun report`.
    await runPart(around.parts.report, [directory], { env: around.env, signal }).catch(() => {});
  }

  async #finish({ kind, exit }: Fate): Promise<number> {
    const { directory, showEnd } = this.#o;
    const log = `its log is ${join(directory, "logs", "learner.log")}`;
    if (kind === "gaveUp")
      throw new ControllerError("failed", `the learner keeps failing (${describeExit(exit)}); ${log}`);
    // Only a person can free the disk.
    if (exit.status === EXIT_STATUS.volumeFull) throw new ControllerError("failed", exit.said || "the disk is full");
    if (exit.status === EXIT.badInput)
      throw new ControllerError(
        "input",
        `the learner cannot ${this.started ? "continue" : "start"}: ${exit.said || describeExit(exit)}`,
      );
    if (exit.status !== EXIT.done)
      throw new ControllerError("failed", `the run failed: ${this.#summary?.message || describeExit(exit)}; ${log}`);
    await this.#actors.stop();
    await this.#watch?.close(LAST_STATUS_SECONDS);
    this.#showIterations();
    showEnd();
    return EXIT.done;
  }

  #learnerArguments(): string[] {
    const { directory, tls, taskFolders, learnerArguments } = this.#o;
    return [
      ...[
        "--run",
        directory,
        "--listen",
        formatAddress(this.#address),
        "--metrics-listen",
        formatAddress(this.#metricsAddress),
      ],
      ...["--tls", tls.learner, ...taskFolders.flatMap((folder) => ["--task-dir", folder])],
      ...learnerArguments,
    ];
  }

  /** Whether the exit ends the run, by its status and the run folder. After any other exit, a restart continues from the store. */
  #isLearnersEnd(exit: Exit): boolean {
    if (exit.status === EXIT.badInput || exit.status === EXIT_STATUS.volumeFull) return true;
    this.#summary = readSummarySince(this.#o.directory, this.#learnerStartedAt);
    const { state } = this.#summary ?? {};
    return exit.status === EXIT.done ? state === "succeeded" : exit.signal === undefined && state === "failed";
  }

  #onLearnerMessage(message: unknown): void {
    const { type, port, metricsPort, table, text } = message as LearnerMessage;
    if (type === "plan" && table) this.#showPlan(table);
    if (type === "note" && text && !this.#o.json) this.#o.terminal.line(text);
    if (type !== "listening" || port === undefined) return;
    clearTimeout(this.#starting);
    this.started = true;
    this.#metrics.startOver();
    // A restarted learner listens where the actors look for it.
    this.#address = { ...this.#address, port };
    if (metricsPort !== undefined) this.#metricsAddress = { ...this.#metricsAddress, port: metricsPort };
    void this.#watch?.close(0);
    this.#watch = watchStatus(formatAddress(this.#dialled), this.#o.tls.controller, (status) => this.#onStatus(status));
    this.#actors.replaceNow();
  }

  /** Returns the metrics address of actor `index`: the ports after the learner's, or any free port if the learner's port is 0. */
  #actorMetrics(index: number): string {
    const { port } = this.#o.metricsListen;
    return formatAddress({ ...this.#o.metricsListen, port: port === 0 ? 0 : port + 1 + index });
  }

  get #dialled(): Address {
    return { host: dialledHost(this.#address.host), port: this.#address.port };
  }

  #onStatus(status: StatusReceived): void {
    if (status.iterationJson !== "") this.#showIterations();
    const phase = phaseName(status);
    if ((phase === "FINAL_EVALUATION" || phase === "WARMING_UP") && phase !== this.#phase)
      this.#o.terminal.step(progressText(status));
    this.#phase = phase;
    this.#actors.scale(
      { queued: status.executions?.queued ?? 0, running: status.executions?.running ?? 0 },
      status.actors.map((actor) => ({ name: actor.name ?? "", running: actor.running ?? 0 })),
    );
    const seconds = this.#estimate.take(status);
    if (seconds !== undefined && !this.#o.json)
      this.#o.terminal.line(`By the first responses an iteration takes about ${duration(seconds)}.`);
    this.#o.terminal.progress(progressText(status));
  }

  /**
   * Shows the iterations that finished since the last call. They are read from the run folder, because the stream delivers only the newest
   * status: it may skip one of two short iterations, or an iteration that ends during a reconnect.
   */
  #showIterations(): void {
    const { json, around, terminal } = this.#o;
    for (const { text, line } of this.#metrics.take()) {
      if (json) around.stdout.write(`${text}\n`);
      else terminal.iteration(line);
    }
  }

  /** Shows the plan once, although a restarted learner sends it again. */
  #showPlan(table: string[]): void {
    if (!this.#planShown && !this.#o.json) for (const line of [...table, MAPPED]) this.#o.terminal.line(line);
    this.#planShown = true;
  }

  #limitStart(): void {
    clearTimeout(this.#starting);
    this.#starting = setTimeout(() => this.#learner.restartNow(), this.#o.run.spec.learner.startSeconds * 1000);
  }

  #onRestart(name: string, exit: Exit, waitSeconds: number): void {
    if (name === "learner") this.#limitStart();
    this.#o.terminal.clear();
    this.#o.around.stderr.write(`${name} ended with ${describeExit(exit)}; starting it again in ${waitSeconds} s\n`);
  }

  #onOutput(name: string, line: string): void {
    if (!this.#o.verbose) return;
    this.#o.terminal.clear();
    this.#o.around.stderr.write(`[${name}] ${readableLine(line)}\n`);
  }

  #actorPool(): ActorPool {
    const { run, directory, temporary, publicFolder, python, tls, around } = this.#o;
    const { actors, restart, learner, tasks } = run.spec;
    const cores = actorCores(usableCores(), learner.threads, actors.max);
    return new ActorPool({
      actors,
      restart,
      drainSeconds: Math.max(...tasks.map((task) => task.executionTimeoutSeconds)) + actors.stopGraceSeconds,
      program: (name, index) => ({
        name,
        file: around.parts.actor,
        args: async () => [
          ...[
            "--learner",
            formatAddress(this.#dialled),
            "--tls",
            await tls.actor(name),
            "--name",
            name,
            "--run-id",
            run.metadata.name,
          ],
          ...["--slots", String(actors.slots), "--task-dir", publicFolder, "--python", python],
          ...["--scratch", join(temporary, name), "--metrics-listen", this.#actorMetrics(index)],
          ...(cores ? ["--cpus", cores[index % cores.length]!] : []),
          ...(actors.requireIsolation ? [] : ["--allow-no-isolation"]),
        ],
        env: around.env,
        logFile: join(directory, "logs", `${name}.log`),
      }),
      onRestart: (name, exit, wait) => this.#onRestart(name, exit, wait),
      onOutput: (name, line) => this.#onOutput(name, line),
    });
  }
}
