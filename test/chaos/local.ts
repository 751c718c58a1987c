/**
 * `longrun run` on this machine under trouble. A command that ends with a documented status is resumed, as a person would do. Each run has
 * its own volume (tmpfs), network and, with libfaketime, clocks, so that the machine's own stay unchanged. Lines name the troubles that are
 * left out because this machine cannot cause them.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ensurePythonEnvironment } from "../../actor/python-env.ts";
import { BATCH, processes, RealRun } from "../faults/real-run.ts";
import { findTool } from "../tools.ts";
import { type Ability, findAbilities } from "./abilities.ts";
import { type Audit, auditFolder, auditStore } from "./accounts.ts";
import { type LocalRun, localTroubles } from "./local-troubles.ts";
import { Random, type World } from "./trouble.ts";

const VOLUME_BYTES = 400 * 2 ** 20;
const ITERATIONS = 6;
/** Longest time for all processes of a run to end after it. */
const GONE_SECONDS = 15;
const FAKETIME = findTool("libfaketimeMT.so.1");
/** Short times: some troubles last less than each of them, some longer. */
const LIMITS = [
  "learner.leaseGraceSeconds=3",
  "learner.stopGraceSeconds=8",
  "learner.stallSeconds=60",
  "actors.stopGraceSeconds=4",
  "restart.maxBackoffSeconds=2",
  "restart.stableSeconds=5",
];
/** Settings that use other code for collection, update or recovery. */
const VARIANTS: readonly (readonly string[])[] = [
  [],
  ["algorithm.collection=Discard", "actors.max=2"],
  ["algorithm.baseline=BatchMean", "learner.maxAttempts=1", "learner.checkpoint.everyIterations=3"],
  ["algorithm.stalenessPolicy=Drop", "algorithm.maxStaleness=1", "actors.slots=2"],
  ["model.adaptation={type: LoRA, rank: 4}", "learner.maxAttempts=2", "learner.checkpoint.everyIterations=2"],
];

/** How a command ended, as controller/README.md documents it. */
const ENDS: Record<string, { says: RegExp; goesOn: boolean }> = {
  "0": { says: /Report: |this run is finished/, goesOn: false },
  "1": { says: /Go on with: .*--resume/, goesOn: true },
  "130": { says: /Stopped( at once)?\. Go on with: .*--resume/, goesOn: true },
  SIGKILL: { says: /(?:)/, goesOn: true },
  // Node.js handles no signal before it runs the command, and none while it exits after a first signal.
  SIGTERM: { says: /^$|Ctrl-C again stops at once\.$/, goesOn: true },
  SIGINT: { says: /^$|Ctrl-C again stops at once\.$/, goesOn: true },
};

export class LocalWorld implements World {
  readonly gapSeconds = 3;
  readonly atOnce = 3;
  readonly strikeSeconds = 360;
  readonly calmSeconds = 600;
  readonly #say: (line: string) => void;
  readonly #folder = mkdtempSync(join(tmpdir(), "longrun-chaos-"));
  readonly #mounts: string[] = [];
  readonly #can: Set<Ability>;
  #runs = 0;
  #run: LocalRun | undefined;
  #settings: string[] = [];
  #counts: Record<string, number> = {};
  #findings: string[] = [];
  /** {pid: start time} of every process that was found below a command. */
  #seen = new Map<number, string>();
  #watching: NodeJS.Timeout | undefined;

  static async start(say: (line: string) => void): Promise<LocalWorld> {
    // Runs cannot fetch packages: their networks have no way out.
    await ensurePythonEnvironment({ onProgress: say });
    return new LocalWorld(say);
  }

  private constructor(say: (line: string) => void) {
    this.#say = say;
    this.#can = findAbilities(say);
    this.#writeClock();
  }

  async begin(seed: number) {
    const random = new Random(seed);
    const name = `run-${this.#runs++}`;
    this.#settings = [...LIMITS, ...random.pick(VARIANTS), `seed=${seed}`];
    this.#counts = {};
    this.#findings = [];
    this.#seen.clear();
    const volume = join(this.#folder, name);
    mkdirSync(volume);
    mkdirSync(this.#temporary, { recursive: true });
    if (this.#can.has("volumes")) this.#mount("-t", "tmpfs", "-o", `size=${VOLUME_BYTES}`, "tmpfs", volume);
    const directory = join(volume, "run");
    const setClock = (part: string, seconds: number) => this.#setClock(part, seconds);
    const run: LocalRun = { command: this.#start(directory), directory, volume, setClock };
    this.#run = run;
    this.#watching = setInterval(() => this.#watch(run), 250);
    this.#say(`${directory}: ${this.#settings.slice(LIMITS.length).join(", ")}`);
    return { troubles: localTroubles(run, this.#can), ended: this.#lookAfter(run, random.fork()) };
  }

  /** Waits for the command's end, and resumes the run until it is over, as a person would do. */
  async #lookAfter(run: LocalRun, random: Random): Promise<void> {
    for (;;) {
      const { status, signal, output } = await run.command.ended;
      const how = String(signal ?? status);
      const end = ENDS[how];
      this.#count(`commands that ended with ${how}`);
      if (!end) throw new Error(`the command ended with ${how}, which is not documented: ${lastLines(output)}`);
      const isNew = !existsSync(join(run.directory, "trainingrun.yaml"));
      // A command that could not begin prints the reason, and leaves the run unchanged.
      const hasBegun = /^(Training|Resuming) /m.test(output);
      if ((hasBegun || how.startsWith("SIG")) && !end.says.test(output))
        this.#findings.push(`the command ended with ${how} and said: ${lastLines(output)}`);
      if (!end.goesOn) return;
      if (how === "1") this.#say(`the command ended with 1: ${lastLines(output)}`);
      await sleep(random.between(100, 2500));
      // A command that was killed before the run folder existed is repeated unchanged.
      if (isNew) rmSync(run.directory, { recursive: true, force: true });
      run.command = this.#start(run.directory, !isNew);
    }
  }

  #start(directory: string, resume = false): RealRun {
    const clock = { LD_PRELOAD: FAKETIME, NODE_OPTIONS: `--require=${this.#clockHook}`, CHAOS_CLOCKS: this.#clocks };
    const faketime = { FAKETIME_TIMESTAMP_FILE: join(this.#clocks, "command"), FAKETIME_CACHE_DURATION: "1" };
    const steady = { FAKETIME_DONT_FAKE_MONOTONIC: "1", NO_FAKE_STAT: "1" };
    return new RealRun(directory, {
      ...{ iterations: ITERATIONS, resume, settings: resume ? [] : this.#settings },
      through: this.#can.has("network") ? ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"] : [],
      env: {
        ...{ ...process.env, TMPDIR: this.#temporary },
        ...(this.#can.has("clocks") && { ...clock, ...faketime, ...steady }),
      },
    });
  }

  async check(): Promise<Audit> {
    const run = this.#run!;
    clearInterval(this.#watching);
    const expected = { iterations: ITERATIONS, batch: BATCH };
    const findings = this.#findings;
    findings.push(...(await this.#processesLeft()), ...auditFolder(run.directory, expected));
    const left = readdirSync(this.#temporary);
    if (left.length > 0) findings.push(`left over in the folder for temporary files: ${left}`);
    rmSync(this.#temporary, { recursive: true, force: true });
    const audit = auditStore(join(run.directory, "store.sqlite"), expected);
    findings.push(...audit.findings, ...(await this.#replay(run)));
    if (findings.length > 0) this.#keep(run);
    this.#clear(run.volume);
    return { findings, counts: { ...audit.counts, ...this.#counts } };
  }

  async stop(keep: boolean): Promise<void> {
    clearInterval(this.#watching);
    this.#watch(this.#run);
    for (const pid of this.#living()) process.kill(pid, "SIGKILL");
    if (keep && this.#run && existsSync(this.#run.directory)) this.#keep(this.#run);
    await sleep(500);
    for (const mount of [...this.#mounts]) this.#clear(mount);
    if (!existsSync(join(this.#folder, "kept"))) rmSync(this.#folder, { recursive: true, force: true });
    else this.#say(`kept: ${this.#folder}/kept`);
  }

  /** Trains again on the store's batches, undisturbed: the weights are the same bit for bit. */
  async #replay(run: LocalRun): Promise<string[]> {
    const directory = join(run.volume, "replay");
    mkdirSync(this.#temporary, { recursive: true });
    const replay = new RealRun(directory, {
      ...{ iterations: ITERATIONS, settings: this.#settings, replay: join(run.directory, "store.sqlite") },
      env: { ...process.env, TMPDIR: this.#temporary },
    });
    const { status, output } = await replay.ended;
    if (status !== 0) return [`the replay ended with ${status}: ${lastLines(output)}`];
    this.#count("replays compared");
    const [trained, again] = [run.command, replay].map((it) => `${it.newestDigest()} ${it.newestPolicy()}`);
    return trained === again ? [] : [`the weights of the replay differ: ${again}, those of the run: ${trained}`];
  }

  #watch(run: LocalRun | undefined): void {
    if (!run) return;
    for (const { pid } of [{ pid: run.command.child.pid! }, ...run.command.descendants()])
      if (!this.#seen.has(pid)) this.#seen.set(pid, startOf(pid));
  }

  #living(): number[] {
    return [...this.#seen].filter(([pid, start]) => start !== "" && startOf(pid) === start).map(([pid]) => pid);
  }

  async #processesLeft(): Promise<string[]> {
    for (let waited = 0; this.#living().length > 0 && waited < GONE_SECONDS; waited += 0.2) await sleep(200);
    const left = new Set(this.#living());
    const named = processes().filter(({ pid, command }) => left.has(pid) || command.includes(this.#temporary));
    for (const { pid } of named) process.kill(pid, "SIGKILL");
    return named.map(({ pid, command }) => `process ${pid} is left: ${command.slice(0, 200)}`);
  }

  get #temporary(): string {
    return join(this.#folder, "tmp");
  }

  get #clocks(): string {
    return join(this.#folder, "clocks");
  }

  get #clockHook(): string {
    return join(this.#clocks, "hook.cjs");
  }

  /** Makes a clock for each part: libfaketime reads the file that the process's own environment names, once a second. */
  #writeClock(): void {
    mkdirSync(this.#clocks, { recursive: true });
    for (const part of ["command", "learner", "actor"]) this.#setClock(part, 0);
    const choose = `const part = /(learner|actor).main\\.ts$/.exec(process.argv[1] ?? "")?.[1] ?? "command";
process.env.FAKETIME_TIMESTAMP_FILE = process.env.CHAOS_CLOCKS + "/" + part;\n`;
    writeFileSync(this.#clockHook, choose);
  }

  #setClock(part: string, seconds: number): void {
    writeFileSync(join(this.#clocks, part), `${seconds < 0 ? "" : "+"}${seconds}\n`);
  }

  #count(what: string): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + 1;
  }

  #mount(...args: string[]): void {
    execFileSync("mount", args);
    this.#mounts.push(args.at(-1)!);
  }

  #keep({ directory }: LocalRun): void {
    cpSync(directory, join(this.#folder, "kept", `run-${this.#runs - 1}`), { recursive: true });
  }

  #clear(volume: string): void {
    const at = this.#mounts.indexOf(volume);
    if (at >= 0) execFileSync("umount", ["--lazy", this.#mounts.splice(at, 1)[0]!]);
    rmSync(volume, { recursive: true, force: true });
  }
}

function lastLines(output: string): string {
  return output.trimEnd().split("\n").slice(-3).join(" / ");
}

/** Returns when a process started, or "" if there is none or it is a zombie. */
function startOf(pid: number): string {
  try {
    const [state, ...fields] = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
    return state === "Z" ? "" : fields[18]!;
  } catch {
    return "";
  }
}
