/**
 * On one machine: a process that has imported packages, for all sandboxes of this actor that want the same ones. They are forks of
 * it (sandbox/forkserver.py), and so share the memory of what is imported. It is there as long as one of them is.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ActorError } from "./errors.ts";
import { isAlive } from "./is-alive.ts";

const ZYGOTE = fileURLToPath(new URL("./sandbox/zygote.py", import.meta.url));
// A hash seed that never changes: a program's sets iterate alike whichever zygote it meets.
const ENVIRONMENT = {
  LANG: "C.UTF-8",
  PATH: "/usr/bin:/bin",
  PYTHONHASHSEED: "0",
  PYTHONSAFEPATH: "1",
  PYTHONUTF8: "1",
};
const PID_BYTES = 4;
/** In the system's directory for temporary files; the number of our process follows. */
const DIRECTORY = "longrun-sandbox-";

export interface ForkServerOptions {
  /** The interpreter of the Python environment. */
  python: string;
  /** Modules to import; absent: what programs use most. */
  warm?: readonly string[];
  /** Programs can have several processes; some packages ask for that when they are imported. */
  severalProcesses: boolean;
  /** Lines that it or a sandbox of it prints, which they should not. */
  onLog?: (line: string) => void;
}

/** A fork of it, which serves one sandbox. */
export interface ForkedZygote {
  pid: number;
  /** Closed by the other side when the fork is dead; when we close it the fork is killed. */
  control: Socket;
}

/** That the next sandbox can be a fork of. */
const running = new Map<string, ForkServer>();
/** Whose processes are not known to have ended. */
const started = new Set<ForkServer>();

export class ForkServer {
  readonly #key: string;
  /** Of our user alone: its socket, and what packages write while they are imported. */
  readonly #directory = makeDirectory();
  readonly #process: ChildProcess;
  readonly #ready: Promise<void>;
  #users = 0;
  lastLine = "no message";

  /** The one with these packages, started if there is none. Each call needs one of `leave`. */
  static use(options: ForkServerOptions): ForkServer {
    const { python, warm, severalProcesses } = options;
    const key = JSON.stringify([python, severalProcesses, warm && [...new Set(warm)].sort()]);
    const server = running.get(key) ?? new ForkServer(key, options);
    running.set(key, server);
    server.#users++;
    return server;
  }

  private constructor(key: string, { python, warm, severalProcesses, onLog }: ForkServerOptions) {
    this.#key = key;
    const temporary = join(this.#directory, "tmp");
    mkdirSync(temporary);
    const args = ["-s", "-B", ZYGOTE, "--fork-server", this.#socket, "--scratch", temporary];
    if (warm) args.push(`--warm=${warm.join(",")}`);
    if (severalProcesses) args.push("--several-processes");
    const child = spawn(python, args, { cwd: "/", env: ENVIRONMENT, stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.split("\n").filter(Boolean)) {
        this.lastLine = line.slice(0, 500);
        onLog?.(this.lastLine);
      }
    });
    started.add(this);
    child.once("exit", () => this.#retire());
    const ended = once(child, "close").catch((error: Error) => {
      this.lastLine = error.message;
    });
    const failed = ended.then(() => {
      this.#retire();
      started.delete(this);
      this.#removeDirectory();
      throw new ActorError("sandbox", `sandbox: the zygote did not start: its process ended: ${this.lastLine}`);
    });
    this.#ready = Promise.race([once(child.stdout!, "data").then(() => {}), failed]);
    this.#ready.catch(() => {});
  }

  get #socket(): string {
    return join(this.#directory, "socket");
  }

  /** Throws ActorError `sandbox` if there is none within `seconds`, its packages imported. */
  async fork(seconds: number): Promise<ForkedZygote> {
    const timeout = AbortSignal.timeout(Math.max(1, Math.ceil(seconds * 1000)));
    const late = once(timeout, "abort").then(() => {
      throw new ActorError("sandbox", `sandbox: the zygote was not ready within ${seconds} s`);
    });
    late.catch(() => {});
    const starting = this.#ready.then(() => connectFork(this.#socket));
    starting.catch(() => {});
    try {
      return await Promise.race([starting, late]);
    } catch (error) {
      starting.then(({ control }) => control.destroy()).catch(() => {});
      throw error;
    }
  }

  /** Ends it if nobody else uses it. */
  leave(): void {
    if (--this.#users > 0) return;
    this.#retire();
    this.#process.kill("SIGKILL");
  }

  /** No sandbox is a fork of it any more. */
  #retire(): void {
    if (running.get(this.#key) === this) running.delete(this.#key);
  }

  #removeDirectory(): void {
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Where we end in the middle of something: they die by that, their directories do not. */
  static removeDirectories(): void {
    for (const server of started) server.#removeDirectory();
  }
}

process.on("exit", () => ForkServer.removeDirectories());

/** A new one; those that actors of this user left behind when they were killed go. */
function makeDirectory(): string {
  for (const name of readdirSync(tmpdir())) {
    const pid = Number(new RegExp(`^${DIRECTORY}(\\d+)-`).exec(name)?.[1]);
    if (!pid || isAlive(pid)) continue;
    const path = join(tmpdir(), name);
    try {
      if (lstatSync(path).uid === process.getuid?.()) rmSync(path, { recursive: true, force: true });
    } catch {
      // Another actor was faster.
    }
  }
  return mkdtempSync(join(tmpdir(), `${DIRECTORY}${process.pid}-`));
}

async function connectFork(socket: string): Promise<ForkedZygote> {
  const control = connect(socket);
  try {
    await once(control, "connect");
    for (;;) {
      const pid: Buffer | null = control.read(PID_BYTES);
      if (pid) return { control, pid: pid.readUInt32BE() };
      if (control.destroyed || control.readableEnded) throw new Error("it closed the connection");
      await once(control, "readable");
    }
  } catch (cause) {
    control.destroy();
    throw new ActorError("sandbox", `sandbox: the zygote did not start: ${(cause as Error).message}`, cause);
  }
}
