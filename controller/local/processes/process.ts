/**
 * A child process that is kept alive: it is restarted with exponential backoff when it dies, and given up after too many consecutive
 * failures.
 *
 * It never outlives this process. An orderly end stops it (SIGTERM, then SIGKILL to its whole group). Any `exit` kills its group. If this
 * process is killed, the IPC channel closes, and every child exits at once.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, type WriteStream } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Restart } from "../../../crds/trainingrun.ts";
import { harmless } from "../../harmless.ts";

export interface Program {
  /** Name in messages and of the log file. */
  name: string;
  file: string;
  /** Called at every start, because arguments may change. If it fails, the start counts as failed. */
  args: () => string[] | Promise<string[]>;
  env?: NodeJS.ProcessEnv;
  logFile: string;
}

export interface Exit {
  /** Undefined if a signal ended the process. */
  status: number | undefined;
  signal: NodeJS.Signals | undefined;
  /** The last line of its output, in readable form; may be empty. */
  said: string;
}

/** `ended`: the process finished and is not restarted. `stopped`: this process ended it. `gaveUp`: it failed too often. */
export type Fate = { kind: "ended" | "stopped" | "gaveUp"; exit: Exit };

export interface Supervision {
  restart: Restart;
  /** Returns whether an unrequested exit is the regular end (true) or a failure that leads to a restart (false). */
  isEnd: (exit: Exit) => boolean | Promise<boolean>;
  onMessage?: (message: unknown) => void;
  onRestart?: (exit: Exit, waitSeconds: number) => void;
  /** Called with each line of its output. */
  onOutput?: (line: string) => void;
  now?: () => number;
}

/** Enough for a stack trace and the lines before it. */
const LAST_LINES = 60;

const living = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of living) killGroup(child);
});

export class SupervisedProcess {
  readonly name: string;
  /** Settles when the process will not be restarted. Never rejects. */
  readonly fate: Promise<Fate>;
  readonly #program: Program;
  readonly #supervision: Supervision;
  readonly #stopping = new AbortController();
  readonly #log: WriteStream;
  #child: ChildProcess | undefined;

  constructor(program: Program, supervision: Supervision) {
    this.name = program.name;
    this.#program = program;
    this.#supervision = supervision;
    this.#log = createWriteStream(program.logFile, { flags: "a" });
    // A log on a full disk must not end the run; the learner reports the full disk when it cannot write its store.
    this.#log.on("error", () => {});
    this.fate = this.#keepAlive();
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Sends a signal to the process alone, if it runs. */
  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  /**
   * Stops the process and does not restart it: SIGTERM, with `atOnce` also SIGINT (the second signal tells an actor not to drain; two equal
   * signals can arrive as one), SIGKILL to its group after `graceSeconds`.
   */
  async stop(graceSeconds: number, { atOnce = false } = {}): Promise<Fate> {
    this.#stopping.abort();
    this.signal("SIGTERM");
    if (atOnce) this.signal("SIGINT");
    const killing = new AbortController();
    sleep(graceSeconds * 1000, undefined, { signal: killing.signal }).then(
      () => this.kill(),
      () => {},
    );
    const fate = await this.fate;
    killing.abort();
    return fate;
  }

  /** Sends SIGKILL to the process group. */
  kill(): void {
    this.#stopping.abort();
    killGroup(this.#child);
  }

  /** Sends SIGKILL to the process group. This counts as a failure, so the process is restarted. */
  restartNow(): void {
    killGroup(this.#child);
  }

  async #keepAlive(): Promise<Fate> {
    const { restart, isEnd, onRestart, now = () => performance.now() } = this.#supervision;
    for (let failures = 0; ; ) {
      const startedAt = now();
      const exit = await this.#runOnce();
      if (this.#stopping.signal.aborted) return this.#end("stopped", exit);
      if (await isEnd(exit)) return this.#end("ended", exit);
      failures = now() - startedAt >= restart.stableSeconds * 1000 ? 1 : failures + 1;
      if (failures > restart.maxFailures) return this.#end("gaveUp", exit);
      const waitSeconds = backoffSeconds(failures, restart);
      onRestart?.(exit, waitSeconds);
      try {
        await sleep(waitSeconds * 1000, undefined, { signal: this.#stopping.signal });
      } catch {
        return this.#end("stopped", exit);
      }
    }
  }

  /** Reports the end once all output is in the log, or cannot be written. */
  async #end(kind: Fate["kind"], exit: Exit): Promise<Fate> {
    await new Promise<void>((resolve) => this.#log.end(() => resolve()));
    return { kind, exit };
  }

  async #runOnce(): Promise<Exit> {
    const { file, env } = this.#program;
    let args: string[];
    try {
      const given = this.#program.args();
      args = Array.isArray(given) ? given : await given;
    } catch (error) {
      return { status: 1, signal: undefined, said: (error as Error).message };
    }
    if (this.#stopping.signal.aborted) return { status: undefined, signal: "SIGTERM", said: "" };
    // A process group of its own: Ctrl-C reaches this process alone, which then stops its children in order.
    const child = spawn(process.execPath, [file, ...args], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      detached: true,
      // It may run for days, and what is to be kept of its compiled code would stay in its memory: 80 MB of a learner.
      env: { ...(env ?? process.env), NODE_COMPILE_CACHE: undefined },
    });
    this.#child = child;
    const lines: string[] = [];
    const onLine = (line: string): void => {
      lines.push(line);
      if (lines.length > LAST_LINES) lines.shift();
      this.#supervision.onOutput?.(line);
    };
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.pipe(this.#log, { end: false });
      splitLines(stream, onLine);
    }
    child.on("message", (message) => this.#supervision.onMessage?.(message));
    living.add(child);
    return new Promise((resolve) => {
      const end = (status: number | null, signal: NodeJS.Signals | null): void => {
        living.delete(child);
        // Kill the rest of its group.
        killGroup(child);
        resolve({ status: status ?? undefined, signal: signal ?? undefined, said: lastWords(lines) });
      };
      child.once("error", (error) => {
        onLine(error.message);
        if (child.pid === undefined) end(1, null);
      });
      // Grandchildren may hold the pipes open, so `close` can be late. `exit` is not late, but output may follow it.
      child.once("exit", (status, signal) => {
        const settle = setTimeout(() => end(status, signal), OUTPUT_SETTLE_MILLISECONDS);
        child.once("close", () => {
          clearTimeout(settle);
          end(status, signal);
        });
      });
    });
  }
}

/** How long to wait for output of an ended process. */
const OUTPUT_SETTLE_MILLISECONDS = 500;

/** @returns seconds to wait after the `failures`-th consecutive failure: doubling, up to a bound */
export function backoffSeconds(failures: number, restart: Restart): number {
  return Math.min(restart.maxBackoffSeconds, restart.backoffSeconds * 2 ** (failures - 1));
}

/** @returns `signal SIGKILL` or `status 1: the disk is full` */
export function describeExit({ signal, status, said }: Exit): string {
  if (signal) return `signal ${signal}`;
  return said === "" ? `status ${status}` : `status ${status}: ${said}`;
}

/** Lines around the message in Node's report of an uncaught error. */
const AROUND_ERROR = /^\s+at |^Node\.js v|^[\s{}^]*$|^\s+\[?\w+\]?: |^(node|file):/;

/** @returns the last line that is meant for people, in readable form */
export function lastWords(lines: string[]): string {
  return (
    lines
      .filter((line) => !AROUND_ERROR.test(line))
      .map(readableLine)
      .at(-1) ?? ""
  );
}

function killGroup(child: ChildProcess | undefined): void {
  if (child?.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The group has ended.
  }
}

function splitLines(stream: NodeJS.ReadableStream, onLine: (line: string) => void): void {
  const decoder = new TextDecoder();
  let rest = "";
  stream.on("data", (bytes: Buffer) => {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") onLine(line);
  });
  stream.on("end", () => {
    if (rest.trim() !== "") onLine(rest);
  });
}

/** Returns the message of a line of pino's JSON, or any other line itself, without control characters. */
export function readableLine(line: string): string {
  return harmless(messageOf(line));
}

function messageOf(line: string): string {
  try {
    const { msg, err } = JSON.parse(line) as { msg?: string; err?: { message?: string } };
    const parts = [msg, err?.message !== msg ? err?.message : undefined].filter((part) => part);
    return parts.length > 0 ? parts.join(": ") : line;
  } catch {
    return line;
  }
}
